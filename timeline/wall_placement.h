// SPDX-License-Identifier: Apache-2.0
// Where a host's wall clock (CLOCK_REALTIME) stands on the timeline.
//
// TensorFlow's profiler stamps by the wall clock. Bracketed readings of the host's clocks, taken
// all through the recording, say what MONOTONIC read at each wall time, with an interval; from
// there the node's own placement goes on, so that profile and trace of one node move together. The
// interval of a time that crossed this way is the clock model's, the readings' share included.
//
// A wall clock may be set. Times that the step makes ambiguous, or that lie where no reading can
// say on which side of it they were, have no place: At() gives nothing, and the caller says so.
//
// Thread-safety: one thread per object (it remembers where it was).
#ifndef SYNCLINE_TIMELINE_WALL_PLACEMENT_H_
#define SYNCLINE_TIMELINE_WALL_PLACEMENT_H_

#include <cstdint>
#include <optional>

#include "clocksync/clock_model.h"
#include "common/time.h"
#include "timeline/placement.h"

namespace syncline::timeline {

class WallPlacement {
 public:
  // `placement` is of the node's trace clock. `model` may be nullptr or not know the node's wall
  // clock: then times are placed by `wall_offset_ns` (REALTIME - trace clock, as the tracer sampled
  // it), with the bound unknown. All outlive this.
  WallPlacement(const clocksync::ClockModel* model, Placement* placement,
                std::optional<int64_t> wall_offset_ns);

  // The same upon a clone of `placement`, for another thread.
  WallPlacement Upon(Placement* placement) const {
    return WallPlacement(model_, placement, wall_offset_ns_);
  }

  // nullopt: undecided, because the clock was set.
  std::optional<TimelineTime> At(int64_t realtime_ns);
  // Distance to the ends of the interval around At(), ns; nullopt: unknown.
  std::optional<int64_t> BoundNs(int64_t realtime_ns) const;
  ClockId clock() const { return clock_; }
  // Whether the wall clock was set between two of its times: by 0.1 ms or more, and not back again.
  // nullopt: one of them has no place, or nothing tells.
  std::optional<bool> WasSetBetween(int64_t begin_ns, int64_t end_ns) const;

  // False: nothing relates the wall clock to the trace clock; At() always gives nothing.
  bool known() const { return model_ != nullptr || wall_offset_ns_.has_value(); }

 private:
  // The trace clock when the wall clock reads `realtime_ns`, by the model alone.
  std::optional<int64_t> TraceClockNs(int64_t realtime_ns) const;
  // A straight piece: both ends are decided, and no step fits between them.
  struct Piece {
    int64_t begin_ns = 0;  // wall clock; empty when begin == end
    int64_t end_ns = 0;
    int64_t trace_begin_ns = 0;
    int64_t trace_length_ns = 0;
  };
  void FindPiece(int64_t realtime_ns);

  const clocksync::ClockModel* model_;
  Placement* placement_;
  std::optional<int64_t> wall_offset_ns_;
  ClockId clock_;
  Piece piece_;
  Piece bent_;  // where it was found not to be straight
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_WALL_PLACEMENT_H_
