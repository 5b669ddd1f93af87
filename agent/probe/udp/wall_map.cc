#include "agent/probe/udp/wall_map.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace syncline::probe {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kBillion = 1'000'000'000;

}  // namespace

void WallMap::Add(const WallReading& reading) {
  readings_[next_] = reading;
  next_ = (next_ + 1) % kCapacity;
  size_ = std::min(size_ + 1, kCapacity);
}

std::optional<WallMap::Interval> WallMap::ToRaw(int64_t realtime_ns) const {
  Interval result{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  bool any_after = false;
  for (size_t i = 0; i < size_; ++i) {
    const WallReading& reading = readings_[i];
    const int64_t distance = realtime_ns - reading.realtime_ns;
    if (std::abs(distance) > kNsPerSecond) continue;
    any_after = any_after || distance <= 0;
    const int64_t error =
        std::abs(distance) * rate_ppb_max_ / (kBillion - rate_ppb_max_) + (distance != 0 ? 1 : 0);
    result.lo_raw_ns = std::max(result.lo_raw_ns, reading.raw_before_ns + distance - error);
    result.hi_raw_ns = std::min(result.hi_raw_ns, reading.raw_after_ns + distance + error);
  }
  if (!any_after || result.lo_raw_ns > result.hi_raw_ns) return std::nullopt;
  return result;
}

}  // namespace syncline::probe
