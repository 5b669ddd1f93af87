// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/page_faults.h"

#include <algorithm>
#include <cmath>

#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr double kMost = 1e9;  // in a step: more is a damaged file's

int64_t PageNsOf(const JudgedRank& rank) {
  return rank.input->evidence == nullptr ? 0 : rank.input->evidence->page_ns;
}

// By step; empty: not counted.
std::vector<int64_t> FaultsOf(const JudgedRank& rank) {
  const std::vector<Reading>& readings = rank.samples.driver;
  const bool counted = rank.samples.measured() &&
                       std::all_of(readings.begin(), readings.end(),
                                   [](const Reading& one) { return one.minor_faults >= 0; });
  if (!counted) return {};
  std::vector<int64_t> faults;
  for (const OwnInterval& step : rank.steps) {
    const int64_t grown = ValueAt(readings, &Reading::minor_faults, step.end_ns) -
                          ValueAt(readings, &Reading::minor_faults, step.begin_ns);
    // As many where there are no samples: before the first, behind the last.
    const double all = static_cast<double>(std::max<int64_t>(0, grown)) / rank.sampled;
    faults.push_back(std::llround(std::min(all, kMost)));
  }
  return faults;
}

}  // namespace

std::optional<PageFaults> PageFaultsOf(const JudgedRank& rank) {
  const std::vector<int64_t> faults = FaultsOf(rank);
  if (faults.empty() || PageNsOf(rank) <= 0) return std::nullopt;
  double sum = 0;
  for (const int64_t count : faults) sum += static_cast<double>(count);
  return PageFaults{sum / static_cast<double>(faults.size()), PageNsOf(rank)};
}

std::vector<std::vector<int64_t>> PageFaultTimesOf(std::span<const JudgedRank> ranks) {
  std::vector<std::vector<int64_t>> times_ns;
  for (const JudgedRank& rank : ranks) {
    std::vector<int64_t>& of_rank = times_ns.emplace_back(FaultsOf(rank));
    if (of_rank.empty() || PageNsOf(rank) <= 0) return {};
    for (int64_t& one : of_rank) one *= PageNsOf(rank);
  }
  return times_ns;
}

std::optional<MorePageFaults> MoreFaultsOf(const std::vector<std::vector<int64_t>>& times_ns,
                                           size_t rank, int64_t limit_ns,
                                           std::span<const RankSummary> ranks) {
  if (times_ns.empty()) return std::nullopt;
  const std::vector<int64_t> more_ns = Others(times_ns).Excess(rank);
  if (Bootstrap(more_ns, BlockOf(more_ns.size())).lo_ns <= limit_ns) return std::nullopt;
  std::vector<double> others;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i != rank) others.push_back(ranks[i].page_faults->per_step);
  }
  std::sort(others.begin(), others.end());
  // The lower one in the middle, as Others has it.
  return MorePageFaults{*ranks[rank].page_faults, others[(others.size() - 1) / 2], MeanOf(more_ns)};
}

}  // namespace syncline::analysis::why
