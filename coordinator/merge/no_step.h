// SPDX-License-Identifier: Apache-2.0
// Whether no step ended in a recording's window, and what each rank did instead: what `syncline
// why` asks before it looks where the ranks of a job stand.
//
// Pure.
#ifndef SYNCLINE_COORDINATOR_MERGE_NO_STEP_H_
#define SYNCLINE_COORDINATOR_MERGE_NO_STEP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/why/collector.h"
#include "analysis/why/no_step.h"
#include "coordinator/recording/recording.h"

namespace syncline::merge {

struct NoStepSource {
  const recording::Recording* recording = nullptr;
  const analysis::why::Collected* collected = nullptr;
  std::vector<std::string> nodes;            // by CollectedProcess::node
  std::vector<int64_t> window_end_clock_ns;  // of each, in its trace clock
  std::optional<std::string> job;            // its id, or "ID/INCARNATION"; not given: all
};

// nullopt: a step ended, all ranks ended, or no process with Syncline's hook for PyTorch was
// recorded.
std::optional<analysis::why::NoStep> NoStepOf(const NoStepSource& source);

// The jobs that have a name, and more than one rank, of which no step ended and no rank made a call
// in the window's last half. `source` chooses no job.
std::vector<std::string> JobsThatStandStill(NoStepSource source);

// Whether NoStepOf() can say anything but nullopt of it.
bool MayHaveNoStep(const recording::Recording& recording);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_NO_STEP_H_
