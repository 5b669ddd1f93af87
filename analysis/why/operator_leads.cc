// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/operator_leads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr double kConfidence = 0.95;
constexpr double kSameCalls = 0.05;   // counts that differ by less are the same
constexpr int64_t kWorthPercent = 1;  // of computing: operators that are compared as a whole
constexpr size_t kFewest = 5;         // of which "all" can be said
constexpr double kNearlyAll = 0.9;    // of them, and of the time in them
// Half of the time lies as close to the middle factor as this part of what that is above 1.
constexpr double kAlike = 0.5;
constexpr int64_t kHalf = 2;    // of what is not explained: what all operators take longer
constexpr int64_t kTenth = 10;  // one of them

}  // namespace

struct OperatorLeads::Compared {
  NameId name = 0;
  std::vector<int64_t> excess_ns;  // by step: of a block the mean
  int64_t own_ns = 0;              // a step
  int64_t longer_ns = 0;           // a step
  double calls = 0;                // a step
  int64_t others_ns() const { return own_ns - longer_ns; }
};

namespace {

// Of a block's steps the mean, so that blocks of steps add up to what they are made of.
std::vector<int64_t> BySteps(std::span<const int64_t> blocks_ns, size_t block, size_t steps) {
  std::vector<int64_t> values;
  for (size_t step = 0; step < steps; ++step) {
    const size_t begin = step / block * block;
    const auto count = static_cast<int64_t>(std::min(block, steps - begin));
    values.push_back(blocks_ns[step / block] / count);
  }
  return values;
}

// Of the time that the others spend, half lies between the first and the last.
template <class Compared>
AllLonger FactorsOf(const std::vector<const Compared*>& compared) {
  std::vector<std::pair<double, int64_t>> factors;
  int64_t all_ns = 0;
  for (const Compared* one : compared) {
    factors.emplace_back(static_cast<double>(one->own_ns) / static_cast<double>(one->others_ns()),
                         one->others_ns());
    all_ns += one->others_ns();
  }
  std::sort(factors.begin(), factors.end());
  const auto at = [&](double part) {
    int64_t sum_ns = 0;
    for (const auto& [factor, ns] : factors) {
      sum_ns += ns;
      if (static_cast<double>(sum_ns) >= part * static_cast<double>(all_ns)) return factor;
    }
    return factors.back().first;
  };
  AllLonger all;
  all.operators = compared.size();
  all.low = at(0.25);
  all.middle = at(0.5);
  all.high = at(0.75);
  return all;
}

// Nearly all of those that matter certainly take longer, and by a similar factor.
template <class Compared>
std::optional<LongerWork> AllOf(const std::vector<Compared>& compared, size_t block,
                                int64_t unknown_ns) {
  int64_t computing_ns = 0;
  for (const Compared& one : compared) computing_ns += one.others_ns();
  std::vector<const Compared*> worth;
  LongerWork work;
  size_t certain = 0;
  int64_t certain_ns = 0;
  int64_t worth_ns = 0;
  for (const Compared& one : compared) {
    if (one.others_ns() * 100 < computing_ns * kWorthPercent || one.others_ns() <= 0) continue;
    worth.push_back(&one);
    worth_ns += one.others_ns();
    work.longer_ns += one.longer_ns;
    if (StudentMean(one.excess_ns, block, kConfidence).lo_ns <= 0) continue;
    ++certain;
    certain_ns += one.others_ns();
  }
  const double nearly_ns = kNearlyAll * static_cast<double>(worth_ns);
  const double nearly_count = kNearlyAll * static_cast<double>(worth.size());
  if (worth.size() < kFewest || static_cast<double>(certain_ns) < nearly_ns ||
      static_cast<double>(certain) < nearly_count || work.longer_ns * kHalf < unknown_ns) {
    return std::nullopt;
  }
  AllLonger all = FactorsOf(worth);
  all.certain = certain;
  const double near = kAlike * (all.middle - 1);
  if (all.low < all.middle - near || all.high > all.middle + near) return std::nullopt;
  work.all = all;
  return work;
}

}  // namespace

OperatorLeads::OperatorLeads(std::span<const JudgedRank> ranks, std::span<const std::string> names)
    : ranks_(ranks), names_(names), steps_(ranks[0].steps.size()), block_(BlockOf(steps_)) {
  const size_t blocks = (steps_ + block_ - 1) / block_;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [name, times_ns] : ranks[rank].operators_ns) {
      auto& of_ranks = times_ns_[name];
      of_ranks.resize(ranks.size(), std::vector<int64_t>(blocks, 0));
      of_ranks[rank] = times_ns;
    }
    for (const auto& [key, counts] : ranks[rank].work.counts) {
      if (!ranks[rank].operators_ns.contains(key.second)) continue;
      std::vector<double>& calls = calls_[key.second];
      calls.resize(ranks.size());
      for (const uint32_t count : counts) calls[rank] += count;
    }
  }
  for (const auto& [name, of_ranks] : times_ns_) others_.try_emplace(name, of_ranks);
  for (auto& [name, calls] : calls_) {
    for (double& one : calls) one /= static_cast<double>(steps_);
  }
}

// What ran as often as on the others.
std::vector<OperatorLeads::Compared> OperatorLeads::Compare(size_t rank) const {
  std::vector<Compared> compared;
  for (const auto& [name, times_ns] : times_ns_) {
    const auto calls = calls_.find(name);
    if (calls == calls_.end()) continue;
    std::vector<double> others = calls->second;
    others.erase(others.begin() + static_cast<ptrdiff_t>(rank));
    const auto median = others.begin() + static_cast<ptrdiff_t>((others.size() - 1) / 2);
    std::nth_element(others.begin(), median, others.end());
    const double own = calls->second[rank];
    const double apart = std::abs(own - *median);
    if (own == 0 || apart > kSameCalls * own) continue;
    Compared one;
    one.name = name;
    one.excess_ns = BySteps(others_.at(name).Excess(rank), block_, steps_);
    one.own_ns = MeanOf(BySteps(times_ns[rank], block_, steps_));
    one.longer_ns = MeanOf(one.excess_ns);
    one.calls = own;
    compared.push_back(std::move(one));
  }
  return compared;
}

// That one of many is certain by chance must be as improbable as if it were the only one.
std::optional<LongerWork> OperatorLeads::Of(size_t rank, int64_t unknown_ns) const {
  const std::vector<Compared> compared = Compare(rank);
  if (auto all = AllOf(compared, block_, unknown_ns); all.has_value()) return all;
  LongerWork work;
  const double confidence = 1 - (1 - kConfidence) / static_cast<double>(compared.size());
  for (const Compared& one : compared) {
    if (one.longer_ns * kTenth < unknown_ns) continue;
    if (StudentMean(one.excess_ns, block_, confidence).lo_ns <= 0) continue;
    work.operators.push_back({names_[one.name], Bootstrap(one.excess_ns, block_), one.own_ns,
                              one.others_ns(), one.calls});
    work.longer_ns += one.longer_ns;
  }
  if (work.operators.empty()) return std::nullopt;
  std::stable_sort(work.operators.begin(), work.operators.end(),
                   [](const LongerOperator& a, const LongerOperator& b) {
                     return a.longer.est_ns > b.longer.est_ns;
                   });
  return work;
}

}  // namespace syncline::analysis::why
