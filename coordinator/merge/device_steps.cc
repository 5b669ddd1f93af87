// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/device_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/devices.h"

namespace syncline::merge {

std::vector<timeline::DeviceLane> DeviceStepLanes(const timeline::ProcessDevices& process,
                                                  const std::optional<timeline::Interval>& window) {
  std::vector<timeline::DeviceLane> lanes;
  for (const analysis::DeviceReport& device : analysis::DevicesOf(process, window)) {
    if (!device.has_steps || device.steps.empty()) continue;
    timeline::DeviceLane lane{absl::StrCat(device.device, " · steps"), {}};
    for (const analysis::DeviceStep& step : device.steps) {
      const analysis::DeviceUse& use = step.use;
      timeline::DeviceStepSpan span{{step.begin, step.end}, step.name, {}};
      span.numbers = {{"kernels, copies and fills", static_cast<int64_t>(step.work)},
                      {"computing, ns", use.computing_ns},
                      {"exposed communication, ns", use.communication_ns},
                      {"exposed copies, ns", use.copies_ns},
                      {"idle before a launch, ns", use.unlaunched_ns}};
      if (use.loading_ns > 0) {
        span.numbers.emplace_back("of that, waiting for a batch, ns", use.loading_ns);
      }
      span.numbers.emplace_back("idle after the launch, ns", use.unstarted_ns);
      if (use.unknown_ns > 0) {
        span.numbers.emplace_back("idle, launch not known, ns", use.unknown_ns);
      }
      lane.spans.push_back(std::move(span));
    }
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

}  // namespace syncline::merge
