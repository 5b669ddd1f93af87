// SPDX-License-Identifier: Apache-2.0
#include "export/why/why_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/text_width.h"
#include "export/report/network_text.h"
#include "export/report/table.h"
#include "export/report/units.h"
#include "export/why/labelled_text.h"
#include "export/why/path_text.h"
#include "export/why/stalls_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::kParts;
using analysis::why::Part;
using analysis::why::PartName;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::Refusal;
using analysis::why::StepClass;

constexpr size_t kColumnsMax = 8;
constexpr size_t kColumnsMin = 4;  // one that is named, and three others
constexpr size_t kNotesShown = 6;
constexpr size_t kClassesShown = 6;
constexpr int64_t kTenthNs = 100'000;
constexpr int64_t kOutsideDivisor = 5;  // more of the window than this without steps is said
constexpr char kNotMeasured[] = "not measured";

// Of a rank, the parts in tenths of a ms, as many as kParts, and their sum.
std::vector<int64_t> ColumnOf(const RankSummary& rank) {
  std::vector<int64_t> column =
      RoundedToTenths(std::vector<int64_t>(rank.mean.begin(), rank.mean.end()));
  column.push_back(std::accumulate(column.begin(), column.end(), int64_t{0}));
  return column;
}

// Which ranks get a column: all of a few; of many those that are named, and of the others the
// middle, the least and the most own work.
std::vector<size_t> ColumnsOf(const Answer& answer, size_t columns_max) {
  std::vector<size_t> all(answer.ranks.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (all.size() <= columns_max) return all;
  std::vector<size_t> chosen;
  for (const RankFinding& finding : answer.findings) {
    if (chosen.size() + 3 < columns_max) chosen.push_back(finding.index);
  }
  std::vector<size_t> others;
  for (const size_t rank : all) {
    if (std::find(chosen.begin(), chosen.end(), rank) == chosen.end()) others.push_back(rank);
  }
  std::stable_sort(others.begin(), others.end(), [&](size_t a, size_t b) {
    return answer.ranks[a].mean_own_ns < answer.ranks[b].mean_own_ns;
  });
  for (const size_t place : {others.size() / 2, size_t{0}, others.size() - 1}) {
    chosen.push_back(others[place]);
  }
  return chosen;
}

// Whether a row of the table, a part or the step, is known of the rank.
bool IsKnown(size_t row, const RankSummary& rank) {
  return row == kParts ||
         PartKnown(static_cast<Part>(row), rank.taken_away_known, rank.blocked_known);
}

// How many ranks the terminal has room for.
size_t RoomFor(const Answer& answer, size_t width) {
  size_t widest = 0;
  for (const RankSummary& rank : answer.ranks) {
    widest = std::max(widest, absl::StrCat("rank ", rank.rank).size());
    widest = std::max(widest, Tenths(rank.mean_step_ns / kTenthNs).size());
    if (!(rank.taken_away_known && rank.blocked_known) && answer.ranks.size() <= 2) {
      widest = std::max(widest, sizeof(kNotMeasured) - 1);
    }
  }
  const size_t title = DisplayWidth("  garbage collection");
  const size_t room = width > title ? (width - title) / (widest + 2) : 0;
  return std::clamp(room, kColumnsMin, kColumnsMax);
}

void WriteTable(const Answer& answer, LabelledText* writer) {
  const std::vector<size_t> chosen = ColumnsOf(answer, RoomFor(answer, writer->width()));
  std::vector<Table::Column> titles = {{"mean of a step, ms", Table::Align::kLeft, true}};
  std::vector<std::vector<int64_t>> columns;
  for (const size_t rank : chosen) {
    titles.push_back({absl::StrCat("rank ", answer.ranks[rank].rank), Table::Align::kRight});
    columns.push_back(ColumnOf(answer.ranks[rank]));
  }
  // Of many ranks there is no room for the words.
  const std::string unmeasured = chosen.size() <= 2 ? kNotMeasured : "-";
  bool dashes = false;
  Table table(std::move(titles));
  for (size_t part = 0; part <= kParts; ++part) {
    std::vector<std::string> row = {
        part == kParts ? "  step" : absl::StrCat("  ", PartName(static_cast<Part>(part)))};
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool known = IsKnown(part, answer.ranks[chosen[i]]);
      row.push_back(known ? Tenths(columns[i][part]) : unmeasured);
      dashes = dashes || (!known && unmeasured == "-");
    }
    table.Add(std::move(row));
  }
  writer->Raw(table.Format(writer->width(), 0));
  if (dashes) writer->Indented("-: not measured");
  if (chosen.size() < answer.ranks.size()) {
    const bool named = chosen.size() > 3;
    writer->Indented(absl::StrCat(Plural(answer.ranks.size() - chosen.size(), "rank"),
                                  " left out; shown: ", named ? "those named, then " : "",
                                  "the median, the smallest and the largest own work of the ",
                                  named ? "others" : "ranks"));
  }
}

void WriteFinding(const Answer& answer, const RankFinding& finding, LabelledText* writer) {
  writer->Say(finding.late ? "LATE" : "NAMED", LateSentence(answer, finding));
  std::vector<std::string> causes;
  if (!finding.mostly_explained()) causes = UnknownSentences(answer, finding);
  for (size_t i = 0; i < finding.causes.size(); ++i) {
    std::vector<std::string> lines = CauseSentences(answer, finding, finding.causes[i]);
    if (!finding.mostly_explained()) lines[0] = "for a part: " + lines[0];
    for (std::string& line : lines) causes.push_back(std::move(line));
  }
  if (finding.mostly_explained()) {
    for (std::string& line : RemainderSentences(answer, finding)) causes.push_back(std::move(line));
  }
  if (std::string line = AllowedSentence(answer, finding); !line.empty()) {
    causes.push_back(std::move(line));
  }
  for (std::string& line : LookedAtSentences(answer, finding)) causes.push_back(std::move(line));
  writer->Say("CAUSE", causes);
  if (!finding.causes.empty()) writer->Say("COST", CostSentence(answer, finding));
  writer->Say("ORDER", OrderSentence(answer, finding));
}

void WriteHead(const Answer& answer, LabelledText* writer) {
  std::vector<std::string> nodes;
  for (const RankSummary& rank : answer.ranks) nodes.push_back(rank.node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::string text =
      absl::StrFormat("%.1f s on %s, %s", static_cast<double>(answer.window_ns) / 1e9,
                      Plural(nodes.size(), "node"), Plural(answer.ranks.size(), "rank"));
  if (!answer.classes.empty()) {
    absl::StrAppend(&text, ", ", Plural(answer.steps, "step"), " of one class (",
                    Printed(answer.classes[0].name, 200), ")");
  }
  if (answer.lost_events != 0u) absl::StrAppend(&text, "; ", LostSentence(answer));
  if (answer.incomplete) absl::StrAppend(&text, "; the recording is not complete");
  if (answer.lost_events == 0u && !answer.incomplete) absl::StrAppend(&text, "; nothing lost");
  writer->Line(text);
  for (size_t i = 1; i < std::min(answer.classes.size(), kClassesShown + 1); ++i) {
    const StepClass& other = answer.classes[i];
    writer->Line(absl::StrFormat("not judged: %s of another class (%s), %.1f s",
                                 Plural(other.steps, "step"), Printed(other.name, 200),
                                 static_cast<double>(other.total_ns) / 1e9));
  }
  if (answer.classes.size() > kClassesShown + 1) {
    const size_t more = answer.classes.size() - kClassesShown - 1;
    writer->Line(absl::StrCat("not judged: ", more, more == 1 ? " class" : " classes", " more"));
  }
  int64_t outside_ns = answer.window_ns;
  for (const StepClass& one : answer.classes) outside_ns -= one.total_ns;
  if (!answer.classes.empty() && outside_ns * kOutsideDivisor > answer.window_ns) {
    writer->Line(absl::StrFormat("not judged: %.1f s of the window, outside of these steps",
                                 static_cast<double>(outside_ns) / 1e9));
  }
  if (answer.unlike_steps > 0) {
    writer->Line(absl::StrCat("not judged: ", Plural(answer.unlike_steps, "step"),
                              " in which not all ranks load as many batches, or run as many "
                              "forward passes"));
  }
  if (answer.unpaired_steps > answer.unlike_steps) {
    writer->Line(
        absl::StrCat("not judged: ", Plural(answer.unpaired_steps - answer.unlike_steps, "step"),
                     " that not all ranks have with the same collectives"));
  }
}

void WriteVerdict(const Answer& answer, LabelledText* writer) {
  writer->Say("STALLS", StallSentences(answer));
  for (const RankFinding& finding : answer.findings) WriteFinding(answer, finding, writer);
  if (answer.findings.empty()) {
    if (answer.closest.has_value()) {
      writer->Say("NOBODY", NobodySentence(answer));
    } else {
      writer->Say("STEPS", NotJudgedSentence(answer));
    }
  }
  std::vector<std::string> everybody;
  for (const Part part : answer.everybody) {
    everybody.push_back(EverybodySentence(answer, part));
    if (part == Part::kWaitingForCpu && answer.everybody_taker.has_value()) {
      everybody.push_back(EverybodyTakerSentence(answer));
    }
    if (part == Part::kHostCode && answer.everybody_stood.has_value()) {
      everybody.push_back(EverybodyStoodSentence(answer));
    }
  }
  writer->Say("ALL", everybody);
  writer->Say("NETWORK", NetworkSentences(answer.network));
  writer->Say("STEAL", StealSentences(answer));
  writer->Say("MEMORY", MemorySentences(answer));
  writer->Say("PATH", PathSentences(answer));
  writer->Say("MARGIN", MarginSentences(answer));
}

std::vector<std::string> NotesOf(const Answer& answer) {
  std::vector<std::string> notes;
  for (size_t i = 0; i < std::min(kNotesShown, answer.notes.size()); ++i) {
    notes.push_back(Printed(answer.notes[i], 400));
  }
  if (answer.notes.size() > kNotesShown) {
    notes.push_back(
        absl::StrCat(Plural(answer.notes.size() - kNotesShown, "note"), " more: --json has them"));
  }
  return notes;
}

}  // namespace

std::vector<int64_t> RoundedToTenths(const std::vector<int64_t>& ns) {
  const int64_t sum = std::accumulate(ns.begin(), ns.end(), int64_t{0});
  int64_t left = (sum + kTenthNs / 2) / kTenthNs;
  std::vector<int64_t> tenths;
  std::vector<size_t> by_remainder(ns.size());
  std::iota(by_remainder.begin(), by_remainder.end(), size_t{0});
  for (const int64_t one : ns) {
    tenths.push_back(one / kTenthNs);
    left -= tenths.back();
  }
  std::stable_sort(by_remainder.begin(), by_remainder.end(),
                   [&](size_t a, size_t b) { return ns[a] % kTenthNs > ns[b] % kTenthNs; });
  for (size_t i = 0; left > 0 && i < by_remainder.size(); ++i, --left) ++tenths[by_remainder[i]];
  return tenths;
}

std::string WhyText(const Answer& answer, const WhyTextOptions& options) {
  LabelledText writer(options.width, options.color);
  if (answer.refusal != Refusal::kNone) {
    writer.Say("REFUSED", Printed(answer.refusal_text, 2000));
    return writer.Take();
  }
  WriteHead(answer, &writer);
  writer.Blank();
  WriteVerdict(answer, &writer);
  writer.Blank();
  WriteTable(answer, &writer);
  writer.Blank();
  std::vector<std::string> trust = TrustSentences(answer);
  for (std::string& note : NotesOf(answer)) trust.push_back(std::move(note));
  writer.Say("TRUST", trust);
  writer.Say("NEXT", NextSentences(answer));
  return writer.Take();
}

}  // namespace syncline::report
