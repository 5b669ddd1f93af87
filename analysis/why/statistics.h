// SPDX-License-Identifier: Apache-2.0
// Means over steps with their intervals, and a test of whether ranks differ. Steps of a job
// correlate with their neighbours, so both draw blocks of steps, never single ones. Integers and a
// fixed seed: the same input gives the same numbers on any machine. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_STATISTICS_H_
#define SYNCLINE_ANALYSIS_WHY_STATISTICS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Steps that an answer needs at least, and from which on it says more (docs/findings.md).
inline constexpr size_t kStepsMin = 30;
inline constexpr size_t kStepsSure = 60;
// Of how many steps a block is: the longer the recording, the slower are the changes that are seen
// in it, so there are at most 20 blocks or a few more.
constexpr size_t BlockOf(size_t steps) {
  return steps >= kStepsSure ? std::max<size_t>(6, steps / 20) : 3;
}

// Rounded to the nearest; 0 of nothing.
int64_t MeanOf(std::span<const int64_t> values);

// The one in the middle, of an even number the larger of the two; nullopt: of nothing.
std::optional<int64_t> MedianOf(std::vector<int64_t> values);

// Of each series, 2,000 means of whole blocks drawn with replacement: `[series][sample]`. Series
// have one length, one value a step, in order of time; a sample has the same blocks of all of them.
// They are as much farther from the series' mean than what was drawn as means of so few blocks
// scatter more: by √(k / (k - 1)) and Student's t of 95 % over the normal distribution's, of k
// blocks.
std::vector<std::vector<int64_t>> SampledMeans(std::span<const std::span<const int64_t>> series,
                                               size_t block, uint64_t seed);

// Of samples in any order, the interval that holds the middle 95 %.
struct Interval {
  int64_t lo = 0;
  int64_t hi = 0;
};
Interval MiddleOf(std::vector<int64_t> samples);

// The mean with its interval of 95 %: the middle of SampledMeans.
MeanEstimate Bootstrap(std::span<const int64_t> values, size_t block);

// The standard deviation, of a sample of at least two.
double Deviation(std::span<const double> values);

// Student's t for an interval that holds `confidence` (0 to 1, less than 1) of a mean of
// `degrees` + 1 values; at least one degree.
double StudentQuantile(double confidence, size_t degrees);

// The mean with an interval that holds `confidence`, by Student's t over means of whole blocks;
// what is left behind the last of them counts in the mean alone. From INT64_MIN to INT64_MAX: there
// are not two blocks.
MeanEstimate StudentMean(std::span<const int64_t> values, size_t block, double confidence);

// Means over steps of the parts of a step, which add up to `mean_step_ns`: what rounding leaves
// goes to the largest.
template <size_t N>
std::array<int64_t, N> MeanParts(std::span<const std::array<int64_t, N>> steps,
                                 int64_t mean_step_ns) {
  std::array<int64_t, N> sums{};
  for (const std::array<int64_t, N>& step : steps) {
    for (size_t part = 0; part < N; ++part) sums[part] += step[part];
  }
  const auto largest = std::max_element(sums.begin(), sums.end()) - sums.begin();
  std::array<int64_t, N> means{};
  int64_t left_ns = mean_step_ns;
  for (size_t part = 0; part < N; ++part) {
    means[part] = sums[part] / static_cast<int64_t>(steps.size());
    left_ns -= means[part];
  }
  means[static_cast<size_t>(largest)] += left_ns;
  return means;
}

// The probability that, if ranks could be exchanged within each block of steps, the largest rank
// would be as far above the mean of all as it is; from 2,000 exchanges. `values[rank][step]`.
double PermutationTest(std::span<const std::vector<int64_t>> values, size_t block);

// Of each step: the median, and the largest, of the ranks other than one. Computed once for all
// ranks: a step costs a sort.
class Others {
 public:
  // `values[rank][step]`; at least two ranks.
  explicit Others(std::span<const std::vector<int64_t>> values);

  int64_t Median(size_t rank, size_t step) const;
  int64_t Largest(size_t rank, size_t step) const;
  // Of each step, the rank's value less the others' median.
  std::vector<int64_t> Excess(size_t rank) const;

 private:
  // The k-th smallest of the others.
  int64_t At(size_t rank, size_t step, size_t k) const;

  std::span<const std::vector<int64_t>> values_;
  std::vector<std::vector<int64_t>> sorted_;  // by step
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STATISTICS_H_
