// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/clock_speed.h"

#include <algorithm>
#include <utility>

#include "analysis/why/samples.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kReadingsMin = 10;
constexpr size_t kTenth = 10;

// Of the judged steps, ascending; empty: too few.
std::vector<int64_t> ClocksOf(const JudgedRank& rank) {
  if (!rank.samples.measured() || rank.steps.empty()) return {};
  std::vector<Reading> within;
  for (const Reading& reading : rank.samples.driver) {
    const bool early = reading.at_ns < rank.steps.front().begin_ns;
    if (!early && reading.at_ns <= rank.steps.back().end_ns) within.push_back(reading);
  }
  std::vector<int64_t> clocks = ClocksIn(within);
  if (clocks.size() < kReadingsMin) clocks.clear();
  return clocks;
}

int64_t MedianOf(const std::vector<int64_t>& ascending) { return ascending[ascending.size() / 2]; }

// How long its driver is on a CPU, a step.
int64_t OnCpuNs(const JudgedRank& rank) {
  int64_t on_cpu_ns = 0;
  for (const OwnInterval& step : rank.steps) {
    on_cpu_ns += GrownIn(rank.samples.driver, &Reading::on_cpu_ns, step);
  }
  return on_cpu_ns / static_cast<int64_t>(rank.steps.size());
}

}  // namespace

std::vector<int64_t> ClocksIn(std::span<const Reading> readings) {
  std::vector<int64_t> clocks;
  for (const Reading& reading : readings) {
    if (reading.clock_khz > 0) clocks.push_back(reading.clock_khz);
  }
  std::sort(clocks.begin(), clocks.end());
  return clocks;
}

std::optional<CpuClock> CpuClockOf(const JudgedRank& rank) {
  const std::vector<int64_t> clocks = ClocksOf(rank);
  if (clocks.empty()) return std::nullopt;
  return CpuClock{MedianOf(clocks), clocks.size()};
}

std::optional<SlowerClock> SlowerClockOf(std::span<const JudgedRank> ranks, size_t rank,
                                         int64_t limit_ns) {
  std::vector<std::pair<std::vector<int64_t>, const JudgedRank*>> others;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == rank) continue;
    others.emplace_back(ClocksOf(ranks[i]), &ranks[i]);
    if (others.back().first.empty()) return std::nullopt;
  }
  const std::vector<int64_t> own = ClocksOf(ranks[rank]);
  if (own.empty() || others.empty()) return std::nullopt;
  std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) {
    return MedianOf(a.first) < MedianOf(b.first);
  });
  const auto& [other, middle] = others[(others.size() - 1) / 2];
  if (own[own.size() - 1 - own.size() / kTenth] >= other[other.size() / kTenth]) {
    return std::nullopt;
  }
  const double ratio = static_cast<double>(MedianOf(own)) / static_cast<double>(MedianOf(other));
  const int64_t on_cpu_ns = OnCpuNs(ranks[rank]);
  const auto by_clock_ns = static_cast<int64_t>(static_cast<double>(on_cpu_ns) * (1 - ratio));
  const int64_t more_ns = std::min(by_clock_ns, on_cpu_ns - OnCpuNs(*middle));
  if (more_ns <= limit_ns) return std::nullopt;
  return SlowerClock{{MedianOf(own), own.size()}, MedianOf(other), more_ns};
}

}  // namespace syncline::analysis::why
