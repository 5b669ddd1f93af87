// SPDX-License-Identifier: Apache-2.0
// What of our own events a timeline shows, when it was asked for some events only.
//
// What takes several events is shown whole when any of them is wanted: a task has a begin and an
// end, a message is sent and received. What the timeline itself needs is heeded in any case, shown
// or not: who covers what, which thread and process it was, what the tracer and PyTorch left out.
// Events of other providers stand for themselves (EventPatterns).
//
// Thread-safe: no state.
#ifndef SYNCLINE_TIMELINE_SHOWN_EVENTS_H_
#define SYNCLINE_TIMELINE_SHOWN_EVENTS_H_

#include <array>
#include <cstddef>

#include "common/event_filter.h"
#include "timeline/schema.h"

namespace syncline::timeline {

class ShownEvents {
 public:
  explicit ShownEvents(const EventPatterns& wanted);

  // Whether it was asked for, itself or what it is a part of.
  bool Shows(EventKind kind) const { return shown_[static_cast<size_t>(kind)]; }
  // Whether it must be looked into, for its own sake or for others'.
  bool Heeds(EventKind kind) const { return heeded_[static_cast<size_t>(kind)]; }

 private:
  std::array<bool, kEventKinds> shown_{};
  std::array<bool, kEventKinds> heeded_{};
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_SHOWN_EVENTS_H_
