// SPDX-License-Identifier: Apache-2.0
// Typed time.
//
// Two kinds of time never mix in this project:
//   NodeTime      what a clock of a node read: {clock, ns}. Nothing is corrected.
//   TimelineTime  ns since T, the start of the recording's window, at the rate of the reference
//                 node's CLOCK_MONOTONIC_RAW.
// The only bridge is clocksync's ClockModel, and what crosses it carries {est, lo, hi}: the truth
// lies in [lo, hi], the estimate is the best single number in it (not its centre).
//
// Sign, written once: offset = remote - local.
#ifndef SYNCLINE_COMMON_TIME_H_
#define SYNCLINE_COMMON_TIME_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

namespace syncline {

// Which clock of a node. The value is part of the recording format: never renumber.
enum class ClockKind : uint8_t {
  kMonotonic = 0,  // CLOCK_MONOTONIC: LTTng's trace clock, slewed by NTP
  kRaw = 1,        // CLOCK_MONOTONIC_RAW: the clock of all clock mathematics
  kRealtime = 2,   // CLOCK_REALTIME, ns since the Unix epoch
  kTsc = 3,        // the processor's time stamp counter, in ticks
  kDevice = 4,     // a device's own clock; ClockId::device tells which
  kBoottime = 5,   // CLOCK_BOOTTIME
};

// A clock, unique in a recording. `node` is the node's index in the recording's list of nodes.
struct ClockId {
  uint32_t node = 0;
  ClockKind kind = ClockKind::kMonotonic;
  uint8_t device = 0;
  auto operator<=>(const ClockId&) const = default;
};

// An instant as a node's clock read it. Comparable only within one clock.
struct NodeTime {
  ClockId clock;
  int64_t ns = 0;
  bool operator==(const NodeTime&) const = default;
};

// An instant on the merged timeline: ns counted from T (negative before it).
struct TimelineTime {
  int64_t ns = 0;
  auto operator<=>(const TimelineTime&) const = default;
};

// Ends of an interval of which nothing is known.
inline constexpr int64_t kUnknownLo = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kUnknownHi = std::numeric_limits<int64_t>::max();

// A number in ns with the interval that contains the truth: lo <= est <= hi.
struct DurationEstimate {
  int64_t est_ns = 0;
  int64_t lo_ns = kUnknownLo;
  int64_t hi_ns = kUnknownHi;

  bool bounded() const { return lo_ns != kUnknownLo && hi_ns != kUnknownHi; }
  // The largest distance from the estimate to an end of the interval, ns; kUnknownHi when
  // unbounded.
  int64_t bound_ns() const {
    return bounded() ? std::max(hi_ns - est_ns, est_ns - lo_ns) : kUnknownHi;
  }
};

// An instant on the timeline with the interval that contains the truth.
struct TimelineEstimate {
  TimelineTime est;
  TimelineTime lo{kUnknownLo};
  TimelineTime hi{kUnknownHi};

  bool bounded() const { return lo.ns != kUnknownLo && hi.ns != kUnknownHi; }
  int64_t bound_ns() const {
    return bounded() ? std::max(hi.ns - est.ns, est.ns - lo.ns) : kUnknownHi;
  }
};

// What can be said of two instants of different nodes.
enum class Ordering : uint8_t { kBefore, kAfter, kUndecided };

// "`before` happened before `after`", known from causality (a message, a collective), not from
// clocks.
struct CausalPair {
  NodeTime before;
  NodeTime after;
};

}  // namespace syncline

#endif  // SYNCLINE_COMMON_TIME_H_
