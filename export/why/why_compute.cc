// SPDX-License-Identifier: Apache-2.0
// What is said of a rank that computes longer: by which instruction set, on how many threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "analysis/onednn.h"
#include "export/report/units.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::FewerThreads;
using analysis::why::LowerSet;
using analysis::why::MorePageFaults;
using analysis::why::RankFinding;
using analysis::why::RankSummary;

std::vector<std::string> LowerSetSentences(const Cause& cause, const std::string& share) {
  constexpr size_t kShown = 4;
  std::vector<std::string> names;
  std::vector<std::string> lines = {""};
  bool all_named = true;
  for (const LowerSet& set : cause.lower_sets) {
    names.push_back(Printed(set.primitive));
    for (const std::string& one : set.own) {
      all_named &= !analysis::InstructionSetOf(one).empty();
    }
    if (lines.size() > kShown) continue;
    lines.push_back(absl::StrCat(names.back(), ": ", Printed(absl::StrJoin(set.own, ", ")),
                                 set.all_others ? ", on the others " : ", on most others ",
                                 Printed(absl::StrJoin(set.others, ", "))));
  }
  lines[0] =
      absl::StrCat("its oneDNN does the same work by a lower instruction set",
                   all_named ? "" : ", or by none that is named", ": ", absl::StrJoin(names, ", "),
                   names.size() == 1 ? " takes " : " take ", share);
  return lines;
}

std::vector<std::string> ThreadSentences(const Answer& answer, const FewerThreads& threads,
                                         const std::string& share) {
  const std::string others =
      answer.ranks.size() > 2 ? "the other ranks (median)" : "the other rank";
  std::vector<std::string> lines = {
      absl::StrCat("its operators run on fewer threads: that takes ", share),
      absl::StrCat(
          "CPU time of the process's threads beside its training thread (those that carry ",
          "out collectives left out): ", Ms(threads.own_helpers_ns), " ms a step, of ", others, " ",
          Ms(threads.others_helpers_ns), " ms; with the training thread ", Ms(threads.own_cpu_ns),
          " ms, of ", others, " ", Ms(threads.others_cpu_ns), " ms")};
  if (threads.own_threads > 0 && threads.own_threads < threads.others_threads) {
    lines.push_back(absl::StrCat("its process has at most ", Plural(threads.own_threads, "thread"),
                                 " of all kinds, that of ", others, " at least ",
                                 threads.others_threads));
  }
  return lines;
}

std::string Thousands(double count) { return Count(static_cast<uint64_t>(std::llround(count))); }

// Of a step of the rank it takes so much that it is to be said.
bool IsMuch(const RankSummary& rank) {
  constexpr int64_t kPercent = 3;
  constexpr int64_t kLeastNs = 500'000;
  if (!rank.page_faults.has_value()) return false;
  const int64_t step_ns = rank.page_faults->step_ns();
  return step_ns >= kLeastNs && step_ns * 100 >= rank.mean_step_ns * kPercent;
}

}  // namespace

std::vector<std::string> ComputeSentences(const Answer& answer, const Cause& cause,
                                          const std::string& share) {
  if (cause.threads.has_value()) return ThreadSentences(answer, *cause.threads, share);
  return LowerSetSentences(cause, share);
}

bool PageFaultsAreMuch(const Answer& answer) {
  return std::any_of(answer.ranks.begin(), answer.ranks.end(), IsMuch);
}

std::vector<std::string> MemorySentences(const Answer& answer) {
  const bool said =
      std::any_of(answer.findings.begin(), answer.findings.end(),
                  [](const RankFinding& finding) { return finding.page_faults.has_value(); });
  if (said || !PageFaultsAreMuch(answer)) return {};
  std::vector<const RankSummary*> ranks;
  for (const RankSummary& rank : answer.ranks) {
    if (rank.page_faults.has_value()) ranks.push_back(&rank);
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankSummary* a, const RankSummary* b) {
    return a->page_faults->step_ns() > b->page_faults->step_ns();
  });
  const auto text_of = [](const RankSummary& rank) {
    return absl::StrFormat("rank %d %s a step, some %s ms at %.1f µs each", rank.rank,
                           Thousands(rank.page_faults->per_step), Ms(rank.page_faults->step_ns()),
                           static_cast<double>(rank.page_faults->page_ns) / 1000);
  };
  std::string text = absl::StrCat(
      "page faults that need no storage, if they are memory that comes anew from the ",
      "kernel, by what that was measured to cost on the nodes: ", text_of(*ranks.front()));
  if (ranks.size() == 2) absl::StrAppend(&text, "; ", text_of(*ranks.back()));
  if (ranks.size() > 2) {
    absl::StrAppend(&text, ", the most; ", text_of(*ranks[ranks.size() / 2]), ", in the middle");
  }
  return {absl::StrCat(text, ". Mapped files and copies after a fork cost other times")};
}

std::string FaultSentence(const Answer& answer, const MorePageFaults& faults) {
  return absl::StrFormat(
      "may be a part of it: %s page faults a step in its training thread that need no storage, %s "
      "%s; if they are memory that comes anew from the kernel, they take some %s ms a step more",
      Thousands(faults.own.per_step), Thousands(faults.others),
      answer.ranks.size() > 2 ? "in those of the others (median)" : "in that of the other rank",
      Ms(faults.more_ns));
}

std::string AllowedSentence(const Answer& answer, const RankFinding& finding) {
  const bool threads = std::any_of(finding.causes.begin(), finding.causes.end(),
                                   [](const Cause& one) { return one.threads.has_value(); });
  if (!threads) return "";  // else it need not matter
  const RankSummary& rank = answer.ranks[finding.index];
  uint32_t least = UINT32_MAX;  // of the others
  for (size_t i = 0; i < answer.ranks.size(); ++i) {
    if (i != finding.index) least = std::min(least, answer.ranks[i].allowed_count);
  }
  // 0: not known.
  if (rank.allowed_count == 0 || rank.allowed_count >= least || answer.ranks.size() < 2) return "";
  return absl::StrCat(
      "its threads may run on ", Plural(rank.allowed_count, "CPU"), " (",
      Printed(rank.allowed_cpus), "), those of ",
      answer.ranks.size() > 2 ? "each other rank on at least " : "the other rank on ", least);
}

}  // namespace syncline::report
