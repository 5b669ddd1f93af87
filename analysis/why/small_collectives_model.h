// SPDX-License-Identifier: Apache-2.0
// Collectives that take as long whatever they carry, as the answer has them. Plain values; what
// they mean: docs/findings.md.
#ifndef SYNCLINE_ANALYSIS_WHY_SMALL_COLLECTIVES_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_SMALL_COLLECTIVES_MODEL_H_

#include <cstdint>

#include "analysis/why/mean_estimate.h"

namespace syncline::analysis::why {

// Of the critical path, a step.
struct SmallCollectives {
  double count = 0;
  double all = 0;              // collectives on it, the others, too
  uint64_t largest_bytes = 0;  // of the small ones
  int64_t each_ns = 0;         // what one takes whatever it carries
  MeanEstimate total;          // what they take
  MeanEstimate saved;          // what one for all of each kind would take less
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_SMALL_COLLECTIVES_MODEL_H_
