// SPDX-License-Identifier: Apache-2.0
// The critical path of a job as a lane of the timeline.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_CRITICAL_PATH_H_
#define SYNCLINE_COORDINATOR_MERGE_CRITICAL_PATH_H_

#include "absl/status/statusor.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "timeline/fleet_lanes.h"

namespace syncline::merge {

// Reads the input once more, as `why` does. InvalidArgument: the path is not known, and why.
absl::StatusOr<timeline::FleetLane> CriticalPathLane(const MergeOptions& options,
                                                     const OpenedInputs& inputs);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_CRITICAL_PATH_H_
