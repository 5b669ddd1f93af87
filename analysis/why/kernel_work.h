// SPDX-License-Identifier: Apache-2.0
// Whether a rank's device computes longer because its kernels take longer, or because it has more
// of them. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_KERNEL_WORK_H_
#define SYNCLINE_ANALYSIS_WHY_KERNEL_WORK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/why/device_model.h"

namespace syncline::analysis::why {

struct KernelSum {
  uint64_t count = 0;
  int64_t total_ns = 0;
};
// By name, and grid and block; of the judged steps. No kernels of collectives.
using KernelSums = std::map<std::pair<std::string, std::string>, KernelSum>;
// The same, with one sum a step.
using KernelSteps = std::map<std::pair<std::string, std::string>, std::vector<KernelSum>>;

// These: `steps` are of the program, by begin, apart from each other.
// The index of the step in which `time` lies.
std::optional<size_t> StepAt(std::span<const timeline::Interval> steps, TimelineTime time);

// What the device copied and filled that was launched in each step, ns: added up.
std::vector<int64_t> CopiedNs(const timeline::ProcessDevices& devices, uint32_t device,
                              std::span<const timeline::Interval> steps);
KernelSteps KernelStepsOf(const timeline::ProcessDevices& devices, uint32_t device,
                          std::span<const timeline::Interval> steps);
KernelSums KernelsOf(const timeline::ProcessDevices& devices, uint32_t device,
                     std::span<const timeline::Interval> steps);

// Of `rank`, compared with the median of the others; at least two ranks. `steps`: how many.
KernelWork CompareKernels(std::span<const KernelSums> ranks, size_t rank, uint64_t steps);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_KERNEL_WORK_H_
