// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <utility>

namespace syncline::analysis::why {
namespace {

constexpr size_t kSamples = 2000;
constexpr uint64_t kSeed = 1;

int64_t Divide(int64_t sum, int64_t count) {
  if (count == 0) return 0;
  const int64_t half = sum < 0 ? -count / 2 : count / 2;
  return (sum + half) / count;
}

// Not std::uniform_int_distribution, which differs between libraries. The bias of so small a range
// in 64 bits cannot be seen.
size_t Below(std::mt19937_64* random, size_t bound) { return (*random)() % bound; }

// How much farther from the mean a bootstrap of so few blocks must look (statistics.h).
double Widening(size_t blocks) {
  if (blocks < 2) return 1;
  constexpr double kNormal = 1.959964;
  const auto count = static_cast<double>(blocks);
  return StudentQuantile(0.95, blocks - 1) / kNormal * std::sqrt(count / (count - 1));
}

// The probability that Student's t lies between -t and t: the finite series (Abramowitz and Stegun,
// 26.7.3 and 26.7.4).
double StudentWithin(double t, size_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1;
  double sum = 0;
  for (size_t k = odd ? 1 : 0; k + 2 <= degrees; k += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(k + 1) / static_cast<double>(k + 2);
  }
  const double series = std::sin(angle) * sum;
  return odd ? 2 / std::numbers::pi * (angle + series) : series;
}

}  // namespace

int64_t MeanOf(std::span<const int64_t> values) {
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  return Divide(sum, static_cast<int64_t>(values.size()));
}

double Deviation(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const double one : values) mean += one / count;
  double squares = 0;
  for (const double one : values) squares += (one - mean) * (one - mean);
  return std::sqrt(squares / (count - 1));
}

double StudentQuantile(double confidence, size_t degrees) {
  double low = 0;
  double high = 1;
  while (StudentWithin(high, degrees) < confidence && high < 1e9) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (StudentWithin(middle, degrees) < confidence ? low : high) = middle;
  }
  return high;
}

MeanEstimate StudentMean(std::span<const int64_t> values, size_t block, double confidence) {
  MeanEstimate mean{MeanOf(values), INT64_MIN, INT64_MAX};
  std::vector<double> blocks;
  for (size_t i = 0; i + block <= values.size(); i += block) {
    blocks.push_back(static_cast<double>(MeanOf(values.subspan(i, block))));
  }
  if (blocks.size() < 2) return mean;
  const double half = StudentQuantile(confidence, blocks.size() - 1) * Deviation(blocks) /
                      std::sqrt(static_cast<double>(blocks.size()));
  mean.lo_ns = mean.est_ns - std::llround(half);
  mean.hi_ns = mean.est_ns + std::llround(half);
  return mean;
}

std::optional<int64_t> MedianOf(std::vector<int64_t> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::vector<int64_t>> SampledMeans(std::span<const std::span<const int64_t>> series,
                                               size_t block, uint64_t seed) {
  std::vector<std::vector<int64_t>> means(series.size(), std::vector<int64_t>(kSamples));
  if (series.empty() || series[0].empty()) return means;
  const size_t steps = series[0].size();
  const size_t blocks = (steps + block - 1) / block;
  const auto steps_of = [&](size_t i) {
    return static_cast<int64_t>(std::min(block, steps - i * block));
  };
  std::vector<std::vector<int64_t>> sums(series.size(), std::vector<int64_t>(blocks, 0));
  for (size_t i = 0; i < series.size(); ++i) {
    for (size_t step = 0; step < steps; ++step) sums[i][step / block] += series[i][step];
  }
  std::vector<int64_t> centres;
  for (const std::span<const int64_t> one : series) centres.push_back(MeanOf(one));
  const double widening = Widening(blocks);
  std::mt19937_64 random(seed);
  std::vector<size_t> drawn(blocks);
  for (size_t sample = 0; sample < kSamples; ++sample) {
    int64_t count = 0;
    for (size_t& one : drawn) {
      one = Below(&random, blocks);
      count += steps_of(one);
    }
    for (size_t i = 0; i < series.size(); ++i) {
      int64_t sum = 0;
      for (const size_t one : drawn) sum += sums[i][one];
      const int64_t off = Divide(sum, count) - centres[i];
      means[i][sample] = centres[i] + std::llround(static_cast<double>(off) * widening);
    }
  }
  return means;
}

Interval MiddleOf(std::vector<int64_t> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() * 25 / 1000], samples[samples.size() * 975 / 1000 - 1]};
}

MeanEstimate Bootstrap(std::span<const int64_t> values, size_t block) {
  if (values.empty()) return {};
  const std::span<const int64_t> series[] = {values};
  const Interval middle = MiddleOf(std::move(SampledMeans(series, block, kSeed)[0]));
  return {MeanOf(values), middle.lo, middle.hi};
}

double PermutationTest(std::span<const std::vector<int64_t>> values, size_t block) {
  const size_t ranks = values.size();
  if (ranks < 2 || values[0].empty()) return 1;
  std::vector<std::vector<int64_t>> blocks;  // of each, the ranks' sums
  for (size_t i = 0; i < values[0].size(); i += block) {
    std::vector<int64_t> sums(ranks, 0);
    for (size_t rank = 0; rank < ranks; ++rank) {
      for (size_t j = i; j < std::min(values[rank].size(), i + block); ++j) {
        sums[rank] += values[rank][j];
      }
    }
    blocks.push_back(std::move(sums));
  }
  // The sum over all ranks stays, so the largest alone tells.
  std::vector<int64_t> totals(ranks, 0);
  const auto largest = [&] { return *std::max_element(totals.begin(), totals.end()); };
  for (const std::vector<int64_t>& sums : blocks) {
    for (size_t rank = 0; rank < ranks; ++rank) totals[rank] += sums[rank];
  }
  const int64_t real = largest();
  std::mt19937_64 random(kSeed);
  size_t as_large = 0;
  for (size_t sample = 0; sample < kSamples; ++sample) {
    std::fill(totals.begin(), totals.end(), 0);
    for (std::vector<int64_t>& sums : blocks) {
      for (size_t i = ranks - 1; i > 0; --i) std::swap(sums[i], sums[Below(&random, i + 1)]);
      for (size_t rank = 0; rank < ranks; ++rank) totals[rank] += sums[rank];
    }
    as_large += largest() >= real ? 1 : 0;
  }
  return static_cast<double>(1 + as_large) / static_cast<double>(1 + kSamples);
}

Others::Others(std::span<const std::vector<int64_t>> values) : values_(values) {
  sorted_.resize(values[0].size());
  for (size_t step = 0; step < sorted_.size(); ++step) {
    for (const std::vector<int64_t>& of_rank : values) sorted_[step].push_back(of_rank[step]);
    std::sort(sorted_[step].begin(), sorted_[step].end());
  }
}

int64_t Others::At(size_t rank, size_t step, size_t k) const {
  const std::vector<int64_t>& sorted = sorted_[step];
  // Of equal values any may be the rank's own.
  const auto own = static_cast<size_t>(
      std::lower_bound(sorted.begin(), sorted.end(), values_[rank][step]) - sorted.begin());
  return sorted[k < own ? k : k + 1];
}

int64_t Others::Median(size_t rank, size_t step) const {
  const size_t others = values_.size() - 1;
  if (others % 2 == 1) return At(rank, step, others / 2);
  const int64_t low = At(rank, step, others / 2 - 1);
  return low + (At(rank, step, others / 2) - low) / 2;
}

int64_t Others::Largest(size_t rank, size_t step) const {
  return At(rank, step, values_.size() - 2);
}

std::vector<int64_t> Others::Excess(size_t rank) const {
  std::vector<int64_t> excess;
  for (size_t step = 0; step < sorted_.size(); ++step) {
    excess.push_back(values_[rank][step] - Median(rank, step));
  }
  return excess;
}

}  // namespace syncline::analysis::why
