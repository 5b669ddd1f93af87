// SPDX-License-Identifier: Apache-2.0
// What changed in the steps of a job on devices, between recordings: of the step, of its parts on
// the devices, and of the ranks' own work and kernels. How a change and its interval are found:
// changes.h. Definitions: docs/findings.md. Pure, deterministic.
#ifndef SYNCLINE_ANALYSIS_WHY_DEVICE_COMPARISON_H_
#define SYNCLINE_ANALYSIS_WHY_DEVICE_COMPARISON_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/why/changes.h"
#include "analysis/why/compared_sides.h"
#include "analysis/why/device_side.h"

namespace syncline::analysis::why {

struct DeviceRankChange {
  int32_t rank = -1;
  Change own;  // own work, as its device shows it (device_side.h)
  std::array<Change, kDeviceParts> parts;
};

struct KernelChange {
  KernelName name;
  Change time;              // added up, mean over ranks
  double calls_before = 0;  // a step and rank
  double calls_now = 0;
};

struct DeviceComparison : ComparedSides {
  DeviceRefusal refusal = DeviceRefusal::kNone;  // with kNowRefused, kBeforeRefused

  bool has_collectives = false;
  // False: waiting for another rank looks like own work, because collectives run on the host.
  bool own_work_known = true;
  Change step;                             // mean over ranks
  std::array<Change, kDeviceParts> parts;  // they add up to the step
  std::vector<DeviceRankChange> ranks;     // by rank
  std::vector<KernelChange> kernels;       // the largest change first; at most 32
};

ComparedSide SummaryOf(const DeviceSide& side);

// At least one before.
DeviceComparison CompareDevices(std::span<const DeviceSide> before, const DeviceSide& now);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_DEVICE_COMPARISON_H_
