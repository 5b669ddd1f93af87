// SPDX-License-Identifier: Apache-2.0
// `syncline why` without its command line: a recording in, the answer out.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_WHY_H_
#define SYNCLINE_COORDINATOR_MERGE_WHY_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/why/collective_model.h"
#include "analysis/why/cut_model.h"
#include "analysis/why/cut_side.h"
#include "analysis/why/device_model.h"
#include "analysis/why/device_side.h"
#include "analysis/why/model.h"
#include "analysis/why/no_step.h"
#include "analysis/why/side.h"
#include "coordinator/merge/merge.h"

namespace syncline::merge {

struct WhyOptions {
  InputOptions input;
  std::optional<std::string> job;  // its id, or "ID/INCARNATION"; not given: there is only one
  unsigned threads = 0;            // 0: one per processor; the answer does not depend on it
  std::function<void(const Progress&)> progress;  // called now and then, if it is given
  // For tests: gets what is explained, before it is.
  std::function<void(const analysis::why::JobInput&)> inspect;
};

struct WhyResult {
  analysis::why::Answer answer;
  // Of a job that computes on devices, whose work is in the recording: this answers, not `answer`.
  std::optional<analysis::why::DeviceAnswer> devices;
  // The same of a TensorFlow job, where no PyTorch job was recorded.
  std::optional<analysis::why::CutAnswer> cut;
  // The same of a job whose devices' work is not in the recording, but what NCCL said of its
  // collectives is.
  std::optional<analysis::why::CollectiveAnswer> collectives;
  std::vector<std::string> complaints;
  std::vector<std::string> notes;
  // Where PyTorch's ranks were recorded, and no step of the job ended.
  std::optional<analysis::why::NoStep> no_step;
};

// NotFound, DataLoss: no recording that can be read; InvalidArgument: no such job, or several and
// none was chosen: the message has those that there are.
absl::StatusOr<WhyResult> Explain(const WhyOptions& options);

struct WhySide {
  analysis::why::Side side;
  // Of a TensorFlow job, where no PyTorch job was recorded; `side` is then refused.
  std::optional<analysis::why::CutSide> cut;
  // Of a job that computes on devices, whose work is in the recording: this counts, not `side`.
  std::optional<analysis::why::DeviceSide> devices;
  std::vector<std::string> complaints;
  std::vector<std::string> notes;
};

// The same recording as one side of a comparison. Errors as of Explain.
absl::StatusOr<WhySide> ReadSide(const WhyOptions& options);

// Only whether no step ended, of all jobs if none is chosen. nullopt: steps ended, or no rank with
// Syncline's hook for PyTorch was recorded. Errors: there is no recording that can be read.
absl::StatusOr<std::optional<analysis::why::NoStep>> FindNoStep(const WhyOptions& options);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WHY_H_
