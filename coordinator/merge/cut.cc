// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/cut.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"

namespace syncline::merge {
namespace {

// As much as this outside of a cut is read in seconds.
constexpr double kLongNs = 120e9;

}  // namespace

std::optional<timeline::Interval> Covered(const OpenedInputs& inputs) {
  const std::optional<timeline::Interval>& window = inputs.build.window;
  if (window.has_value() && window->begin < window->end) return window;
  std::optional<timeline::Interval> covered;
  for (const timeline::NodeInput& node : inputs.nodes) {
    const auto extent = ExtentOf(node.readers);
    if (!extent.has_value()) continue;
    const TimelineTime begin = node.placement->At(extent->begin_ns);
    TimelineTime end = node.placement->At(extent->end_ns);
    end.ns += end.ns < kUnknownHi ? 1 : 0;  // there may be an event at it
    if (!covered.has_value()) covered = timeline::Interval{begin, end};
    covered->begin = std::min(covered->begin, begin);
    covered->end = std::max(covered->end, end);
  }
  return covered;
}

absl::Status CheckRange(const Range& range) {
  if (!range.from.has_value() || !range.to.has_value() || *range.from < *range.to) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("--from must be before --to");
}

absl::Status ChooseCut(const Range& range, OpenedInputs* inputs) {
  if (!range.from.has_value() && !range.to.has_value()) return absl::OkStatus();
  const std::optional<timeline::Interval> covered = Covered(*inputs);
  if (!covered.has_value()) return absl::OkStatus();  // there is no event to cut
  const timeline::Interval asked{range.from.value_or(covered->begin),
                                 range.to.value_or(covered->end)};
  const std::string window =
      absl::StrCat("the recording's window is ", SignedDurationText(covered->begin.ns), " to ",
                   SignedDurationText(covered->end.ns));
  if (asked.begin >= covered->end || asked.end <= covered->begin) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing was recorded",
        range.from.has_value() ? " from " + SignedDurationText(range.from->ns) : "",
        range.to.has_value() ? " to " + SignedDurationText(range.to->ns) : "", ": ", window));
  }
  for (const auto& [option, outside] : {std::pair("--from", asked.begin < covered->begin),
                                        std::pair("--to", asked.end > covered->end)}) {
    if (!outside) continue;
    inputs->complaints.push_back(
        absl::StrCat(option, " is outside the recorded range and is limited to it: ", window));
  }
  inputs->build.cut =
      timeline::Interval{std::max(asked.begin, covered->begin), std::min(asked.end, covered->end)};
  return absl::OkStatus();
}

void ChooseLookBack(const LookBack& look_back, OpenedInputs* inputs) {
  const std::optional<timeline::Interval>& cut = inputs->build.cut;
  if (!cut.has_value() || look_back.how == LookBack::How::kAll) return;
  const timeline::Interval covered = Covered(*inputs).value_or(*cut);
  const auto distance = [](TimelineTime from, TimelineTime to) {
    return static_cast<double>(to.ns) - static_cast<double>(from.ns);  // garbage may be far away
  };
  const double outside_ns = distance(cut->end, covered.end) + distance(covered.begin, cut->begin);
  if (look_back.how == LookBack::How::kAuto && outside_ns <= kLongNs) return;
  inputs->build.look_back_ns = look_back.most_ns;
}

timeline::Interval Shown(const Range& range, const OpenedInputs& inputs) {
  timeline::Interval shown{range.from.value_or(TimelineTime{kUnknownLo}),
                           range.to.value_or(TimelineTime{kUnknownHi})};
  if (const auto& cut = inputs.build.cut; cut.has_value()) {
    if (range.from.has_value()) shown.begin = cut->begin;
    if (range.to.has_value()) shown.end = cut->end;
  }
  return shown;
}

}  // namespace syncline::merge
