#include "export/why/why_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/text.h"
#include "export/report/table.h"
#include "export/report/units.h"
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

constexpr size_t kLabel = 8;  // columns of "LATE    "
constexpr size_t kColumnsMax = 8;
constexpr int64_t kTenthNs = 100'000;

class Writer {
 public:
  explicit Writer(const WhyTextOptions& options) : options_(options) {}

  // A paragraph behind its label, wrapped; without a label it stands below the one before.
  void Say(std::string_view label, const std::string& text) {
    const size_t width = std::max<size_t>(options_.width, 40);
    std::string line = Labelled(label);
    size_t used = kLabel;
    bool first = true;
    for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
      const size_t columns = DisplayWidth(StdView(word));
      if (!first && used + 1 + columns > width) {
        out_ += line + "\n";
        line.assign(kLabel, ' ');
        used = kLabel;
        first = true;
      }
      if (!first) line += ' ';
      used += columns + (first ? 0 : 1);
      absl::StrAppend(&line, word);
      first = false;
    }
    out_ += line + "\n";
  }
  void Line(const std::string& line) { out_ += line + "\n"; }
  void Raw(const std::string& text) { out_ += text; }
  std::string Take() { return std::move(out_); }

 private:
  std::string Labelled(std::string_view label) const {
    std::string padded(label);
    padded.resize(std::max(kLabel, padded.size()), ' ');
    if (!options_.color || label.empty()) return padded;
    return absl::StrCat("\033[1m", AbslView(label), "\033[0m",
                        padded.substr(std::min(label.size(), padded.size())));
  }

  const WhyTextOptions& options_;
  std::string out_;
};

std::string Tenths(int64_t tenths) {
  return absl::StrFormat("%s%d.%d", tenths < 0 ? "-" : "", std::abs(tenths) / 10,
                         std::abs(tenths) % 10);
}

// Which ranks get a column: all of a few; of many those that are named, and the least, the middle
// and the most own work of the others.
std::vector<size_t> ColumnsOf(const Answer& answer) {
  std::vector<size_t> all(answer.ranks.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (all.size() <= kColumnsMax) return all;
  std::vector<size_t> chosen;
  for (const RankFinding& finding : answer.findings) {
    if (chosen.size() < kColumnsMax - 3) chosen.push_back(finding.index);
  }
  std::vector<size_t> others;
  for (const size_t rank : all) {
    if (std::find(chosen.begin(), chosen.end(), rank) == chosen.end()) others.push_back(rank);
  }
  std::stable_sort(others.begin(), others.end(), [&](size_t a, size_t b) {
    return answer.ranks[a].mean_own_ns < answer.ranks[b].mean_own_ns;
  });
  for (const size_t place : {size_t{0}, others.size() / 2, others.size() - 1}) {
    chosen.push_back(others[place]);
  }
  return chosen;
}

// Of a rank, the parts in tenths of a ms, as many as kParts, and their sum.
std::vector<int64_t> ColumnOf(const RankSummary& rank) {
  std::vector<int64_t> column =
      RoundedToTenths(std::vector<int64_t>(rank.mean.begin(), rank.mean.end()));
  column.push_back(std::accumulate(column.begin(), column.end(), int64_t{0}));
  return column;
}

void WriteTable(const Answer& answer, const WhyTextOptions& options, Writer* writer) {
  const std::vector<size_t> chosen = ColumnsOf(answer);
  std::vector<Table::Column> titles = {{"mean of a step, ms"}};
  std::vector<std::vector<int64_t>> columns;
  for (const size_t rank : chosen) {
    titles.push_back({absl::StrCat("rank ", answer.ranks[rank].rank), Table::Align::kRight});
    columns.push_back(ColumnOf(answer.ranks[rank]));
  }
  Table table(std::move(titles));
  for (size_t part = 0; part <= kParts; ++part) {
    const bool taken = part == static_cast<size_t>(Part::kThrottled) ||
                       part == static_cast<size_t>(Part::kWaitingForCpu);
    std::vector<std::string> row = {
        part == kParts ? "  step" : absl::StrCat("  ", PartName(static_cast<Part>(part)))};
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool known = !taken || answer.ranks[chosen[i]].taken_away_known;
      row.push_back(known ? Tenths(columns[i][part]) : "not measured");
    }
    table.Add(std::move(row));
  }
  writer->Line("");
  writer->Raw(table.Format(options.width, 0));
  if (chosen.size() < answer.ranks.size()) {
    writer->Line(absl::StrCat(
        "  and ", answer.ranks.size() - chosen.size(),
        " ranks more: shown are those named above, then the least, the median and the most own "
        "work of the others"));
  }
  writer->Line("");
}

void WriteFinding(const Answer& answer, const RankFinding& finding, Writer* writer) {
  writer->Say("LATE", LateSentence(answer, finding));
  bool first = true;
  for (const Cause& cause : finding.causes) {
    writer->Say(first ? "CAUSE" : "", CauseSentence(finding, cause));
    first = false;
  }
  if (finding.causes.empty()) writer->Say("CAUSE", UnknownSentence(answer, finding));
  if (const std::string looked = LookedAtSentence(answer, finding); !looked.empty()) {
    writer->Say("", looked);
  }
  if (!finding.causes.empty()) writer->Say("COST", CostSentence(answer, finding));
  if (finding.order.steps > 0) writer->Say("ORDER", OrderSentence(answer, finding));
}

std::string EverybodySentence(const Answer& answer, Part part) {
  int64_t least = 100;
  int64_t most = 0;
  for (const RankSummary& rank : answer.ranks) {
    const int64_t percent =
        rank.mean[static_cast<size_t>(part)] * 100 / std::max<int64_t>(1, rank.mean_step_ns);
    least = std::min(least, percent);
    most = std::max(most, percent);
  }
  const std::string range =
      least == most ? absl::StrCat(least, " %") : absl::StrCat(least, " to ", most, " %");
  return absl::StrCat(PartName(part), " takes ", range, " of the step on every rank");
}

void WriteTrust(const Answer& answer, Writer* writer) {
  double least = 1;
  int64_t period_ns = 0;
  int version = 0;
  uint64_t gaps = 0;
  size_t measured = 0;
  for (const RankSummary& rank : answer.ranks) {
    least = std::min(least, rank.covered);
    period_ns = std::max(period_ns, rank.sample_period_ns);
    version = std::max(version, rank.group_version);
    gaps += rank.sample_gaps;
    measured += rank.taken_away_known ? 1 : 0;
  }
  std::string text = absl::StrFormat("%s covered for %.1f %% of the window",
                                     answer.ranks.size() == 1 ? "the rank is" : "all ranks are",
                                     std::floor(least * 1000) / 10);
  if (measured == 0) {
    absl::StrAppend(&text,
                    "; no samples of processor time: throttling and waiting for a CPU were "
                    "not measured");
  } else {
    absl::StrAppendFormat(&text, "; processor time sampled %.0f times a second",
                          period_ns > 0 ? 1e9 / static_cast<double>(period_ns) : 0);
    if (measured < answer.ranks.size()) {
      absl::StrAppend(&text, " on ", measured, " of ", answer.ranks.size(), " ranks");
    }
    absl::StrAppend(&text, version > 0 ? absl::StrCat("; control groups v", version, " seen")
                                       : std::string("; no control group seen"));
    if (gaps > 0) absl::StrAppend(&text, "; ", Plural(gaps, "gap"), " in the samples");
  }
  writer->Say("TRUST", text);
  for (const std::string& note : answer.notes) writer->Say("", Fit(note, 400));
}

void WriteHead(const Answer& answer, Writer* writer) {
  std::vector<std::string> nodes;
  for (const RankSummary& rank : answer.ranks) nodes.push_back(rank.node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::string text =
      absl::StrFormat("%.1f s on %s, %s", static_cast<double>(answer.window_ns) / 1e9,
                      Plural(nodes.size(), "node"), Plural(answer.ranks.size(), "rank"));
  if (!answer.classes.empty()) {
    absl::StrAppend(&text, ", ", Plural(answer.steps, "step"), " of one class (",
                    answer.classes[0].name, ")");
  }
  absl::StrAppend(&text, "; ",
                  answer.lost_events > 0 ? Plural(answer.lost_events, "event") + " lost"
                  : answer.incomplete    ? std::string("the recording is not complete")
                                         : std::string("nothing lost"));
  writer->Line(text);
  for (size_t i = 1; i < answer.classes.size(); ++i) {
    const StepClass& other = answer.classes[i];
    writer->Line(absl::StrFormat("not judged: %s of another class (%s), %.1f s",
                                 Plural(other.steps, "step"), other.name,
                                 static_cast<double>(other.total_ns) / 1e9));
  }
  if (answer.unpaired_steps > 0) {
    writer->Line(absl::StrCat("not judged: ", Plural(answer.unpaired_steps, "step"),
                              " that not all ranks have with the same collectives"));
  }
  writer->Line("");
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
  Writer writer(options);
  if (answer.refusal != Refusal::kNone) {
    writer.Say("NO", absl::StrCat("No answer: ", answer.refusal_text));
    return writer.Take();
  }
  WriteHead(answer, &writer);
  for (const RankFinding& finding : answer.findings) WriteFinding(answer, finding, &writer);
  if (answer.findings.empty() && answer.closest.has_value()) {
    writer.Say("NOBODY", NobodySentence(answer));
  }
  if (answer.findings.empty() && !answer.closest.has_value()) {
    writer.Say("NOBODY", NotJudgedSentence(answer));
  }
  bool first = true;
  for (const Part part : answer.everybody) {
    writer.Say(first ? "ALL" : "", absl::StrCat("Every rank: ", EverybodySentence(answer, part)));
    first = false;
  }
  writer.Say("MARGIN", MarginSentence(answer));
  WriteTable(answer, options, &writer);
  WriteTrust(answer, &writer);
  writer.Say("NEXT", NextSentence(answer));
  return writer.Take();
}

}  // namespace syncline::report
