// SPDX-License-Identifier: Apache-2.0
// How long what was launched waits for its start on a device that computes and copies nothing.
// Kernels of collectives do not count: they hide such times on the ranks that wait in them. Work
// that waits for a collective does wait here, which is why the median tells, not the mean. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_DEVICE_STARTS_H_
#define SYNCLINE_ANALYSIS_WHY_DEVICE_STARTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/time.h"
#include "timeline/device_work.h"

namespace syncline::analysis::why {

// Of what was launched in a step; ns.
struct Starts {
  std::vector<int64_t> fresh;   // from the launch, which the device waited for
  std::vector<int64_t> queued;  // launched before: from the end of the work before it
};

// `steps`: of the program, by begin, apart from each other.
std::vector<Starts> StartsOf(const timeline::ProcessDevices& devices, uint32_t device,
                             std::span<const timeline::Interval> steps);

// Of each step, how much longer the rank's starts take than as many usual ones of the others, ns.
std::vector<int64_t> SlowerStarts(std::span<const std::vector<Starts>> ranks, size_t rank);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_DEVICE_STARTS_H_
