// SPDX-License-Identifier: Apache-2.0
// From a clock that stamps packets (CLOCK_REALTIME for the kernel's stamps, the clock of a network
// device for its own) to CLOCK_MONOTONIC_RAW, as an interval that contains the truth, also when
// that clock is stepped meanwhile and nobody tells of it.
//
// A reading says: at some RAW instant u in [a, b], the clock said R. If it was not set between
// reading and stamp, a stamp S lies at u + (S - R) / (1 + r), where r is the rate of the clock
// against RAW and |r| <= rho, that is inside
//   [a + (S - R) - e, b + (S - R) + e],   e = |S - R| * rho / (1 - rho).
// rho is what the clock's discipline allowed when it was read or allows when the stamp is mapped,
// whichever is more. Example: a reading [1000, 1031] of R = 5000 and a stamp S = 25,000,
// rho = 500 ppm: e = 10, the stamp was taken at RAW 20,990 .. 21,041.
//
// Steps. A stamp is mapped by readings from both sides of it: some taken before the packet was
// stamped, some after the stamp was fetched, each within kReachNs of the fetching. Assumed is one
// step at most in that time. Wherever it is, either all readings before or all readings after are
// of the stamp's own side of it. So the truth is in the intersection of the intervals of the one
// side or in that of the other, and the result is the hull of both. A step that is larger than the
// intervals are wide makes them disjoint, and then nothing is said; a smaller one is covered by the
// hull. A step of the stamp alone, between its taking and its fetching (tests do that to whole
// hosts), is the same case.
//
// That a reading was taken before the packet was stamped is certain for what this host sends
// (before the send). For what it receives the readings after say where the stamp lies, and only
// readings older than that by kMarginNs count: for one to be taken for older wrongly, the stamping
// clock must have gone back by more than kMarginNs between stamp and reading, and all earlier
// readings contradict that.
//
// Only differences S - R are used: adding a constant to the clock changes nothing, bit for
// bit.
#ifndef SYNCLINE_AGENT_PROBE_UDP_STAMP_MAP_H_
#define SYNCLINE_AGENT_PROBE_UDP_STAMP_MAP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "agent/probe/udp/probe_clock.h"

namespace syncline::probe {

class StampMap {
 public:
  // Nobody sets a clock twice within twice this.
  static constexpr int64_t kReachNs = 1'000'000;
  static constexpr int64_t kMarginNs = 2'000;
  // Half the speed of time itself: beyond, nothing could be said.
  static constexpr int64_t kRatePpbMax = 500'000'000;

  struct Stamp {
    int64_t clock_ns = 0;
    // Readings that end by then were taken before the packet was stamped; nothing: not known.
    std::optional<int64_t> before_raw_ns;
    // Readings that begin from then on were taken after the stamp was fetched.
    int64_t fetched_raw_ns = 0;
  };
  enum class Answer { kKnown, kNoReadings, kContradiction };
  struct Interval {
    Answer answer = Answer::kNoReadings;
    int64_t lo_raw_ns = 0;  // when kKnown
    int64_t hi_raw_ns = 0;
  };

  // In the order in which they were taken.
  void Add(const ClockReading& reading);
  void Forget() { next_ = size_ = 0; }
  void set_rate_ppb_max(int64_t rate_ppb_max) {
    rate_ppb_max_ = std::clamp<int64_t>(rate_ppb_max, 0, kRatePpbMax);
  }

  // Where the stamp lies. kNoReadings when one of the sides has none, kContradiction when any two
  // readings of the last second do.
  Interval ToRaw(const Stamp& stamp) const;

 private:
  // What some readings say together: all of it holds, or none.
  struct Side {
    int64_t lo_raw_ns;
    int64_t hi_raw_ns;
    bool any = false;
    void Add(const Side& other);
  };
  std::optional<Side> ByReading(const ClockReading& reading, int64_t clock_ns) const;

  static constexpr size_t kCapacity = 64;
  std::array<ClockReading, kCapacity> readings_;  // a ring
  size_t next_ = 0;
  size_t size_ = 0;
  int64_t rate_ppb_max_ = 500'000;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_STAMP_MAP_H_
