// SPDX-License-Identifier: Apache-2.0
#include "clocksync/hull.h"

namespace syncline::clocksync {

std::vector<size_t> CornersOfHull(std::span<const Limit> limits, int64_t wander_ppb_per_s) {
  const auto bent = [&](const Limit& p) {
    const auto x = static_cast<double>(p.x - limits.front().x);
    return static_cast<double>(p.theta_ns) +
           x * x * static_cast<double>(wander_ppb_per_s) * 0.5e-18;
  };
  std::vector<size_t> corners;
  for (size_t i = 0; i < limits.size(); ++i) {
    const Limit& p = limits[i];
    while (corners.size() >= 2) {
      const Limit& a = limits[corners[corners.size() - 2]];
      const Limit& b = limits[corners.back()];
      const double left = (bent(b) - bent(a)) * static_cast<double>(p.x - a.x);
      if (left < (bent(p) - bent(a)) * static_cast<double>(b.x - a.x)) break;
      corners.pop_back();
    }
    corners.push_back(i);
  }
  return corners;
}

}  // namespace syncline::clocksync
