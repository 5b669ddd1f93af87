// SPDX-License-Identifier: Apache-2.0
// A mean over steps with its interval. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_MEAN_ESTIMATE_H_
#define SYNCLINE_ANALYSIS_WHY_MEAN_ESTIMATE_H_

#include <cstdint>

namespace syncline::analysis::why {

// ns, with its interval of 95 %, by bootstrap over blocks of steps.
struct MeanEstimate {
  int64_t est_ns = 0;
  int64_t lo_ns = 0;
  int64_t hi_ns = 0;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_MEAN_ESTIMATE_H_
