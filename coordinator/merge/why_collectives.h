// SPDX-License-Identifier: Apache-2.0
// From what NCCL said of its collectives in a recording to the answer of `syncline why`.
#ifndef SYNCLINE_COORDINATOR_MERGE_WHY_COLLECTIVES_H_
#define SYNCLINE_COORDINATOR_MERGE_WHY_COLLECTIVES_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/why/collective_model.h"
#include "coordinator/merge/inputs.h"
#include "timeline/builder.h"

namespace syncline::merge {

// The jobs of which NCCL said anything.
std::set<std::string> JobsWithCollectives(const timeline::BuiltTimeline& built);

// nullopt: no collective of such a job was recorded so. `job`: its name; not given: there is only
// one. InvalidArgument: there are several, which the message names.
absl::StatusOr<std::optional<analysis::why::CollectiveAnswer>> ExplainCollectivesOf(
    const OpenedInputs& inputs, const timeline::BuiltTimeline& built,
    const std::optional<std::string>& job, bool incomplete);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WHY_COLLECTIVES_H_
