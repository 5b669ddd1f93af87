// SPDX-License-Identifier: Apache-2.0
// The steps of devices as lanes of the timeline: what `report` has in its table of devices.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_DEVICE_STEPS_H_
#define SYNCLINE_COORDINATOR_MERGE_DEVICE_STEPS_H_

#include <optional>
#include <vector>

#include "timeline/device_lanes.h"

namespace syncline::merge {

// A lane for each device of which steps are known, with those that are wholly in `window`.
std::vector<timeline::DeviceLane> DeviceStepLanes(const timeline::ProcessDevices& process,
                                                  const std::optional<timeline::Interval>& window);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_DEVICE_STEPS_H_
