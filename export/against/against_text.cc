// SPDX-License-Identifier: Apache-2.0
#include "export/against/against_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/why/changes.h"
#include "common/duration_text.h"
#include "export/report/table.h"
#include "export/report/units.h"
#include "export/why/change_text.h"
#include "export/why/labelled_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::against::Comparison;
using analysis::against::Condition;
using analysis::against::ConditionChange;
using analysis::against::EdgeChange;
using analysis::against::kStepsLeast;
using analysis::against::Mismatch;
using analysis::against::Per;
using analysis::against::RowChange;
using analysis::against::RowKind;
using analysis::against::StepChange;
using analysis::against::Summary;
using analysis::against::Where;
using analysis::why::Change;
using State = RowChange::State;

constexpr size_t kRowsShown = 20;   // of the operators
constexpr size_t kOthersShown = 8;  // of each other table
constexpr size_t kStepsShown = 8;
constexpr size_t kNameColumns = 60;
constexpr size_t kLineColumns = 2000;
constexpr double kSameCalls = 0.02;        // numbers of calls that differ by less are one
constexpr int64_t kConditionPpm = 30'000;  // by how much these must differ to be said
constexpr size_t kFewRecordings = 4;
constexpr int64_t kMsNs = 1'000'000;

// With as many decimals in all rows of a table: rows are compared with each other.
class Numbers {
 public:
  // Of a table whose largest number is about `scale_ns`.
  explicit Numbers(int64_t scale_ns)
      : decimals_(scale_ns < 10 * kMsNs    ? 3
                  : scale_ns < 100 * kMsNs ? 2
                                           : 1) {}

  std::string Ms(int64_t ns) const {
    std::string text = absl::StrFormat("%.*f", decimals_, static_cast<double>(ns) / 1e6);
    const bool zero = text.find_first_not_of("-0.") == std::string::npos;
    return zero && text[0] == '-' ? text.substr(1) : text;
  }
  std::string Signed(int64_t ns) const {
    const std::string text = Ms(ns);
    const bool zero = text.find_first_not_of("0.") == std::string::npos;
    return ns > 0 && !zero ? "+" + text : text;
  }
  std::string Interval(const Change& change) const {
    return absl::StrCat("[", Ms(change.change.lo_ns), ", ", Ms(change.change.hi_ns), "]");
  }

 private:
  int decimals_;
};

std::string PercentOf(int64_t ppm) {
  const std::string text = absl::StrFormat("%+.1f", static_cast<double>(ppm) / 1e4);
  return text == "-0.0" || text == "+0.0" ? "0.0" : text;
}

std::string SummaryText(const Summary& side, const std::string& recording) {
  std::string text = absl::StrCat(Printed(recording, kLineColumns), ": ");
  absl::StrAppend(&text, DurationText(side.counted_ns), ", ");
  absl::StrAppend(&text, Plural(side.nodes, "node"), ", ");
  if (side.ranks > 0) {
    absl::StrAppend(&text, Plural(side.ranks, "rank"));
  } else {
    const char* const what = side.only_profiles ? " profile" : " process";
    const char* const several = side.only_profiles ? "s" : "es";
    absl::StrAppend(&text, side.processes, what, side.processes == 1 ? "" : several);
  }
  if (side.steps > 0) absl::StrAppend(&text, ", ", Plural(side.steps, "step"));
  if (side.detail != "full") absl::StrAppend(&text, ", --detail ", side.detail);
  if (side.incomplete)
    absl::StrAppend(&text, "; not complete (`syncline report` says what is lost)");
  return text;
}

void WriteSteps(const Comparison& comparison, LabelledText* writer) {
  if (comparison.steps.empty()) return;
  int64_t largest_ns = 0;
  for (const StepChange& step : comparison.steps) {
    largest_ns = std::max(largest_ns, step.length.now_ns);
  }
  const Numbers numbers(largest_ns);
  Table table({Table::Names("Steps"),
               {"median before", Table::Align::kRight},
               {"now", Table::Align::kRight},
               {"mean before", Table::Align::kRight},
               {"now", Table::Align::kRight},
               {"change", Table::Align::kRight},
               {"[95 %]", Table::Align::kLeft},
               {"%", Table::Align::kRight}});
  size_t shown = 0;
  bool few = false;
  for (const StepChange& step : comparison.steps) {
    if (shown++ == kStepsShown) break;
    few |= !step.has_interval;
    table.Add({"  " + Printed(step.name, kNameColumns), numbers.Ms(step.median_before_ns),
               numbers.Ms(step.median_now_ns), numbers.Ms(step.length.before_ns),
               numbers.Ms(step.length.now_ns), numbers.Signed(step.length.change.est_ns),
               step.has_interval ? numbers.Interval(step.length) : "-",
               PercentOf(step.length.est_ppm)});
  }
  writer->Raw(table.Format(writer->width(), 0));
  if (comparison.steps.size() > kStepsShown) {
    writer->Indented(absl::StrCat(kStepsShown, " of ", comparison.steps.size(),
                                  " kinds of steps are shown: --json has them all"));
  }
  if (few) {
    writer->Indented(absl::StrCat("-: fewer than ", kStepsLeast, " steps on a side"));
  }
  writer->Blank();
}

std::string WhereText(const Comparison& comparison, const Where& where) {
  if (where.of < 2 || where.changed == 0) return "";
  if (where.changed == where.of) return "all";
  const auto& most = comparison.members[where.most];
  if (where.changed > 1) return absl::StrCat(where.changed, " of ", where.of);
  return Printed(most.name, 30);
}

std::string CallsOf(double calls) { return calls == 0 ? "none" : CallsText(calls); }

// One number where both sides have it, but for the steps at the ends.
std::string CallsColumn(const RowChange& row) {
  const std::string before = CallsOf(row.calls_before);
  const std::string now = CallsOf(row.calls_now);
  const double most = std::max(row.calls_before, row.calls_now);
  const bool same = std::abs(row.calls_now - row.calls_before) < kSameCalls * most;
  return before == now || same ? now : absl::StrCat(before, " → ", now);
}

enum class Group : uint8_t { kOperators, kCollectives, kDevices };

Group GroupOf(RowKind kind) {
  switch (kind) {
    case RowKind::kTask:
    case RowKind::kRegion:
      return Group::kOperators;
    case RowKind::kDevice:
      return Group::kDevices;
    case RowKind::kCollective:
    case RowKind::kAllIn:
      break;
  }
  return Group::kCollectives;
}

const char* TitleOf(Group group) {
  switch (group) {
    case Group::kOperators:
      return "Operators and tasks";
    case Group::kDevices:
      return "Work of devices";
    case Group::kCollectives:
      break;
  }
  return "Collectives";
}

std::string NameOf(const RowChange& row, const std::set<std::string>& twice) {
  std::string name = Printed(row.name.name, kNameColumns);
  const std::string domain = Printed(row.name.domain, kNameColumns);
  switch (row.name.kind) {
    case RowKind::kCollective:
      break;
    case RowKind::kAllIn:
      absl::StrAppend(&name, ", once all are in");
      break;
    case RowKind::kRegion:
      absl::StrAppend(&name, ", begin to end");
      break;
    case RowKind::kTask:
    case RowKind::kDevice:
      break;
  }
  return twice.contains(row.name.name) ? absl::StrCat(name, " (", domain, ")") : name;
}

Table RowsTable(Group group, const Comparison& comparison) {
  return Table(
      {{TitleOf(group), Table::Align::kLeft, true, 24},
       {"before", Table::Align::kRight},
       {"now", Table::Align::kRight},
       {"change", Table::Align::kRight},
       {"[95 %]", Table::Align::kLeft},
       {comparison.per == Per::kStep ? "% of step" : "% of time", Table::Align::kRight},
       {"calls", Table::Align::kRight},
       {comparison.members.size() > 1 ? (comparison.now.ranks > 0 ? "ranks" : "where") : "",
        Table::Align::kLeft}});
}

void WriteRows(Group group, const Comparison& comparison, bool full, LabelledText* writer) {
  std::vector<const RowChange*> rows;
  size_t changed = 0;
  std::set<std::pair<RowKind, std::string>> names;
  std::set<std::string> twice;
  for (const RowChange& row : comparison.rows) {
    if (GroupOf(row.name.kind) != group) continue;
    if (!names.insert({row.name.kind, row.name.name}).second) twice.insert(row.name.name);
    changed += row.state != State::kSame ? 1 : 0;
    if (full || row.state != State::kSame) rows.push_back(&row);
  }
  if (rows.empty()) return;
  const size_t most = full ? rows.size() : group == Group::kOperators ? kRowsShown : kOthersShown;
  const size_t shown = std::min(most, rows.size());
  int64_t largest_ns = 0;
  for (const RowChange* row : rows) {
    largest_ns = std::max({largest_ns, row->time.now_ns, row->time.before_ns});
  }
  const Numbers numbers(largest_ns);
  Table table = RowsTable(group, comparison);
  for (const RowChange* row : std::span(rows).first(shown)) {
    const bool tested = row->time.change.lo_ns != INT64_MIN;
    const char* const mark = full && row->state != State::kSame ? "* " : "  ";
    table.Add({mark + NameOf(*row, twice), numbers.Ms(row->time.before_ns),
               numbers.Ms(row->time.now_ns), numbers.Signed(row->time.change.est_ns),
               tested ? numbers.Interval(row->time) : "-",
               tested ? PercentOf(row->time.est_ppm) : "-", CallsColumn(*row),
               WhereText(comparison, row->where)});
  }
  writer->Raw(table.Format(writer->width(), 0));
  if (shown < rows.size()) {
    writer->Indented(absl::StrCat("and ", rows.size() - shown, " more: --full has them all"));
  }
  if (group == Group::kCollectives) {
    writer->Indented("waiting for other ranks is part of these, but not \"once all are in\"");
  }
  if (full) {
    writer->Indented("*: changed. -: less than the limit on both sides, and not tested");
  }
  writer->Blank();
}

// Where machines had much more, or less, room for the job: that may be why its operators changed.
std::vector<std::string> ConditionSentences(const Comparison& comparison) {
  std::vector<std::string> sentences;
  for (const ConditionChange& one : comparison.conditions) {
    if (std::abs(one.now_ppm - one.before_ppm) < kConditionPpm) continue;
    const char* what = one.kind == Condition::Kind::kWaiting     ? "waited for a CPU"
                       : one.kind == Condition::Kind::kThrottled ? "were throttled"
                                                                 : "were blocked in the kernel";
    sentences.push_back(absl::StrCat(
        "main threads ", what, " for ", PercentOfPpm(one.now_ppm), " of the time now, ",
        PercentOfPpm(one.before_ppm), " before: that may be why operators take ",
        one.now_ppm > one.before_ppm ? "longer" : "less time", " now"));
  }
  return sentences;
}

std::string ShareText(double share) {
  return share < 0 ? "-" : PercentOfPpm(std::llround(share * 1e6));
}

std::string RttText(int64_t rtt_us) {
  return rtt_us < 0 ? "-" : absl::StrFormat("%.3f", static_cast<double>(rtt_us) / 1e3);
}

void WriteEdges(const Comparison& comparison, bool full, LabelledText* writer) {
  Table table({Table::Names("Sent over TCP, kB"),
               {"before", Table::Align::kRight},
               {"now", Table::Align::kRight},
               {"%", Table::Align::kRight},
               {"sent again before", Table::Align::kRight},
               {"now", Table::Align::kRight},
               {"RTT ms before", Table::Align::kRight},
               {"now", Table::Align::kRight}});
  size_t shown = 0;
  size_t rest = 0;
  for (const EdgeChange& edge : comparison.edges) {
    if (!full && !edge.changed) continue;
    if (!full && shown == kOthersShown) {
      ++rest;
      continue;
    }
    ++shown;
    const double change = (edge.now.bytes - edge.before.bytes) / edge.before.bytes;
    table.Add(
        {absl::StrCat(full && edge.changed ? "* " : "  ", Printed(edge.now.from, kNameColumns),
                      " to ", Printed(edge.now.to, kNameColumns)),
         absl::StrFormat("%.1f", edge.before.bytes / 1e3),
         absl::StrFormat("%.1f", edge.now.bytes / 1e3),
         edge.before.bytes > 0 ? PercentOf(std::llround(change * 1e6)) : "-",
         ShareText(edge.before.retransmitted), ShareText(edge.now.retransmitted),
         RttText(edge.before.rtt_us), RttText(edge.now.rtt_us)});
  }
  if (shown == 0) return;
  writer->Raw(table.Format(writer->width(), 0));
  if (rest > 0) writer->Indented(absl::StrCat("and ", rest, " more: --full has them all"));
  writer->Indented("by counters of the whole recording, without intervals");
  writer->Blank();
}

// Per second: where everything is slower nothing takes more of a second, but each call takes
// longer.
void WriteCalls(const Comparison& comparison, LabelledText* writer) {
  std::vector<const RowChange*> rows;
  int64_t largest_ns = 0;
  for (const RowChange& row : comparison.rows) {
    if (!row.call_changed) continue;
    rows.push_back(&row);
    largest_ns = std::max({largest_ns, row.call->before_ns, row.call->now_ns});
  }
  if (rows.empty()) return;
  std::sort(rows.begin(), rows.end(), [](const RowChange* a, const RowChange* b) {
    return std::abs(a->call->est_ppm) > std::abs(b->call->est_ppm);
  });
  const Numbers numbers(largest_ns);
  Table table({Table::Names("A call of"),
               {"before", Table::Align::kRight},
               {"now", Table::Align::kRight},
               {"change", Table::Align::kRight},
               {"[95 %]", Table::Align::kLeft},
               {"%", Table::Align::kRight}});
  const size_t shown = std::min(kRowsShown, rows.size());
  for (const RowChange* row : std::span(rows).first(shown)) {
    table.Add({"  " + NameOf(*row, {}), numbers.Ms(row->call->before_ns),
               numbers.Ms(row->call->now_ns), numbers.Signed(row->call->change.est_ns),
               numbers.Interval(*row->call), PercentOf(row->call->est_ppm)});
  }
  writer->Raw(table.Format(writer->width(), 0));
  if (shown < rows.size()) {
    writer->Indented(absl::StrCat("and ", rows.size() - shown, " more: --json has them all"));
  }
  writer->Blank();
}

// What the tables' numbers are.
std::string TimesText(const Comparison& comparison) {
  const std::string of = comparison.per == Per::kStep
                             ? absl::StrCat("a step (", Printed(comparison.step_name, kNameColumns),
                                            ", from its begin to the next one's)")
                             : std::string("a second of what was recorded, or ms a call");
  return absl::StrCat("ms ", of, comparison.now.ranks > 0 ? ", mean over ranks" : "",
                      "; of operators and tasks without what ran within them");
}

std::string LimitsText(const Comparison& comparison) {
  return absl::StrCat(PercentOfPpm(comparison.limit_ppm),
                      comparison.per == Per::kStep ? " of the step" : " of the time", " and ",
                      PercentOfPpm(comparison.own_limit_ppm), " of what it took before");
}

// What is not in the tables.
std::string RestText(const Comparison& comparison) {
  const size_t changed = comparison.changed();
  const size_t rest = comparison.tested - std::min(changed, comparison.tested);
  const size_t small = comparison.rows.size() - comparison.tested;
  std::string text =
      changed == 0 && comparison.per == Per::kSecond
          ? "no operator, kernel or collective certainly changed its part of the time "
            "by at least "
      : changed == 0 ? "no operator, kernel or collective certainly changed by at least "
                     : absl::StrCat(changed, " of ", comparison.rows.size(),
                                    " names changed certainly and by at least ");
  absl::StrAppend(&text, LimitsText(comparison), "; ", rest,
                  rest == 1 ? " other was tested and changed" : " others were tested and changed",
                  " by less, or not certainly; ", small, small == 1 ? " takes" : " take",
                  " less than ", PercentOfPpm(comparison.limit_ppm), " on both sides");
  size_t appeared = 0;
  size_t vanished = 0;
  for (const RowChange& row : comparison.rows) {
    if (row.state != State::kSame) continue;
    appeared += row.calls_before == 0 ? 1 : 0;
    vanished += row.calls_now == 0 ? 1 : 0;
  }
  if (appeared > 0) absl::StrAppend(&text, "; ", appeared, " of all these ran only now");
  if (vanished > 0) absl::StrAppend(&text, "; ", vanished, " only before");
  return text;
}

std::string DriftText(const Comparison& comparison) {
  if (comparison.drift_known()) {
    return absl::StrCat("the intervals hold how the ", comparison.befores.size(),
                        " recordings before differ from each other: of 20 operators that did not "
                        "change, one lies outside by chance",
                        comparison.befores.size() < kFewRecordings
                            ? ". With so few of them the intervals are wide"
                            : "");
  }
  return absl::StrCat(
      "recordings of one job differ by several percent without any change, and one recording "
      "before does not tell by how much: smaller changes than ",
      PercentOfPpm(comparison.own_limit_ppm),
      " of an operator are not named. Several --against put that into the intervals");
}

std::vector<std::string> TrustSentences(const Comparison& comparison) {
  std::vector<std::string> lines = {RestText(comparison)};
  if (comparison.tested == 0) return lines;
  lines.push_back(
      absl::StrCat("intervals hold 95 % each; as ", comparison.tested,
                   comparison.tested == 1 ? " row was" : " rows were",
                   " tested, what is named also passed a stricter test. Both are by how "
                   "steps vary that follow each other: what varies more slowly (other "
                   "work on the machine, a warm-up) is taken for a change"));
  lines.push_back(DriftText(comparison));
  return lines;
}

}  // namespace

std::string AgainstText(const ComparedReports& compared, const AgainstTextOptions& options) {
  const Comparison& comparison = compared.comparison;
  LabelledText writer(options.width, options.color);
  if (comparison.mismatch != Mismatch::kNone) {
    writer.Say("REFUSED", Printed(comparison.mismatch_text, kLineColumns));
    return writer.Take();
  }
  writer.Say("NOW", SummaryText(comparison.now, compared.now));
  std::vector<std::string> befores;
  for (size_t i = 0; i < comparison.befores.size(); ++i) {
    befores.push_back(SummaryText(comparison.befores[i], compared.before[i]));
  }
  writer.Say("BEFORE", befores);
  std::vector<std::string> notes;
  for (const std::string& note : comparison.notes) notes.push_back(Printed(note, kLineColumns));
  for (std::string& sentence : ConditionSentences(comparison)) notes.push_back(std::move(sentence));
  writer.Say("DIFFERS", notes);
  writer.Say("TIMES", TimesText(comparison));
  writer.Blank();
  WriteSteps(comparison, &writer);
  for (const Group group : {Group::kOperators, Group::kDevices, Group::kCollectives}) {
    WriteRows(group, comparison, options.full, &writer);
  }
  WriteEdges(comparison, options.full, &writer);
  WriteCalls(comparison, &writer);
  writer.Say("TRUST", TrustSentences(comparison));
  return writer.Take();
}

}  // namespace syncline::report
