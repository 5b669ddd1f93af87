// SPDX-License-Identifier: Apache-2.0
// How means over steps changed between recordings: one now, and one or several before.
//
// Algorithm: steps of the two recordings have nothing in common but their kind, so each side is
// resampled for itself: blocks of its steps, with replacement (statistics.h). A change is the
// difference of two means, its interval the middle 95 % of the differences of 2,000 pairs of
// samples. A sample has the same blocks of the step, of its parts and of operators, so that shares
// of the step are computed within a sample. The interval therefore holds how steps vary within each
// recording.
//
// Drift: recordings of one job differ without any change. Of one recording before nobody can tell
// by how much. Of several (n, taken as one: their steps one after the other) the interval is not
// narrower than that in which, with 95 %, one more recording of the same kind lies: their mean
// +- t(n-1) s sqrt(1 + 1/n), with s the standard deviation of their means and Student's t. With two
// that is 16 s, with three 5 s, with ten 2.4 s. Pure, deterministic.
#ifndef SYNCLINE_ANALYSIS_WHY_CHANGES_H_
#define SYNCLINE_ANALYSIS_WHY_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Of a mean over steps: what it was, what it is, and the difference, with an interval of 95 %.
struct Change {
  int64_t before_ns = 0;
  int64_t now_ns = 0;
  MeanEstimate change;  // now less before
  // The same in millionths of the mean step of the recording before.
  int64_t est_ppm = 0;
  int64_t lo_ppm = 0;
  int64_t hi_ppm = 0;

  bool certain() const { return change.lo_ns > 0 || change.hi_ns < 0; }
};

// Series of both sides, resampled together. The first one is the step.
class Changes {
 public:
  // How many steps each recording before has.
  explicit Changes(std::vector<size_t> lengths) : lengths_(std::move(lengths)) {}

  // One value a step. `divisor`: how many ranks' time is added up in it. Returns its number.
  size_t Add(std::vector<int64_t> before, std::vector<int64_t> now, int64_t divisor = 1);
  // Once, after the last Add.
  void Sample();
  // `moved_ns`: by how much clocks may have moved the two means apart; both ends of the intervals
  // are as much farther out.
  Change Of(size_t index, int64_t moved_ns = 0) const;

 private:
  struct Row {
    std::vector<int64_t> before;
    std::vector<int64_t> now;
    int64_t divisor;
  };

  int64_t StepBeforeNs() const;
  // By how the recordings before differ from each other.
  void Widen(const Row& row, Change* change) const;
  std::vector<std::vector<int64_t>> SamplesOf(std::vector<int64_t> Row::*side, uint64_t seed) const;

  std::vector<size_t> lengths_;
  std::vector<Row> rows_;
  std::vector<std::vector<int64_t>> before_;  // [row][sample]
  std::vector<std::vector<int64_t>> now_;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CHANGES_H_
