// SPDX-License-Identifier: Apache-2.0
// Which steps of which devices are judged: of each rank the device that it computes on, and the
// steps that all ranks have. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_DEVICE_JUDGED_H_
#define SYNCLINE_ANALYSIS_WHY_DEVICE_JUDGED_H_

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/devices.h"
#include "analysis/why/device_model.h"

namespace syncline::analysis::why {

// One rank, as it is judged.
struct JudgedDevice {
  const DeviceRank* given = nullptr;
  DeviceReport report;
  uint32_t device = 0;                  // index into given->devices->devices
  std::vector<DeviceStep> steps;        // judged, in order
  std::vector<DevicePartTable> tables;  // beside them
  std::vector<int64_t> own_ns;          // beside them: own work
  std::vector<int64_t> device_ns;       // beside them: the device's part of it
};

// By rank; at least one. Sets the answer's refusal, world_size, steps,
// unpaired_steps, collectives, and what is missing.
std::vector<JudgedDevice> JudgeDevices(std::span<const DeviceRank> ranks, DeviceAnswer* answer);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_DEVICE_JUDGED_H_
