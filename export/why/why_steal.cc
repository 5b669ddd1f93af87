// SPDX-License-Identifier: Apache-2.0
// What is said of steal time: what a hypervisor took from ranks.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::MoreStealTime;
using analysis::why::RankFinding;
using analysis::why::RankSummary;

std::string PercentText(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

// Of a step of the rank it takes so much that it is to be said.
bool IsMuch(const RankSummary& rank) {
  constexpr int64_t kPercent = 3;
  constexpr int64_t kLeastNs = 500'000;
  return rank.steal.has_value() && rank.steal->step_ns >= kLeastNs &&
         rank.steal->step_ns * 100 >= rank.mean_step_ns * kPercent;
}

std::string RankText(const RankSummary& rank) {
  return absl::StrCat("rank ", rank.rank, " on ", Printed(rank.node), " ",
                      PercentText(rank.steal->share), ", some ", Ms(rank.steal->step_ns),
                      " ms a step");
}

}  // namespace

const RankSummary* MostStolen(const Answer& answer) {
  const RankSummary* most = nullptr;
  for (size_t i = 0; i < answer.ranks.size(); ++i) {
    const RankSummary& rank = answer.ranks[i];
    const bool is_waited_for =
        answer.findings.empty() ||
        std::any_of(answer.findings.begin(), answer.findings.end(),
                    [&](const RankFinding& finding) {
                      return finding.index == i && !SleepsAtHome(answer, finding);
                    });
    if (!IsMuch(rank) || !is_waited_for) continue;
    if (most == nullptr || rank.steal->step_ns > most->steal->step_ns) most = &rank;
  }
  return most;
}

std::vector<std::string> StealSentences(const Answer& answer) {
  const bool said =
      std::any_of(answer.findings.begin(), answer.findings.end(),
                  [](const RankFinding& finding) { return finding.steal.has_value(); });
  const bool much = std::any_of(answer.ranks.begin(), answer.ranks.end(), IsMuch);
  if (said || !much) return {};
  std::vector<const RankSummary*> ranks;
  for (const RankSummary& rank : answer.ranks) {
    if (rank.steal.has_value()) ranks.push_back(&rank);
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankSummary* a, const RankSummary* b) {
    return a->steal->step_ns > b->steal->step_ns;
  });
  std::string text = absl::StrCat(
      "a hypervisor ran something else for a part of the time in which the CPUs that ranks may ",
      "use had something to do: ", RankText(*ranks.front()));
  if (ranks.size() == 2) absl::StrAppend(&text, "; ", RankText(*ranks.back()));
  if (ranks.size() > 2) {
    absl::StrAppend(&text, ", the most; ", RankText(*ranks[ranks.size() / 2]), ", in the middle");
  }
  return {absl::StrCat(text, ", if training threads lost as much as all on these CPUs did")};
}

std::string StealSentence(const Answer& answer, const MoreStealTime& steal) {
  return absl::StrCat(
      "may be a part of it: a hypervisor took ", PercentText(steal.own.share),
      " of the time in which the CPUs that its process may use had something to do, ",
      answer.ranks.size() > 2 ? "of the others' (median) " : "of the other rank's ",
      PercentText(steal.others_share), "; if its training thread lost as much, that is some ",
      Ms(steal.more_ns), " ms a step more");
}

}  // namespace syncline::report
