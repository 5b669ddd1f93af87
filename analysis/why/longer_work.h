// SPDX-License-Identifier: Apache-2.0
// In which operators a late rank computes longer than the others, at the same work. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_LONGER_WORK_H_
#define SYNCLINE_ANALYSIS_WHY_LONGER_WORK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/why/mean_estimate.h"

namespace syncline::analysis::why {

// Its time is that in itself, not in operators within it, without what was taken away.
struct LongerOperator {
  std::string name;
  MeanEstimate longer;    // than the others' median, a step
  int64_t own_ns = 0;     // a step
  int64_t others_ns = 0;  // the others' median, a step
  double calls = 0;       // a step; as many as on the others
};

// Operators do not differ much in how much longer they take: times the others' median.
struct AllLonger {
  size_t operators = 0;  // that were compared: those that take 1 % of the others' computing or more
  size_t certain = 0;    // of them, that certainly take longer
  // Of the time that the others spend in them, half lies between `low` and `high`.
  double low = 1;
  double middle = 1;
  double high = 1;
};

struct LongerWork {
  int64_t longer_ns = 0;                  // all of these together, a step
  std::vector<LongerOperator> operators;  // that stand out; what makes most of it first
  std::optional<AllLonger> all;           // then none stands out
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_LONGER_WORK_H_
