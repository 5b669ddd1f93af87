// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/held_back.h"

#include <algorithm>

namespace syncline::analysis::why {
namespace {

using evidence::DeviceValue;

int64_t MhzOf(const DeviceHealth& health) {
  const auto found = health.values.find(DeviceValue::kSmMhz);
  return found == health.values.end() ? 0 : found->second.median;
}

template <class T>
T MedianOf(std::vector<T> values) {
  if (values.empty()) return T{};
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<DeviceHeldBack> HeldBackMore(std::span<const DeviceHealth* const> ranks, size_t which) {
  std::vector<DeviceHeldBack> found;
  if (ranks[which] == nullptr) return found;
  for (const auto& [reason, own] : ranks[which]->held_back) {
    if (reason == DeviceValue::kLowUseNs) continue;  // who has little to do is not slow
    DeviceHeldBack one{.reason = reason, .own = own, .others = {0, 1, 0}};
    one.own_mhz = MhzOf(*ranks[which]);
    std::vector<double> shares;
    std::vector<int64_t> clocks;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (i == which) continue;
      const bool known = ranks[i] != nullptr && ranks[i]->held_back.contains(reason);
      ++(known ? one.known : one.unknown);
      if (!known) continue;
      const WindowShare& other = ranks[i]->held_back.at(reason);
      shares.push_back(other.est);
      one.others.lo = std::min(one.others.lo, other.lo);
      one.others.hi = std::max(one.others.hi, other.hi);
      if (MhzOf(*ranks[i]) > 0) clocks.push_back(MhzOf(*ranks[i]));
    }
    if (one.known == 0 || own.lo < one.others.hi + kHeldBackLeast) continue;
    one.others.est = MedianOf(std::move(shares));
    one.others_mhz = MedianOf(std::move(clocks));
    found.push_back(one);
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const DeviceHeldBack& a, const DeviceHeldBack& b) { return a.own.est > b.own.est; });
  return found;
}

}  // namespace syncline::analysis::why
