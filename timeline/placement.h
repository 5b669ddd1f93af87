// SPDX-License-Identifier: Apache-2.0
// Where a node's trace times lie on the timeline: the one place of the merge that moves times.
//
// ModelPlacement asks the clock model: the only honest one. ShiftPlacement adds a constant: for
// traces that come without a recording (placed by their own wall clock, bound unknown), and to show
// what a merge by wall clock would do.
//
// Thread-safety: one thread per object (At() remembers where it was).
#ifndef SYNCLINE_TIMELINE_PLACEMENT_H_
#define SYNCLINE_TIMELINE_PLACEMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "clocksync/clock_line.h"
#include "clocksync/clock_model.h"
#include "common/time.h"

namespace syncline::timeline {

class Placement {
 public:
  virtual ~Placement() = default;
  // Monotone: a <= b implies At(a) <= At(b). Fast for times that mostly go forward.
  virtual TimelineTime At(int64_t clock_ns) = 0;
  // At() of each of `times_ns`, in place; several times as fast.
  virtual void PlaceAll(std::span<int64_t> times_ns) {
    for (int64_t& ns : times_ns) ns = At(ns).ns;
  }
  // The line that At() follows where `clock_ns` lies on it; nullopt: there is none.
  virtual std::optional<clocksync::ClockLine> LineAt(int64_t) { return std::nullopt; }
  // Distance to the ends of the interval around At(clock_ns), ns; nullopt: unknown.
  virtual std::optional<int64_t> BoundNs(int64_t clock_ns) const = 0;
  // The inverse of At().
  virtual int64_t ClockNs(TimelineTime time) const = 0;
  virtual ClockId clock() const = 0;
  // The same again, for another thread; null: there is no other.
  virtual std::unique_ptr<Placement> Clone() const { return nullptr; }
};

// timeline = clock + shift_ns, bound unknown.
std::unique_ptr<Placement> ShiftPlacement(ClockId clock, int64_t shift_ns);

// By the model, which must know `clock` and outlive the placement.
std::unique_ptr<Placement> ModelPlacement(const clocksync::ClockModel& model, ClockId clock);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_PLACEMENT_H_
