// SPDX-License-Identifier: Apache-2.0
// Means over steps with their intervals, and a test of whether ranks differ. Steps of a job
// correlate with their neighbours, so both draw blocks of steps, never single ones. Integers and a
// fixed seed: the same input gives the same numbers on any machine. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_STATISTICS_H_
#define SYNCLINE_ANALYSIS_WHY_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Rounded to the nearest; 0 of nothing.
int64_t MeanOf(std::span<const int64_t> values);

// Of each series, 2,000 means of whole blocks drawn with replacement: `[series][sample]`. Series
// have one length, one value a step, in order of time; a sample has the same blocks of all of them.
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

 private:
  // The k-th smallest of the others.
  int64_t At(size_t rank, size_t step, size_t k) const;

  std::span<const std::vector<int64_t>> values_;
  std::vector<std::vector<int64_t>> sorted_;  // by step
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STATISTICS_H_
