// SPDX-License-Identifier: Apache-2.0
// How far the answer can be trusted: what would overturn it, and what it rests on.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "export/report/units.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::MeanEstimate;
using analysis::why::RankFinding;
using analysis::why::RankSummary;

constexpr int64_t kLimitPercent = 2;
constexpr int64_t kLimitNs = 500'000;

std::string LimitText(const Answer& answer, const RankFinding& finding) {
  const bool by_step = answer.mean_step_ns * kLimitPercent / 100 > kLimitNs;
  return absl::StrCat(
      Ms(LimitNs(answer, finding)), " ms (",
      by_step ? absl::StrCat(finding.late ? kLimitPercent : 2 * kLimitPercent, " % of the step")
              : std::string("the least that is judged"),
      ")");
}

// Whether the scheduler's trace says who had the CPU.
bool ByScheduler(const Answer& answer) {
  if (answer.everybody_taker.has_value() && answer.everybody_taker->by_scheduler) return true;
  for (const RankFinding& finding : answer.findings) {
    for (const Cause& cause : finding.causes) {
      if (cause.taker.has_value() && cause.taker->by_scheduler) return true;
    }
  }
  return false;
}

// What of the answer is by the scheduler's trace.
std::string TraceText(const Answer& answer) {
  const bool exact = std::any_of(answer.ranks.begin(), answer.ranks.end(),
                                 [](const RankSummary& rank) { return rank.blocked_exact; });
  const bool who = ByScheduler(answer);
  if (!exact && !who) return "";
  return absl::StrCat(", scheduler's trace (", who ? "who had the CPU" : "",
                      who && exact ? ", " : "", exact ? "when ranks were blocked" : "", ")");
}

// Whether samples also say in which states threads were.
bool StatesKnown(const Answer& answer) {
  return std::any_of(answer.ranks.begin(), answer.ranks.end(), [](const RankSummary& rank) {
    return rank.blocked_known && !rank.blocked_exact;
  });
}

size_t MeasuredRanks(const Answer& answer) {
  return static_cast<size_t>(
      std::count_if(answer.ranks.begin(), answer.ranks.end(),
                    [](const RankSummary& rank) { return rank.taken_away_known; }));
}

uint64_t GapsOf(const Answer& answer) {
  uint64_t gaps = 0;
  std::set<std::string> nodes;  // ranks of a node share its samples
  for (const RankSummary& rank : answer.ranks) {
    if (nodes.insert(rank.node).second) gaps += rank.sample_gaps.value_or(0);
  }
  return gaps;
}

}  // namespace

int64_t LimitNs(const Answer& answer, const RankFinding& finding) {
  const int64_t limit_ns = std::max(kLimitNs, answer.mean_step_ns * kLimitPercent / 100);
  return finding.late ? limit_ns : 2 * limit_ns;
}

std::vector<std::string> MarginSentences(const Answer& answer) {
  std::vector<std::string> sentences;
  std::string clocks;
  if (!answer.findings.empty()) {
    const bool late = std::any_of(answer.findings.begin(), answer.findings.end(),
                                  [](const RankFinding& finding) { return finding.late; });
    clocks = absl::StrCat(late ? "LATE and CAUSE hold" : "CAUSE holds",
                          " whatever the clocks say (own work is timed on one clock); ");
  } else if (answer.closest.has_value()) {
    clocks = "the answer holds whatever the clocks say (own work is timed on one clock); ";
  }
  std::string unknown = absl::StrCat(clocks, "not known: ", Ms(answer.worst_not_covered_ns),
                                     " ms a step not covered; ", LostSentence(answer));
  if (const uint64_t gaps = GapsOf(answer); gaps > 0) {
    absl::StrAppend(&unknown, "; ", Plural(gaps, "gap"), " in the samples");
  }
  sentences.push_back(std::move(unknown));
  for (const RankFinding& finding : answer.findings) {
    const bool named = finding.mostly_explained();
    const MeanEstimate& decides = named ? finding.causes.front().amount : finding.lead;
    std::string text = absl::StrCat(
        RankName(answer, finding), " would not be ", named ? "named for a cause" : "called late",
        " if the lower end of ", named ? "CAUSE" : "LATE", "'s interval, ", Ms(decides.lo_ns),
        " ms, were not above ", LimitText(answer, finding));
    if (answer.worst_not_covered_ns > decides.lo_ns - LimitNs(answer, finding)) {
      absl::StrAppend(&text, "; what is not covered could change that");
    }
    sentences.push_back(std::move(text));
  }
  if (answer.incomplete) {
    sentences.push_back(
        "the recording is not complete (a node, a stream or a range of time is missing): what is "
        "missing could overturn the answer");
  }
  return sentences;
}

std::vector<std::string> TrustSentences(const Answer& answer) {
  double least = 1;
  double most = 0;
  int64_t period_ns = 0;
  int version = 0;
  for (const RankSummary& rank : answer.ranks) {
    least = std::min(least, rank.covered);
    most = std::max(most, rank.covered);
    period_ns = std::max(period_ns, rank.sample_period_ns);
    version = std::max(version, rank.group_version);
  }
  const size_t ranks = answer.ranks.size();
  std::string text =
      absl::StrFormat("%s covered %s%.1f %%; evidence: ",
                      ranks == 1   ? std::string("the rank is")
                      : ranks == 2 ? std::string("both ranks")
                                   : absl::StrCat("all ", ranks, " ranks"),
                      least < most ? "at least " : "", std::floor(least * 1000) / 10);
  const bool compared = !answer.findings.empty() || answer.closest.has_value();
  const char* const intervals = compared ? "; [low, high]: 95 % interval" : "";
  const size_t measured = MeasuredRanks(answer);
  if (measured == 0) {
    return {absl::StrCat(text,
                         "tasks only; missing: samples of processor time (throttled and "
                         "waiting for a CPU were not measured)",
                         intervals)};
  }
  absl::StrAppend(&text, "schedstat", StatesKnown(answer) ? " and thread states" : "");
  if (period_ns > 0) absl::StrAppendFormat(&text, " %.3g Hz", 1e9 / static_cast<double>(period_ns));
  absl::StrAppend(&text, TraceText(answer));
  absl::StrAppend(&text, version > 0 ? absl::StrCat(", cgroup v", version)
                                     : std::string(", no control group seen"));
  if (measured < ranks) {
    absl::StrAppend(&text, "; missing: samples of ", Plural(ranks - measured, "rank"));
  }
  return {text + intervals};
}

}  // namespace syncline::report
