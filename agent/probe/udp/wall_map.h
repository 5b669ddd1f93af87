// From CLOCK_REALTIME, in which the kernel stamps packets, to CLOCK_MONOTONIC_RAW, as an interval
// that contains the truth.
//
// A reading says: at some RAW instant u in [a, b], REALTIME was R. A stamp S then lies at
// u + (S - R) / (1 + r), where r is the rate of REALTIME against RAW and |r| <= rho, that is inside
//   [a + (S - R) - e, b + (S - R) + e],   e = |S - R| * rho / (1 - rho).
// Every reading gives such an interval and the truth is in all of them; so many readings, close to
// the stamp, narrow it: some 30 ns wide in practice, the cost of reading a clock. rho is taken from
// the kernel's discipline when the stamps are mapped. Example: a reading [1000, 1031] of R = 5000
// and a stamp S = 25,000, rho = 500 ppm: e = 10, the stamp was taken at RAW 20,990 .. 21,041.
//
// Only differences S - R are used: adding a constant to the wall clock changes nothing, bit for
// bit.
//
// A step of the wall clock between two readings makes their intervals disjoint (if it is larger
// than they are wide) and the kernel also tells of it; whoever maps asks the clock and calls
// Forget().
#ifndef SYNCLINE_AGENT_PROBE_UDP_WALL_MAP_H_
#define SYNCLINE_AGENT_PROBE_UDP_WALL_MAP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "agent/probe/udp/probe_clock.h"

namespace syncline::probe {

class WallMap {
 public:
  struct Interval {
    int64_t lo_raw_ns = 0;
    int64_t hi_raw_ns = 0;
  };

  void Add(const WallReading& reading);
  void Forget() { next_ = size_ = 0; }
  // At most half the speed of time itself: beyond, nothing could be said.
  void set_rate_ppb_max(int64_t rate_ppb_max) {
    rate_ppb_max_ = std::clamp<int64_t>(rate_ppb_max, 0, 500'000'000);
  }

  // Where the stamp lies. Nothing when there is no reading after it (a step between the last
  // reading and the stamp would go unseen), none within a second of it, or when the readings
  // contradict each other.
  std::optional<Interval> ToRaw(int64_t realtime_ns) const;

 private:
  static constexpr size_t kCapacity = 32;
  std::array<WallReading, kCapacity> readings_;  // a ring
  size_t next_ = 0;
  size_t size_ = 0;
  int64_t rate_ppb_max_ = 500'000;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_WALL_MAP_H_
