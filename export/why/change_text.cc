// SPDX-License-Identifier: Apache-2.0
#include "export/why/change_text.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "export/report/units.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Change;
using analysis::why::ComparedSide;
using analysis::why::ComparedSides;
using analysis::why::kLimitStepsMin;
using analysis::why::LimitResult;
using analysis::why::MeanEstimate;

constexpr size_t kNameColumns = 60;
constexpr size_t kPathColumns = 200;
constexpr size_t kRefusalColumns = 2000;
constexpr size_t kFewRecordings = 4;
constexpr int64_t kShownPpm = 5'000;  // of the step before: what has a row must change by
constexpr int64_t kRankPpm = 20'000;  // of the step before: what a rank's part must change by
constexpr size_t kRankRows = 12;

std::string Interval(const MeanEstimate& mean) {
  return absl::StrCat("[", Ms(mean.lo_ns), ", ", Ms(mean.hi_ns), "]");
}

// "+15.2", of millionths.
std::string PercentOf(int64_t ppm) {
  const std::string text = absl::StrFormat("%+.1f", static_cast<double>(ppm) / 1e4);
  return text == "-0.0" || text == "+0.0" ? "0.0" : text;
}

std::string PercentInterval(const Change& change) {
  return absl::StrCat("[", PercentOf(change.lo_ppm), ", ", PercentOf(change.hi_ppm), "]");
}

std::string SideText(const ComparedSide& side, const std::string& recording, const char* member) {
  std::string text = Printed(recording, kPathColumns) + ": ";
  // Profiles have none.
  if (side.window_ns > 0) {
    absl::StrAppendFormat(&text, "%.1f s, ", static_cast<double>(side.window_ns) / 1e9);
  }
  absl::StrAppend(&text, Plural(side.ranks, member), ", ", Plural(side.steps, "step"),
                  " of one class");
  if (!side.step_class.empty()) {
    absl::StrAppend(&text, " (", Printed(side.step_class, kPathColumns), ")");
  }
  if (!side.lost_events.has_value()) {
    absl::StrAppend(&text, "; how many events were lost is not known");
  } else if (*side.lost_events > 0) {
    absl::StrAppend(&text, "; ", Plural(*side.lost_events, "event"), " lost");
  }
  if (side.left_out > 0) absl::StrAppend(&text, "; ", Plural(side.left_out, "step"), " left out");
  if (side.incomplete) absl::StrAppend(&text, "; not complete");
  return text;
}

std::string StepSentence(const Change& step) {
  const char* const kind = !step.certain()          ? "no certain change"
                           : step.change.est_ns > 0 ? "longer"
                                                    : "shorter";
  return absl::StrCat(kind, ": ", Ms(step.now_ns), " ms now, ", Ms(step.before_ns),
                      " ms before, a change of ", SignedMs(step.change.est_ns), " ms ",
                      Interval(step.change), ", ", PercentOf(step.est_ppm), " % ",
                      PercentInterval(step));
}

// Of a limit that was judged.
const char* StateText(const LimitResult& result) {
  if (result.state == LimitResult::State::kAbove) return "ABOVE";
  return result.change->hi_ppm > result.limit.ppm ? "not certainly above" : "not above";
}

std::string LimitSentence(const LimitResult& result) {
  const std::string text = Printed(result.limit.text, kNameColumns);
  if (result.state == LimitResult::State::kNotJudged) {
    return absl::StrCat(text, ": not judged: ", result.why);
  }
  return absl::StrCat(text, ": ", StateText(result), ": ", PercentOf(result.change->est_ppm), " % ",
                      PercentInterval(*result.change), " of the step before");
}

// All with one decimal: rows are compared with each other.
std::string TenthsOf(int64_t ns) {
  const std::string text = absl::StrFormat("%.1f", static_cast<double>(ns) / 1e6);
  return text == "-0.0" ? "0.0" : text;
}

}  // namespace

void AddChange(const std::string& name, const Change& change, Table* table) {
  const MeanEstimate& mean = change.change;
  const std::string text = TenthsOf(mean.est_ns);
  table->Add({name, TenthsOf(change.before_ns), TenthsOf(change.now_ns),
              absl::StrCat(mean.est_ns > 0 && text != "0.0" ? "+" : "", text),
              absl::StrCat("[", TenthsOf(mean.lo_ns), ", ", TenthsOf(mean.hi_ns), "]"),
              PercentOf(change.est_ppm)});
}

Table ChangeTable(const std::string& title) {
  return Table({{title, Table::Align::kLeft, true, 20},
                {"before", Table::Align::kRight},
                {"now", Table::Align::kRight},
                {"change", Table::Align::kRight},
                {"[95 %]", Table::Align::kLeft},
                {"% of step", Table::Align::kRight}});
}

void WriteCompared(const ComparedSides& comparison, const ComparedNames& names, const char* member,
                   const Change& step, LabelledText* writer) {
  writer->Say("NOW", SideText(comparison.now, names.now, member));
  std::vector<std::string> befores;
  for (size_t i = 0; i < comparison.befores.size(); ++i) {
    befores.push_back(SideText(comparison.befores[i], names.before[i], member));
  }
  writer->Say("BEFORE", befores);
  writer->Blank();
  writer->Say("STEP", StepSentence(step));
  std::vector<std::string> limits;
  for (const LimitResult& result : names.limits) limits.push_back(LimitSentence(result));
  writer->Say("FAIL-IF", limits);
  writer->Blank();
}

void WriteChanges(const std::vector<NamedChange>& parts, const Change& step,
                  std::vector<NamedChange> ranks, LabelledText* writer) {
  Table table = ChangeTable("mean of a step, ms");
  for (const NamedChange& part : parts) {
    if (part.change.has_value()) {
      AddChange("  " + part.name, *part.change, &table);
    } else {
      table.Add({"  " + part.name, "-", "-", "-", "", ""});
    }
  }
  AddChange("  step", step, &table);
  std::erase_if(ranks, [](const NamedChange& one) {
    return !one.change->certain() || std::abs(one.change->est_ppm) <= kRankPpm;
  });
  std::stable_sort(ranks.begin(), ranks.end(), [](const NamedChange& a, const NamedChange& b) {
    if (a.first != b.first) return a.first;
    return std::abs(a.change->change.est_ns) > std::abs(b.change->change.est_ns);
  });
  for (size_t i = 0; i < std::min(kRankRows, ranks.size()); ++i) {
    AddChange("  " + ranks[i].name, *ranks[i].change, &table);
  }
  writer->Raw(table.Format(writer->width(), 0));
  if (ranks.size() > kRankRows) {
    writer->Indented(absl::StrCat(kRankRows, " of ", ranks.size(),
                                  " rows of ranks are shown: --json has them all"));
  }
}

std::string CallsText(double calls) {
  return calls < 10 && calls != static_cast<double>(static_cast<int64_t>(calls))
             ? absl::StrFormat("%.2f", calls)
             : absl::StrFormat("%.0f", calls);
}

bool IsShown(const Change& change) {
  return change.certain() && std::abs(change.est_ppm) > kShownPpm;
}

std::string RefusedText(const ComparedSides& comparison, const WhyTextOptions& options) {
  LabelledText writer(options.width, options.color);
  writer.Say("REFUSED", Printed(comparison.mismatch_text, kRefusalColumns));
  return writer.Take();
}

std::optional<std::string> OtherNameSentence(const ComparedSides& comparison) {
  if (comparison.before.job == comparison.now.job) return std::nullopt;
  return absl::StrCat("the job's name was \"", Printed(comparison.before.job), "\" and is \"",
                      Printed(comparison.now.job), "\"");
}

std::vector<std::string> IntervalSentences(const ComparedSides& comparison) {
  std::vector<std::string> lines;
  if (comparison.drift_known()) {
    lines.push_back(absl::StrCat(
        "the intervals hold how the steps of each recording vary, and how the ",
        comparison.befores.size(),
        " recordings before differ from each other: 19 of 20 recordings without a change lie in "
        "them, if they differ as these do",
        comparison.befores.size() < kFewRecordings ? ". With so few of them the intervals are wide"
                                                   : ""));
  } else {
    lines.emplace_back(
        "these two windows are compared. The intervals hold how the steps of each vary. They do "
        "not hold how recordings of one job differ that were taken one after the other without "
        "any change: several percent were measured, 11 % at worst. Several --against put that "
        "into the intervals");
  }
  if (std::min(comparison.fewest_steps_before(), comparison.now.steps) < kLimitStepsMin) {
    lines.push_back(absl::StrCat("with fewer than ", kLimitStepsMin,
                                 " steps the intervals are rough, and no limit is judged"));
  }
  return lines;
}

}  // namespace syncline::report
