// SPDX-License-Identifier: Apache-2.0
// What happened to the clocks, and what a merge by wall clock would have made of this recording.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::GroupSeries;
using analysis::NodeReport;
using analysis::Report;

std::string InstantText(const std::optional<TimelineTime>& time) {
  return time.has_value() ? SignedDurationText(time->ns) : "-";
}

int64_t SizeOf(const NodeReport& node) {
  return node.wall_error.has_value() ? std::abs(node.wall_error->est_ns) : -1;
}

// What a merge by wall clock would get wrong: "5 of 9 tensors received before they were sent (in
// this timeline 0)".
std::vector<std::string> Mistakes(const Report& report) {
  std::vector<std::string> mistakes;
  uint64_t moved = 0;
  uint64_t groups = 0;
  for (const GroupSeries& series : report.groups) {
    if (!series.wall_shift.has_value()) continue;
    moved += series.moved_by_wall_clock;
    groups += series.groups.size();
  }
  if (groups > 0) {
    mistakes.push_back(absl::StrCat(Count(moved), " of ", Plural(groups, "time"),
                                    " a node's tasks in another step than in this timeline"));
  }
  const auto backwards = [&](uint64_t count, uint64_t all, const char* what, uint64_t here) {
    mistakes.push_back(absl::StrCat(Count(count), " of ", Plural(all, what),
                                    " received before they were sent (in this timeline ",
                                    Count(here), ")"));
  };
  const analysis::TensorReport& tensors = report.tensors;
  if (tensors.across_nodes > 0) {
    backwards(tensors.backwards_by_wall_clock, tensors.across_nodes, "tensor",
              tensors.backwards_here);
  }
  const analysis::MessageReport& messages = report.messages;
  if (messages.across_nodes > 0 && messages.backwards_by_wall_clock.has_value()) {
    backwards(*messages.backwards_by_wall_clock, messages.across_nodes, "message",
              messages.backwards_here);
  }
  return mistakes;
}

}  // namespace

bool HasClockEvents(const Report& report) { return !report.clock_events.empty(); }

void ClockEventsInFull(Page* page) {
  const Report& report = page->report();
  Table table({{"clock of", Table::Align::kLeft, true},
               {"what"},
               {"from", Table::Align::kRight},
               {"to", Table::Align::kRight}});
  for (const clocksync::ClockEvent& event : report.clock_events) {
    table.Add({event.node, clocksync::EventName(event), InstantText(event.begin),
               InstantText(event.end)});
  }
  page->Print(table);
  for (const clocksync::ClockEvent& event : report.clock_events) {
    page->Line(absl::StrCat(event.node, ": ", event.text));
  }
}

void ClockEventsInShort(Page* page) {
  std::map<std::string, uint64_t> counts;
  for (const clocksync::ClockEvent& event : page->report().clock_events) {
    ++counts[absl::StrCat(clocksync::EventName(event), " at ", event.node)];
  }
  std::vector<std::pair<std::string, uint64_t>> kinds(counts.begin(), counts.end());
  std::vector<std::string> texts;
  for (const auto* kind : Ranked(kinds, [](const auto& one) { return one.second; })) {
    texts.push_back(kind->second == 1 ? kind->first
                                      : absl::StrCat(kind->first, " (", Count(kind->second), ")"));
  }
  page->Item("Clock events",
             absl::StrCat(Count(page->report().clock_events.size()), ": ", ListText(texts)));
}

bool HasWallClocks(const Report& report) {
  return std::any_of(report.nodes.begin(), report.nodes.end(),
                     [](const NodeReport& node) { return node.wall_error.has_value(); });
}

void WallClocksInFull(Page* page) {
  const Report& report = page->report();
  for (const NodeReport* node : Ranked(report.nodes, SizeOf)) {
    if (!node->wall_error.has_value()) continue;
    page->Line(absl::StrCat("the wall clock of ", node->name, " differs from that of ",
                            page->reference(), " by ", WithBound(node->wall_error)));
  }
  for (const GroupSeries& groups : report.groups) {
    if (!groups.wall_shift.has_value()) continue;
    page->Line(absl::StrCat("the tasks of ", report.nodes[groups.node].name,
                            " would be in another step than in this timeline in ",
                            Count(groups.moved_by_wall_clock), " of ",
                            Plural(groups.groups.size(), "step"), " (",
                            Percent(static_cast<int64_t>(groups.moved_by_wall_clock),
                                    static_cast<int64_t>(groups.groups.size())),
                            ")"));
  }
  const std::vector<std::string> mistakes = Mistakes(report);
  if (!mistakes.empty())
    page->Line("A merge by wall clock would show: " + absl::StrJoin(mistakes, "; "));
}

void WallClocksInShort(Page* page) {
  const Report& report = page->report();
  std::vector<SpreadValue> errors;
  for (const NodeReport& node : report.nodes) {
    if (!node.wall_error.has_value()) continue;
    errors.push_back({node.name, node.wall_error->est_ns, WithBound(node.wall_error)});
  }
  const SpreadStyle style{
      .text = SignedDurationText, .cost = [](int64_t ns) { return std::abs(ns); }, .named = 1};
  page->Item("Wall clocks",
             absl::StrCat("compared with ", page->reference(),
                          ", in the middle of the time: ", SpreadText(std::move(errors), style)));
  const std::vector<std::string> mistakes = Mistakes(report);
  if (!mistakes.empty()) {
    page->Item("", "a merge by wall clock would show: " + absl::StrJoin(mistakes, "; "));
  }
}

}  // namespace syncline::report
