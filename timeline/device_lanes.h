// SPDX-License-Identifier: Apache-2.0
// Lanes of what devices did in each step, drawn below their processes. What that is, others say
// (analysis/devices.h).
//
// Thread-safety: plain values; one thread.
#ifndef SYNCLINE_TIMELINE_DEVICE_LANES_H_
#define SYNCLINE_TIMELINE_DEVICE_LANES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "timeline/device_work.h"
#include "timeline/node_input.h"

namespace syncline::timeline {

class Emitter;

inline constexpr std::string_view kDeviceStepCategory = "step of a device";

struct DeviceStepSpan {
  Interval at;
  std::string name;                                      // "ProfilerStep#3"
  std::vector<std::pair<std::string, int64_t>> numbers;  // arguments: "computing, ns"
};

struct DeviceLane {
  std::string name;                   // "GPU 0 · steps"
  std::vector<DeviceStepSpan> spans;  // by begin, none within another
};

using DeviceLanesOf = std::function<std::vector<DeviceLane>(const ProcessDevices&)>;

// Of the processes of a node, which `found` is of.
void PushDeviceLanes(const DeviceLanesOf& lanes_of, uint32_t node, const NodeInput& input,
                     const NodeResult& found, Emitter* emitter);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_DEVICE_LANES_H_
