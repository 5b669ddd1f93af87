// SPDX-License-Identifier: Apache-2.0
// Whether the device of a rank was held below its clocks in more of the window than those of the
// other ranks: evidence for why it computes slower. Pure. Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_WHY_HELD_BACK_H_
#define SYNCLINE_ANALYSIS_WHY_HELD_BACK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/device_health.h"

namespace syncline::analysis::why {

struct DeviceHeldBack {
  evidence::DeviceValue reason = evidence::DeviceValue::kThermalNs;
  WindowShare own;
  WindowShare others;    // est: their median; lo, hi: of all of them
  uint64_t known = 0;    // of how many others it is known
  uint64_t unknown = 0;  // of how many it is not
  // Clock of the SMs, median over the window: of the device, and the median of the others'; 0: it
  // is not known.
  int64_t own_mhz = 0;
  int64_t others_mhz = 0;
};

// By what the device of rank `which` was certainly held back in more of the window than that of
// every other rank of which it is known, by kHeldBackLeast of the window or more; the largest
// first. `ranks`: nullptr where it is not known which device is the rank's, or how that was.
inline constexpr double kHeldBackLeast = 0.05;
std::vector<DeviceHeldBack> HeldBackMore(std::span<const DeviceHealth* const> ranks, size_t which);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_HELD_BACK_H_
