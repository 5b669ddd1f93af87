// SPDX-License-Identifier: Apache-2.0
#include "timeline/device_collectives.h"

#include <algorithm>
#include <numeric>

namespace syncline::timeline {
namespace {

constexpr int64_t kFar = INT64_MAX / 4;  // no limit
constexpr int64_t kMillion = 1'000'000;

int64_t DriftNs(int64_t in_ns) {
  return in_ns / kMillion * kDriftPpm + in_ns % kMillion * kDriftPpm / kMillion + 1;
}

// How far the trace clock is ahead of the device's.
struct Ahead {
  int64_t least_ns = -kFar;
  int64_t most_ns = kFar;

  // `since` the instant of which `other` holds.
  void Take(const Ahead& other, int64_t since_ns) {
    const int64_t drift_ns = DriftNs(since_ns);
    if (other.least_ns > -kFar) least_ns = std::max(least_ns, other.least_ns - drift_ns);
    if (other.most_ns < kFar) most_ns = std::min(most_ns, other.most_ns + drift_ns);
  }
};

// NCCL looks all the while for the stamps of what is under way. Where it takes those of kernels
// that are over, because it counts otherwise than its kernels do, they come all at once.
constexpr int64_t kLongNs = 200'000;
bool AreOthersStamps(std::span<const DeviceCollective> collectives) {
  int64_t long_ns = 0;
  int64_t watched_ns = 0;
  for (const DeviceCollective& one : collectives) {
    if (one.duration_ns() < kLongNs) continue;
    long_ns += one.duration_ns() / 2;
    watched_ns += std::min(one.watched_ns, one.duration_ns());
  }
  return watched_ns < long_ns;
}

}  // namespace

int64_t ClockStepNs(std::span<const DeviceCollective> collectives) {
  int64_t step_ns = 0;
  for (const DeviceCollective& one : collectives) {
    step_ns = std::gcd(step_ns, one.begin_device_ns - collectives[0].begin_device_ns);
    step_ns = std::gcd(step_ns, one.duration_ns());
  }
  return std::max<int64_t>(1, step_ns);
}

ClockPlacing PlaceDeviceClock(std::span<DeviceCollective> collectives) {
  if (AreOthersStamps(collectives)) return ClockPlacing::kOthersStamps;
  const int64_t step_ns = ClockStepNs(collectives);
  std::vector<Ahead> ahead(collectives.size());
  for (size_t i = 0; i < collectives.size(); ++i) {
    const DeviceCollective& one = collectives[i];
    // Of which of its stamps it holds is not known.
    ahead[i].most_ns = one.ahead_ns + DriftNs(one.duration_ns());
    if (one.since_ns.has_value()) {
      ahead[i].least_ns = *one.since_ns - one.begin_device_ns - step_ns;
    }
  }
  const auto apart_ns = [&](size_t i) {
    return collectives[i].begin_device_ns - collectives[i - 1].begin_device_ns;
  };
  for (size_t i = 1; i < ahead.size(); ++i) ahead[i].Take(ahead[i - 1], apart_ns(i));
  for (size_t i = ahead.size(); i-- > 1;) ahead[i - 1].Take(ahead[i], apart_ns(i));
  for (const Ahead& one : ahead) {
    if (one.least_ns == -kFar) return ClockPlacing::kNothingKnown;
    if (one.least_ns > one.most_ns) return ClockPlacing::kContradiction;
  }
  for (size_t i = 0; i < ahead.size(); ++i) {
    DeviceCollective& one = collectives[i];
    const int64_t half_ns = (ahead[i].most_ns - ahead[i].least_ns) / 2;
    one.begin_ns = one.begin_device_ns + ahead[i].least_ns + half_ns;
    one.bound_ns = half_ns + step_ns + DriftNs(one.duration_ns());
  }
  return ClockPlacing::kPlaced;
}

}  // namespace syncline::timeline
