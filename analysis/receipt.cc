// SPDX-License-Identifier: Apache-2.0
#include "analysis/receipt.h"

#include <cmath>

namespace syncline::analysis {

std::optional<ShareEstimate> ShareOf(const DurationEstimate& part, int64_t whole_ns) {
  if (whole_ns <= 0) return std::nullopt;
  const auto ppm = [whole_ns](int64_t ns) {
    return 1e6 * static_cast<double>(ns) / static_cast<double>(whole_ns);
  };
  ShareEstimate share;
  share.est_ppm = std::llround(ppm(part.est_ns));
  if (!part.bounded()) return share;
  share.lo_ppm = static_cast<int64_t>(std::floor(ppm(part.lo_ns)));
  share.hi_ppm = static_cast<int64_t>(std::ceil(ppm(part.hi_ns)));
  return share;
}

std::optional<uint64_t> ProcessReceipt::events_per_second() const {
  if (covered_ns <= 0) return std::nullopt;
  return static_cast<uint64_t>(
      std::llround(1e9 * static_cast<double>(events) / static_cast<double>(covered_ns)));
}

std::optional<ShareEstimate> ProcessReceipt::share() const {
  return cost.has_value() ? ShareOf(*cost, covered_ns) : std::nullopt;
}

}  // namespace syncline::analysis
