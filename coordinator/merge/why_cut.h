// SPDX-License-Identifier: Apache-2.0
// From a recording of a TensorFlow job whose model is cut into partitions to the answer of
// `syncline why`, or to one side of a comparison.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_WHY_CUT_H_
#define SYNCLINE_COORDINATOR_MERGE_WHY_CUT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/why/cut_collector.h"
#include "analysis/why/cut_model.h"
#include "analysis/why/cut_side.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/losses.h"
#include "timeline/builder.h"

namespace syncline::merge {

// What is known of the job, or why nothing is said of it.
struct CutJob {
  analysis::why::CutRefusal refusal = analysis::why::CutRefusal::kNone;
  std::string refusal_text;
  analysis::why::CutInput input;
  Losses losses;
  int64_t window_ns = 0;
};

// nullopt: no process here has a profile by TensorFlow.
std::optional<CutJob> CutJobOf(const OpenedInputs& inputs, const timeline::BuiltTimeline& built,
                               analysis::why::CutCollected collected);

analysis::why::CutAnswer Explain(const CutJob& job);
// The same as one side of a comparison.
analysis::why::CutSide SideOf(const CutJob& job);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WHY_CUT_H_
