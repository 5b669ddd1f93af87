// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/stamp_map.h"

#include <algorithm>
#include <cstdlib>

namespace syncline::probe {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kBillion = 1'000'000'000;

}  // namespace

void StampMap::Add(const ClockReading& reading) {
  readings_[next_] = reading;
  next_ = (next_ + 1) % kCapacity;
  size_ = std::min(size_ + 1, kCapacity);
}

void StampMap::Side::Add(const Side& other) {
  lo_raw_ns = any ? std::max(lo_raw_ns, other.lo_raw_ns) : other.lo_raw_ns;
  hi_raw_ns = any ? std::min(hi_raw_ns, other.hi_raw_ns) : other.hi_raw_ns;
  any = true;
}

std::optional<StampMap::Side> StampMap::ByReading(const ClockReading& reading,
                                                  int64_t clock_ns) const {
  const int64_t distance = clock_ns - reading.clock_ns;
  if (std::abs(distance) > kNsPerSecond) return std::nullopt;
  const int64_t rate = std::max(rate_ppb_max_, std::min(reading.rate_ppb_max, kRatePpbMax));
  const int64_t error = std::abs(distance) * rate / (kBillion - rate) + (distance != 0 ? 1 : 0);
  return Side{reading.raw_before_ns + distance - error, reading.raw_after_ns + distance + error};
}

StampMap::Interval StampMap::ToRaw(const Stamp& stamp) const {
  Side all{};
  Side after{};
  for (size_t i = 0; i < size_; ++i) {
    const auto side = ByReading(readings_[i], stamp.clock_ns);
    if (!side) continue;
    all.Add(*side);
    if (readings_[i].raw_before_ns >= stamp.fetched_raw_ns &&
        readings_[i].raw_after_ns - stamp.fetched_raw_ns <= kReachNs) {
      after.Add(*side);
    }
  }
  if (all.any && all.lo_raw_ns > all.hi_raw_ns) return {.answer = Answer::kContradiction};
  if (!after.any) return {};
  const int64_t before_raw_ns = stamp.before_raw_ns.value_or(after.lo_raw_ns - kMarginNs);
  Side before{};
  for (size_t i = 0; i < size_; ++i) {
    const ClockReading& reading = readings_[i];
    if (reading.raw_after_ns > before_raw_ns ||
        stamp.fetched_raw_ns - reading.raw_before_ns > kReachNs) {
      continue;
    }
    if (const auto side = ByReading(reading, stamp.clock_ns)) before.Add(*side);
  }
  if (!before.any) return {};
  return {.answer = Answer::kKnown,
          .lo_raw_ns = std::min(before.lo_raw_ns, after.lo_raw_ns),
          .hi_raw_ns = std::max(before.hi_raw_ns, after.hi_raw_ns)};
}

}  // namespace syncline::probe
