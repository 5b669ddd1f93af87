// SPDX-License-Identifier: Apache-2.0
// When an edge's initiator probes: bursts of exchanges, close together because a pause of a few
// hundred microseconds already doubles the smallest round trip (sleep, cold caches), at 10 Hz at
// the beginning and when told to (the end), else at 1 Hz; phase and spacing random, so that edges
// do not beat against each other or against something periodic on the network.
#ifndef SYNCLINE_AGENT_PROBE_UDP_SCHEDULE_H_
#define SYNCLINE_AGENT_PROBE_UDP_SCHEDULE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace syncline::probe {

// Small and reproducible (splitmix64). Not for secrets.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [lo, hi).
  int64_t Between(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(Next() % static_cast<uint64_t>(std::max<int64_t>(hi - lo, 1)));
  }

 private:
  uint64_t state_;
};

struct ScheduleOptions {
  int64_t fast_period_ns = 100'000'000;
  int64_t slow_period_ns = 1'000'000'000;
  int64_t fast_at_start_ns = 30'000'000'000;
  uint8_t exchanges_per_burst = 8;
  int64_t spacing_ns_min = 50'000;
  int64_t spacing_ns_max = 100'000;
  // Shorter where it is waited without sleeping.
  int64_t spin_spacing_ns_min = 20'000;
  int64_t spin_spacing_ns_max = 40'000;
};

// So that who begins the bursts of so many edges spends about a fifth of a processor on them: a
// burst takes him some 130 us (measured: 8 exchanges of 16 us). Rare bursts only loosen, a hub that
// cannot keep up has no samples at all.
// Where both of a pair ask, each does so half as often.
inline ScheduleOptions ForEdge(ScheduleOptions options, size_t initiated, bool both_ask) {
  constexpr int64_t kPeriodPerEdgeNs = 640'000;
  if (both_ask) options.fast_period_ns *= 2, options.slow_period_ns *= 2;
  const int64_t least_ns = kPeriodPerEdgeNs * static_cast<int64_t>(initiated);
  options.fast_period_ns = std::max(options.fast_period_ns, least_ns);
  options.slow_period_ns = std::max(options.slow_period_ns, least_ns);
  return options;
}

class BurstSchedule {
 public:
  BurstSchedule(const ScheduleOptions& options, uint64_t seed, int64_t start_raw_ns)
      : options_(options), random_(seed), fast_until_(start_raw_ns + options.fast_at_start_ns) {
    last_ = start_raw_ns - random_.Between(0, Period(start_raw_ns));
  }

  bool is_fast(int64_t now_raw_ns) const { return now_raw_ns < fast_until_; }
  void FastUntil(int64_t raw_ns) { fast_until_ = std::max(fast_until_, raw_ns); }
  // When the burst after the last one begins. May be in the past after a suspend: then at once.
  int64_t NextBurstRawNs(int64_t now_raw_ns) const {
    return std::max(now_raw_ns, last_ + Period(now_raw_ns) + jitter_);
  }
  void BurstBegan(int64_t now_raw_ns) {
    last_ = now_raw_ns;
    const int64_t tenth = Period(now_raw_ns) / 10;
    jitter_ = random_.Between(-tenth, tenth);
  }
  int64_t SpacingNs(bool spinning) {
    return spinning ? random_.Between(options_.spin_spacing_ns_min, options_.spin_spacing_ns_max)
                    : random_.Between(options_.spacing_ns_min, options_.spacing_ns_max);
  }
  uint8_t exchanges_per_burst() const { return options_.exchanges_per_burst; }
  Random& random() { return random_; }

 private:
  int64_t Period(int64_t now_raw_ns) const {
    return is_fast(now_raw_ns) ? options_.fast_period_ns : options_.slow_period_ns;
  }

  ScheduleOptions options_;
  Random random_;
  int64_t fast_until_;
  int64_t last_ = 0;
  int64_t jitter_ = 0;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_SCHEDULE_H_
