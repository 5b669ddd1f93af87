// SPDX-License-Identifier: Apache-2.0
// What happened to the clocks, for the reader of a report: who, when, by how much at least.
#ifndef SYNCLINE_CLOCKSYNC_EVENTS_H_
#define SYNCLINE_CLOCKSYNC_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"

namespace syncline::clocksync {

struct ClockEvent {
  // Part of models.json, as Cause is: never renumber.
  enum class Kind : uint8_t {
    kInfeasible,  // the samples contradict an assumption of the model; `cause` says how
    kStep,        // a clock that may be set was set: the model follows
    kSlew,        // MONOTONIC changed its rate: the model follows
    kSuspend,     // the host slept, by its own clocks
    kGap,         // samples or readings are missing for a while, or were of no use
    kNoSamples,
  };
  // Of kInfeasible: what is known of the reason.
  enum class Cause : uint8_t {
    kNone,
    kStep,         // a RAW clock jumped: live migration, a paused virtual machine
    kSuspend,      // the same, and the host says that it slept
    kRateChange,   // a RAW clock jumped a little, or changed its rate at once
    kFalseStamps,  // some stamps, or one path, say what the rest contradicts
    kLoop,         // edges around a loop contradict each other
  };
  Kind kind = Kind::kGap;
  std::string node;      // that it happened to; "a--b" where that is not known: the edge
  int64_t begin_ns = 0;  // in the RAW clock of `node`, of an edge's local node
  int64_t end_ns = 0;
  std::string text;  // without node and instant

  Cause cause = Cause::kNone;
  std::vector<std::string> between;  // of a step that one of several nodes made: these
  // How node's clock (of an edge: remote - local) stepped: estimate, and limits that hold whatever
  // its rate was meanwhile. All 0: no step, or its size is unknown.
  int64_t step_ns = 0;
  int64_t step_ns_min = 0;
  int64_t step_ns_max = 0;
  std::vector<std::string> evidence;  // edges that show it
  // The same interval on the timeline, by estimate; nullopt: it has no place there.
  std::optional<TimelineTime> begin;
  std::optional<TimelineTime> end;

  // The size that the step has at least: 0 when a change of rate may be all there was.
  int64_t step_size_ns_min() const {
    return step_ns_min > 0 ? step_ns_min : step_ns_max < 0 ? -step_ns_max : 0;
  }
};

// "a step", ... for people; "" for kNone.
const char* CauseName(ClockEvent::Cause cause);
// What it is, in a word or two: "step", "slew", "gap", ...
const char* EventName(const ClockEvent& event);
// Whether `node`'s clock is concerned: it is the event's own, or at an end of its edge.
bool Concerns(const ClockEvent& event, std::string_view node);

// The sentence about a clock that broke the model's assumptions, from the event's other fields.
std::string TextOfBreak(const ClockEvent& event, bool backwards);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_EVENTS_H_
