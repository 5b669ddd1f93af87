// SPDX-License-Identifier: Apache-2.0
// What was recorded, on which nodes, and how good their clocks are.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "analysis/contradictions.h"
#include "common/duration_text.h"
#include "common/text_width.h"
#include "export/report/levels_text.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::NodeReport;
using analysis::Report;

constexpr size_t kComplaintsShown = 4;
constexpr size_t kNotesShown = 2;
constexpr size_t kTextShown = 280;  // columns of each
constexpr char kPlusMinus[] =
    "± x: the truth is at most x away, proven where it is not called likely";
constexpr int64_t kUnknownBound = kUnknownHi;  // sorts before every bound that is known

std::string BoundText(int64_t bound_ns) { return "± " + DurationText(bound_ns); }

std::string BoundText(const std::optional<int64_t>& bound_ns, const char* unknown) {
  return bound_ns.has_value() ? BoundText(*bound_ns) : unknown;
}

std::string Summary(const Report& report) {
  uint64_t processes = 0;
  uint64_t profiled = 0;  // events of profiles
  for (const NodeReport& node : report.nodes) {
    std::set<std::string> names;  // of those that only a profile speaks of
    for (const timeline::ProfileResult& profile : node.profiles) {
      profiled += profile.events;
      names.insert(profile.name);
    }
    for (const auto& process : node.processes) names.erase(process.name);
    processes += node.processes.size() + names.size();
  }
  const bool alone = report.events == 0 && profiled > 0;
  return absl::StrCat(report.from_recording ? report.recording_id + " · " : "",
                      Plural(report.nodes.size(), "node"), " · ", Count(processes),
                      processes == 1 ? " process" : " processes", " · ",
                      DurationText(report.window_end.ns - report.window_begin.ns), " · ",
                      alone ? absl::StrCat(Plural(profiled, "event"), " in profiles")
                            : Plural(report.events, "event"),
                      " · ", report.incomplete ? "INCOMPLETE" : "complete");
}

bool StoppedEarly(const Report& report) {
  return !report.stop_reason.empty() && report.stop_reason != "requested";
}

// Each of `texts` up to a limit of number and length; how many are left out, or cut.
size_t PrintFirst(const std::vector<std::string>& texts, size_t limit,
                  const std::function<void(const std::string& text)>& print) {
  size_t left = texts.size();
  for (size_t i = 0; i < std::min(texts.size(), limit); ++i) {
    print(Fit(texts[i], kTextShown));
    if (DisplayWidth(texts[i]) <= kTextShown) --left;
  }
  return left;
}

// Nodes that are not complete first, then those whose clocks are known worst.
std::vector<const NodeReport*> RankedNodes(const Report& report) {
  std::vector<const NodeReport*> nodes = Ranked(
      report.nodes, [](const NodeReport& node) { return node.bound_ns.value_or(kUnknownBound); });
  std::stable_partition(nodes.begin(), nodes.end(),
                        [](const NodeReport* node) { return node->state != "complete"; });
  return nodes;
}

// "2 of 3 complete; missing: worker-1".
void PrintStates(Page* page) {
  std::map<std::string, std::vector<std::string>> by_state;
  for (const NodeReport& node : page->report().nodes) by_state[node.state].push_back(node.name);
  const size_t complete = by_state["complete"].size();
  by_state.erase("complete");
  const size_t all = page->report().nodes.size();
  if (complete == all) return;  // the first line says it
  std::string text = absl::StrCat(Count(complete), " of ", Count(all), " complete");
  for (const auto& [state, names] : by_state) {
    absl::StrAppend(&text, "; ", state.empty() ? "unknown" : state, ": ", ListText(names));
  }
  page->Item("Nodes", text);
}

// "± 610 ns"; "-" where it is no smaller than what is proven.
std::string LikelyBoundText(const NodeReport& node) {
  if (!node.likely_bound_ns.has_value()) return "-";
  const std::string likely = BoundText(*node.likely_bound_ns);
  return likely == BoundText(node.bound_ns, "unknown") ? "-" : likely;
}

// "; likely at most ± 610 ns (if path asymmetry <= 50 %)"; "" where that says no more than is
// proven.
std::string LikelyText(const Report& report) {
  int64_t largest_ns = -1;
  int64_t largest_proven_ns = -1;
  for (const NodeReport& node : report.nodes) {
    largest_ns = std::max(largest_ns, node.likely_bound_ns.value_or(-1));
    largest_proven_ns = std::max(largest_proven_ns, node.bound_ns.value_or(-1));
  }
  if (largest_ns < 0 || BoundText(largest_ns) == BoundText(largest_proven_ns)) return "";
  return absl::StrCat("; likely at most ", BoundText(largest_ns), " (if ",
                      clocksync::AsymmetryText(report.assumption.asymmetry_percent), ")");
}

// On what the clocks of profiles rest that were taken without a recording.
std::string FileClocksText(const analysis::FileClocks& told) {
  size_t matched = 0;
  for (const analysis::FileClocks::File& file : told.files) matched += file.matched > 0 ? 1 : 0;
  return absl::StrCat(
      "by ", Plural(told.binding, "collective"), " of ", Plural(matched, "file"),
      "; assumed: the files are of one run, the rates of any two clocks differ by at most ",
      told.rate_ppm, " ppm, no clock is set, and the profiler places a device's times rightly");
}

void PrintFileClocks(Page* page) {
  const auto& told = page->report().file_clocks;
  if (!told.has_value()) return;
  if (told->compared) page->Line(FileClocksText(*told));
  for (const std::string& group : told->disagreeing) page->Warn(group);
}

void PrintBounds(Page* page) {
  const Report& report = page->report();
  std::vector<SpreadValue> bounds;
  std::vector<std::string> unknown;
  for (const NodeReport& node : report.nodes) {
    if (!node.bound_ns.has_value()) {
      unknown.push_back(node.name);
    } else {
      bounds.push_back({node.name, *node.bound_ns, BoundText(*node.bound_ns)});
    }
  }
  std::string text;
  if (analysis::ContradictionsOf(report).proven > 0) {
    text = "not known to any bound: what was recorded contradicts those that the samples prove";
  } else if (!bounds.empty()) {
    text = absl::StrCat("proven to be true within: ",
                        SpreadText(std::move(bounds), {.text = BoundText}), LikelyText(report));
  }
  if (!unknown.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "bound unknown: ", ListText(unknown));
  }
  page->Item("Clocks", text);
  PrintFileClocks(page);
  const AssumptionText assumed = TextOf(report);
  if (!assumed.warning.empty()) page->Warn(assumed.warning);
}

// "22.7 µs early", of an actual instant compared with the requested one.
std::string EarlyOrLate(const std::string& size, int64_t late_ns) {
  return late_ns == 0 ? size : absl::StrCat(size, late_ns < 0 ? " early" : " late");
}

std::string LateText(int64_t late_ns) {
  return EarlyOrLate(DurationText(std::abs(late_ns)), late_ns);
}

// "22.7 µs ± 1.91 µs early".
std::string LateText(const DurationEstimate& late) {
  return EarlyOrLate(absl::StrCat(DurationText(std::abs(late.est_ns)), " ± ",
                                  late.bounded() ? DurationText(late.bound_ns()) : "unknown"),
                     late.est_ns);
}

// The actual instants compared with the requested ones.
void PrintSkews(const char* label, const std::string& what,
                std::optional<analysis::LevelledDuration> NodeReport::*skew, Page* page) {
  std::vector<SpreadValue> skews;
  for (const NodeReport& node : page->report().nodes) {
    const auto& one = node.*skew;
    if (one.has_value()) skews.push_back({node.name, one->est_ns, LateText(*one)});
  }
  if (skews.empty()) return;
  const SpreadStyle style{
      .text = LateText, .cost = [](int64_t ns) { return std::abs(ns); }, .named = 1};
  page->Item(label, absl::StrCat(what, SpreadText(std::move(skews), style)));
}

}  // namespace

void RecordingInFull(Page* page) {
  const Report& report = page->report();
  page->Line(Summary(report));
  if (StoppedEarly(report)) page->Line("stopped: " + report.stop_reason);
  for (const std::string& complaint : report.complaints) page->Warn(complaint);
  for (const std::string& note : report.notes) page->Line("note: " + note);
}

void RecordingInShort(Page* page) {
  const Report& report = page->report();
  page->Item(report.from_recording ? "Recording" : "Traces", Summary(report));
  if (StoppedEarly(report)) page->Item("Stopped", report.stop_reason);
  size_t more = PrintFirst(report.complaints, kComplaintsShown,
                           [&](const std::string& text) { page->Warn(text); });
  more += PrintFirst(report.notes, kNotesShown,
                     [&](const std::string& text) { page->Line("note: " + text); });
  if (more > 0) page->Line(absl::StrCat(Count(more), " more, or cut here: --section recording"));
}

bool HasNodes(const Report& report) { return !report.nodes.empty(); }

void NodesInFull(Page* page) {
  const Report& report = page->report();
  std::vector<Table::Column> columns = {{"node", Table::Align::kLeft, true},
                                        {"role", Table::Align::kLeft, true},
                                        {"state"},
                                        {"events", Table::Align::kRight},
                                        {"started", Table::Align::kRight},
                                        {"stopped", Table::Align::kRight},
                                        {"bound", Table::Align::kRight}};
  const auto says_more = [](const NodeReport& node) { return LikelyBoundText(node) != "-"; };
  const auto likely_nodes = std::count_if(report.nodes.begin(), report.nodes.end(), says_more);
  if (likely_nodes > 0) columns.push_back({"likely", Table::Align::kRight});
  Table table(std::move(columns));
  for (const NodeReport* node : RankedNodes(report)) {
    std::vector<std::string> cells = {node->name,
                                      node->role,
                                      node->state,
                                      Count(node->events),
                                      WithBound(node->start_skew),
                                      WithBound(node->stop_skew),
                                      BoundText(node->bound_ns, "unknown")};
    if (likely_nodes > 0) cells.push_back(LikelyBoundText(*node));
    table.Add(std::move(cells));
  }
  page->Print(table);
  if (likely_nodes > 0 && static_cast<size_t>(likely_nodes) < report.nodes.size()) {
    page->Line("likely -: not smaller than what is proven, or not known.");
  }
  if (std::any_of(report.nodes.begin(), report.nodes.end(),
                  [](const NodeReport& node) { return node.bound_ns.has_value(); })) {
    page->Line(kPlusMinus);
  }
  PrintFileClocks(page);
  if (report.from_recording) {
    page->Line(
        absl::StrCat("started, stopped: the actual instant compared with the requested one, which "
                     "is an instant of the clock of ",
                     page->reference(), "; +: later, -: earlier."));
  }
  const AssumptionText assumed = TextOf(report);
  if (!assumed.warning.empty()) page->Warn(assumed.warning);
  if (!assumed.text.empty()) page->Line(assumed.text);
}

void NodesInShort(Page* page) {
  if (page->report().from_recording) PrintStates(page);
  PrintBounds(page);
  const std::string clock = absl::StrCat(" (clock of ", page->reference(), "): ");
  PrintSkews("Start skew", "compared with the requested instant T" + clock, &NodeReport::start_skew,
             page);
  PrintSkews("Stop skew", "compared with the requested end" + clock, &NodeReport::stop_skew, page);
}

}  // namespace syncline::report
