// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/judged_checks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kCoveredPercentMin = 95;
constexpr size_t kEndsShown = 3;

// Part of the window that holes leave, percent.
int64_t CoveredPercent(const RankInput& rank) {
  const int64_t window_ns = rank.window.length_ns();
  return window_ns <= 0 ? 100 : (window_ns - MissingNs(rank)) * 100 / window_ns;
}

// "rank 1 (beta, pid 4711) ended between 4.69 s and 5.20 s after T".
std::string EndText(const RankInput& rank) {
  const auto seconds = [&](int64_t at_ns) {
    return static_cast<double>(at_ns - rank.window.begin_ns) / 1e9;
  };
  return absl::StrFormat("%s ended between %.2f s and %.2f s after T", RankName(rank),
                         seconds(rank.ended->begin_ns), seconds(rank.ended->end_ns));
}

}  // namespace

std::string RankName(const RankInput& rank) {
  return absl::StrCat("rank ", rank.rank, " (", rank.node, ", pid ", rank.pid, ")");
}

void Refuse(Refusal refusal, std::string text, Judged* judged) {
  if (judged->refusal != Refusal::kNone) return;
  judged->refusal = refusal;
  judged->refusal_text = std::move(text);
}

int64_t MissingNs(const RankInput& rank) {
  int64_t missing_ns = 0;
  int64_t until_ns = rank.window.begin_ns;
  for (const OwnInterval& hole : rank.holes) {
    const int64_t begin_ns = std::max(hole.begin_ns, until_ns);
    const int64_t end_ns = std::min(hole.end_ns, rank.window.end_ns);
    if (end_ns > begin_ns) missing_ns += end_ns - begin_ns;
    until_ns = std::max(until_ns, end_ns);
  }
  return missing_ns;
}

// Refuses a GPU job by what its processes say of themselves.
void CheckAccelerators(const JobInput& input, Judged* judged) {
  for (const RankInput& rank : input.ranks) {
    if (rank.accelerators.empty()) continue;
    Refuse(Refusal::kGpuJob,
           absl::StrCat(RankName(rank), " uses an accelerator (",
                        absl::StrJoin(rank.accelerators, ", "),
                        " is initialised): of such a job only what its devices do is explained, "
                        "which is recorded if it was started with `syncline run --kineto`"),
           judged);
  }
}

// Ranks that ended in the window: all else that is wrong follows from that.
void CheckEnds(const JobInput& input, Judged* judged) {
  std::vector<const RankInput*> ended;
  for (const RankInput& rank : input.ranks) {
    if (rank.ended.has_value() && CoveredPercent(rank) < kCoveredPercentMin) ended.push_back(&rank);
  }
  if (ended.empty()) return;
  const auto since_begin = [](const RankInput* rank) {
    return rank->ended->begin_ns - rank->window.begin_ns;
  };
  std::stable_sort(ended.begin(), ended.end(), [&](const RankInput* a, const RankInput* b) {
    return since_begin(a) < since_begin(b);
  });
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(ended.size(), kEndsShown); ++i) {
    texts.push_back(EndText(*ended[i]));
  }
  if (ended.size() > kEndsShown) {
    texts.push_back(absl::StrCat("so did ", ended.size() - kEndsShown, " more, later"));
  }
  Refuse(Refusal::kNotCovered,
         absl::StrCat(absl::StrJoin(texts, "; "), ": ", CoveredPercent(*ended[0]),
                      " % of the window was recorded of ", ended.size() > 1 ? "the first" : "it",
                      ", and 95 % are needed: record again while all ranks run"),
         judged);
}

void CheckCoverage(const JobInput& input, Judged* judged) {
  for (const RankInput& rank : input.ranks) {
    const int64_t percent = CoveredPercent(rank);
    if (percent >= kCoveredPercentMin) continue;
    Refuse(Refusal::kNotCovered,
           absl::StrCat(RankName(rank), " was recorded for ", percent,
                        " % of the window only, and 95 % are needed: record again; `syncline "
                        "report` says what is missing and why"),
           judged);
  }
}

}  // namespace syncline::analysis::why
