// SPDX-License-Identifier: Apache-2.0
// What `syncline why` says of page faults that need no storage: memory that the kernel hands out
// anew. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_PAGE_FAULTS_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_PAGE_FAULTS_MODEL_H_

#include <cstdint>

namespace syncline::analysis::why {

// Of a rank's driver.
struct PageFaults {
  double per_step = 0;
  int64_t page_ns = 0;  // what a page costs on the rank's node, as it was measured there

  // If each is a page that comes anew from the kernel: other kinds cost other times.
  int64_t step_ns() const { return static_cast<int64_t>(per_step * static_cast<double>(page_ns)); }
};

// Of a late rank that has more of them than others.
struct MorePageFaults {
  PageFaults own;
  double others = 0;    // a step; the other ranks' median
  int64_t more_ns = 0;  // a step, as PageFaults::step_ns
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_PAGE_FAULTS_MODEL_H_
