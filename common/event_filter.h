// SPDX-License-Identifier: Apache-2.0
// Events by the names of their classes: which are wanted, and a cursor that leaves the others out.
//
// Names are looked at once per class of a trace, when it is opened; an event that is not wanted
// then costs a look at one byte. Nothing of it is decoded, put in order or written.
#ifndef SYNCLINE_COMMON_EVENT_FILTER_H_
#define SYNCLINE_COMMON_EVENT_FILTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/event_cursor.h"

namespace syncline {

// Names of events in which "*" stands for any characters, none too, e.g. "lttng_ust_libc:*". None
// at all mean every event. Thread-safe: no state.
class EventPatterns {
 public:
  EventPatterns() = default;
  explicit EventPatterns(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}

  bool MatchesAll() const { return patterns_.empty(); }
  bool Matches(std::string_view event_name) const;
  const std::vector<std::string>& patterns() const { return patterns_; }

 private:
  std::vector<std::string> patterns_;
};

bool MatchesPattern(std::string_view pattern, std::string_view event_name);

// Which classes of one reader are wanted, by EventClass::index. Thread-safe: no state.
class ClassChoice {
 public:
  ClassChoice(TraceReader* reader, absl::FunctionRef<bool(const EventClass&)> is_wanted);

  bool IsWanted(const EventRecord& record) const { return wanted_[record.event_class->index] != 0; }
  bool all() const { return all_; }

 private:
  std::vector<uint8_t> wanted_;
  bool all_ = true;
};

// Looks at one event of a class that is wanted: is it, too? Gives the same answer when it is asked
// again.
using EventLook = std::function<bool(EventCursor&, const EventRecord&)>;

// Only the events of `cursor` that are wanted; `cursor` itself where all are. Everything else is
// the cursor's own: losses too, of whatever events. Without `look` the class decides.
std::unique_ptr<EventCursor> KeepWanted(std::unique_ptr<EventCursor> cursor,
                                        std::shared_ptr<const ClassChoice> choice,
                                        EventLook look = nullptr);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_EVENT_FILTER_H_
