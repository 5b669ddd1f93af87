// SPDX-License-Identifier: Apache-2.0
#include "export/why/path_text.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "export/report/units.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::CriticalPath;
using analysis::why::Part;
using analysis::why::PartName;
using analysis::why::PartTable;

constexpr size_t kRanksShown = 4;
constexpr size_t kKindsShown = 3;
constexpr int64_t kNothingNs = 50'000;  // "0.0 ms"
constexpr int64_t kSmallPercent = 2;    // of the path: less is not worth a word

bool IsSmall(const CriticalPath& path, int64_t ns) {
  return ns * 100 < path.step.est_ns * kSmallPercent;
}

std::string PercentText(const CriticalPath& path, int64_t ns) {
  const int64_t percent =
      path.step.est_ns > 0 ? (ns * 100 + path.step.est_ns / 2) / path.step.est_ns : 0;
  return absl::StrCat(percent, " %");
}

// "(compute 40.6, throttled 20.4)", the longest first; empty where all are small.
std::string PartsText(const CriticalPath& path, const PartTable& parts) {
  std::vector<std::string> texts;
  for (const Part part : LargestFirst(parts)) {
    const int64_t ns = parts[static_cast<size_t>(part)];
    if (IsSmall(path, ns)) break;
    texts.push_back(absl::StrCat(PartName(part), " ", Ms(ns)));
  }
  return texts.empty() ? "" : absl::StrCat(" (", absl::StrJoin(texts, ", "), ")");
}

// "allreduce, broadcast": the longest, of those that are followed or not.
std::string KindsText(const CriticalPath& path, bool followed) {
  std::vector<std::string> names;
  size_t all = 0;
  for (const CriticalPath::Kind& kind : path.kinds) {
    if (kind.followed != followed || kind.ns <= 0) continue;
    if (++all <= kKindsShown) names.push_back(Printed(kind.name));
  }
  if (all > names.size()) names.emplace_back("...");
  return absl::StrJoin(names, ", ");
}

// What ranks wait in for each other.
std::string MeetingsWord(const Answer& answer) {
  const std::vector<CriticalPath::Kind>& kinds = answer.path->kinds;
  const auto transfers = std::count_if(
      kinds.begin(), kinds.end(),
      [](const CriticalPath::Kind& kind) { return kind.name == analysis::why::kTransferName; });
  if (transfers == 0) return "collectives";
  return static_cast<size_t>(transfers) == kinds.size() ? "transfers" : "collectives and transfers";
}

std::string CollectivesText(const Answer& answer) {
  const CriticalPath& path = *answer.path;
  std::string text = absl::StrCat(MeetingsWord(answer), " ", WithInterval(path.collectives));
  const std::string followed = KindsText(path, true);
  if (!followed.empty()) absl::StrAppend(&text, " (", followed, ")");
  if (IsSmall(path, path.not_followed_ns)) return text;
  return absl::StrCat(text, ", of which ", Ms(path.not_followed_ns), " ms in ",
                      KindsText(path, false), ": for whom ranks wait there is not looked at");
}

std::string SharesText(const Answer& answer) {
  const CriticalPath& path = *answer.path;
  std::vector<size_t> order(path.ranks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return path.ranks[a].est_ns > path.ranks[b].est_ns; });
  std::vector<std::string> texts;
  int64_t others_ns = 0;
  size_t others = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t rank = order[i];
    if (i >= kRanksShown || (i > 0 && IsSmall(path, path.ranks[rank].est_ns))) {
      others_ns += path.ranks[rank].est_ns;
      ++others;
      continue;
    }
    texts.push_back(absl::StrCat(texts.empty() ? "own work of rank " : "of rank ",
                                 answer.ranks[rank].rank, " ", WithInterval(path.ranks[rank]),
                                 PartsText(path, path.parts[rank])));
  }
  if (others_ns > kNothingNs) {
    texts.push_back(
        absl::StrCat("of ", others == 1 ? "the other rank" : absl::StrCat(others, " other ranks"),
                     " ", Ms(others_ns), " ms"));
  }
  texts.push_back(CollectivesText(answer));
  return absl::StrCat("what a step of ", Ms(path.step.est_ns),
                      " ms waits for, one after the other: ", absl::StrJoin(texts, "; "));
}

// How much collectives can be on the path at most, if the clocks are wrong by all of their bound
// wherever it goes from one rank to another.
int64_t CollectivesMost(const Answer& answer) {
  const CriticalPath& path = *answer.path;
  const auto steps = static_cast<int64_t>(std::max<uint64_t>(1, answer.steps));
  return path.collectives.est_ns + path.unsure_ns +
         static_cast<int64_t>(path.crossings) * 2 * answer.clock_bound_ns.value_or(0) / steps;
}

std::string SavesText(const Answer& answer) {
  const CriticalPath& path = *answer.path;
  const int64_t collectives_ns = std::min(CollectivesMost(answer), path.step.est_ns);
  const int64_t most_ns = std::min(collectives_ns, path.least_wait_ns);
  return absl::StrCat("faster ", MeetingsWord(answer), " would save at most ", Ms(most_ns), " ms (",
                      PercentText(path, most_ns),
                      "), as long as each rank's own work stays as it is",
                      answer.clock_bound_ns.has_value() ? "" : "; error of the clocks not known");
}

// Of a step, rounded.
std::string CountText(double count) { return Count(static_cast<uint64_t>(count + 0.5)); }

// "at most 4 bytes"
std::string CarriedText(uint64_t bytes) {
  if (bytes == 0) return "nothing";
  return absl::StrCat("at most ", bytes < 1000 ? absl::StrCat(bytes, " bytes")
                                               : BytesText(static_cast<double>(bytes)));
}

std::string SmallText(const CriticalPath& path) {
  const analysis::why::SmallCollectives& small = *path.small;
  const std::string count = CountText(small.count);
  const std::string all = CountText(small.all);
  return absl::StrCat(
      count == all ? absl::StrCat("all ", count) : absl::StrCat(count, " of the ", all),
      " collectives on it carry ", CarriedText(small.largest_bytes), ", and take about ",
      absl::StrFormat("%.2f", static_cast<double>(small.each_ns) / 1e6),
      " ms each whatever they carry: one of each kind for all of them would take ",
      WithInterval(small.saved), " less of a step (", PercentText(path, small.saved.est_ns), ")");
}

}  // namespace

std::vector<std::string> PathSentences(const Answer& answer) {
  if (!answer.path.has_value()) {
    if (answer.path_unknown.empty()) return {};
    return {absl::StrCat("not known: ", answer.path_unknown)};
  }
  const CriticalPath& path = *answer.path;
  std::vector<std::string> sentences = {SharesText(answer), SavesText(answer)};
  if (answer.findings.empty() && path.uneven.has_value() && path.uneven->lo_ns > 0 &&
      !IsSmall(path, path.uneven->est_ns)) {
    sentences.push_back(absl::StrCat(
        "spread evenly over the ranks at every moment, the same own work would save ",
        WithInterval(*path.uneven), " (", PercentText(path, path.uneven->est_ns), ")"));
  }
  if (path.small.has_value()) sentences.push_back(SmallText(path));
  return sentences;
}

}  // namespace syncline::report
