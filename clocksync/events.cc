// SPDX-License-Identifier: Apache-2.0
#include "clocksync/events.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"

namespace syncline::clocksync {

const char* CauseName(ClockEvent::Cause cause) {
  switch (cause) {
    case ClockEvent::Cause::kStep:
      return "step";
    case ClockEvent::Cause::kSuspend:
      return "suspend";
    case ClockEvent::Cause::kRateChange:
      return "rate";
    case ClockEvent::Cause::kFalseStamps:
      return "false stamps";
    case ClockEvent::Cause::kLoop:
      return "loop";
    case ClockEvent::Cause::kNone:
      break;
  }
  return "";
}

const char* EventName(const ClockEvent& event) {
  switch (event.kind) {
    case ClockEvent::Kind::kInfeasible:
      return event.cause == ClockEvent::Cause::kNone ? "contradiction" : CauseName(event.cause);
    case ClockEvent::Kind::kStep:
      return "clock set";
    case ClockEvent::Kind::kSlew:
      return "slew";
    case ClockEvent::Kind::kSuspend:
      return "suspend";
    case ClockEvent::Kind::kGap:
      return "gap";
    case ClockEvent::Kind::kNoSamples:
      return "no samples";
  }
  return "";
}

bool Concerns(const ClockEvent& event, std::string_view node) {
  if (event.node == node) return true;
  const size_t dashes = event.node.find("--");
  if (dashes == std::string::npos) return false;
  const std::string_view edge = event.node;
  return edge.substr(0, dashes) == node || edge.substr(dashes + 2) == node;
}

std::string TextOfBreak(const ClockEvent& event, bool backwards) {
  std::string text;
  const int64_t least = event.step_size_ns_min();
  switch (event.cause) {
    case ClockEvent::Cause::kSuspend:
      text = "was suspended: its RAW clock stood still";
      break;
    case ClockEvent::Cause::kRateChange:
      text = "its RAW clock changed its rate at once, or stepped";
      break;
    case ClockEvent::Cause::kFalseStamps:
      text = "this edge alone shows a step, its ends' other edges do not: false stamps";
      break;
    default:
      text = "its RAW clock stepped (live migration, or a paused virtual machine)";
  }
  if (!event.between.empty()) {
    text = absl::StrCat("one of the RAW clocks of ", absl::StrJoin(event.between, " and "),
                        " broke off (a step, suspend or migration); which of them, no other edge "
                        "can tell");
  }
  absl::StrAppend(&text, ": ", SignedDurationText(event.step_ns), " about");
  if (least > 0) {
    absl::StrAppend(&text, ", at least ", DurationText(least));
  } else {
    absl::StrAppend(&text, ", between ", SignedDurationText(event.step_ns_min), " and ",
                    SignedDurationText(event.step_ns_max));
  }
  absl::StrAppend(&text, "; shown by ", absl::StrJoin(event.evidence, ", "),
                  ". The timeline is split there");
  if (backwards) absl::StrAppend(&text, "; a clock went back: only the longest stretch is used");
  return text;
}

}  // namespace syncline::clocksync
