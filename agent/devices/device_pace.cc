// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_pace.h"

#include <algorithm>
#include <climits>

namespace syncline::agent {
namespace {

using Depth = DeviceLibrary::Depth;

struct Period {
  int64_t least_ns;
  int64_t share;  // of a processor for each device: one part in so many
};
constexpr std::array<Period, 3> kPeriods = {{
    {200'000'000, 1000},
    {1'000'000'000, 300},
    {10'000'000'000, 2000},
}};

}  // namespace

std::optional<Depth> DevicePace::Next(int64_t now_ns) const {
  for (const Depth depth : {Depth::kAll, Depth::kCounters, Depth::kLevels}) {
    if (next_ns_[static_cast<size_t>(depth)] <= now_ns) return depth;
  }
  return std::nullopt;
}

void DevicePace::Took(Depth depth, int64_t now_ns, int64_t cpu_ns) {
  Cost& cost = costs_[static_cast<size_t>(depth)];
  if (cpu_ns > 0) {
    cost.cpu_ns += cpu_ns;
    ++cost.readings;
  }
  // A deep reading is one of all that it has in it.
  for (size_t i = 0; i <= static_cast<size_t>(depth); ++i) {
    const int64_t mean_ns = costs_[i].cpu_ns / std::max<int64_t>(1, costs_[i].readings);
    const int64_t affordable_ns = mean_ns * kPeriods[i].share / static_cast<int64_t>(devices_);
    next_ns_[i] = now_ns + std::max(kPeriods[i].least_ns, affordable_ns);
  }
}

int64_t DevicePace::WaitNs(int64_t now_ns) const {
  return std::max<int64_t>(0, *std::min_element(next_ns_.begin(), next_ns_.end()) - now_ns);
}

int DevicePace::WaitMs(int64_t now_ns) const {
  constexpr int64_t kNsPerMs = 1'000'000;
  const int64_t wait_ms = (WaitNs(now_ns) + kNsPerMs - 1) / kNsPerMs;
  return static_cast<int>(std::min<int64_t>(wait_ms, INT_MAX));
}

}  // namespace syncline::agent
