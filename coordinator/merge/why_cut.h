// SPDX-License-Identifier: Apache-2.0
// From a recording of a TensorFlow job whose model is cut into partitions to the answer of
// `syncline why`.
#ifndef SYNCLINE_COORDINATOR_MERGE_WHY_CUT_H_
#define SYNCLINE_COORDINATOR_MERGE_WHY_CUT_H_

#include <optional>

#include "analysis/why/cut_collector.h"
#include "analysis/why/cut_model.h"
#include "coordinator/merge/inputs.h"
#include "timeline/builder.h"

namespace syncline::merge {

// nullopt: no process here has a profile by TensorFlow.
std::optional<analysis::why::CutAnswer> ExplainCutOf(const OpenedInputs& inputs,
                                                     const timeline::BuiltTimeline& built,
                                                     analysis::why::CutCollected collected);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WHY_CUT_H_
