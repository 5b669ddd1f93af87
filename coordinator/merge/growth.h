// SPDX-License-Identifier: Apache-2.0
// Counters on the timeline of amounts that grow. Not thread-safe.
#ifndef SYNCLINE_COORDINATOR_MERGE_GROWTH_H_
#define SYNCLINE_COORDINATOR_MERGE_GROWTH_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "timeline/counter_series.h"

namespace syncline::merge {

// One amount that grows, sample by sample: drawn is what it grows by, `scale` times, in a time; at
// most `most`.
class Growth {
 public:
  explicit Growth(double scale, double most = std::numeric_limits<double>::max())
      : scale_(scale), most_(most) {}

  // `sample` was taken between its two times: the amount counts for their middle.
  template <class Sample>
  void Add(const Sample& sample, int64_t amount_ns) {
    const int64_t at_ns = sample.at_ns + (sample.until_ns - sample.at_ns) / 2;
    if (any_ && at_ns <= at_ns_) return;
    if (any_) {
      const double grown_ns = static_cast<double>(std::max<int64_t>(0, amount_ns - amount_ns_));
      const double rate = std::min(most_, grown_ns * scale_ / static_cast<double>(at_ns - at_ns_));
      grew_ |= rate > 0;
      if (points_.empty() || points_.back().value != rate) points_.push_back({at_ns_, rate});
    }
    any_ = true;
    at_ns_ = at_ns;
    amount_ns_ = amount_ns;
  }

  // Appends the series, if anything grew.
  void Finish(timeline::CounterSeries series, std::vector<timeline::CounterSeries>* all) {
    if (!grew_) return;
    if (points_.back().value != 0) points_.push_back({at_ns_, 0});
    series.points = std::move(points_);
    all->push_back(std::move(series));
  }

 private:
  double scale_;
  double most_;
  bool any_ = false;
  bool grew_ = false;
  int64_t at_ns_ = 0;
  int64_t amount_ns_ = 0;
  std::vector<timeline::CounterPoint> points_;
};

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_GROWTH_H_
