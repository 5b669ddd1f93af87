// SPDX-License-Identifier: Apache-2.0
// What `syncline why` says of a rank that does the same on fewer threads. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_THREAD_USE_H_
#define SYNCLINE_ANALYSIS_WHY_THREAD_USE_H_

#include <cstdint>

namespace syncline::analysis::why {

// `_ns`: processor time a step. `others`: the median of the other ranks.
struct FewerThreads {
  int64_t own_helpers_ns = 0;  // of threads beside the driver, but for those that do collectives
  int64_t others_helpers_ns = 0;
  int64_t own_cpu_ns = 0;  // of these and of the driver
  int64_t others_cpu_ns = 0;
  // Of what it computes longer than the others: the part that their threads explain, 0 to 1.
  double explained = 1;
  // All threads of the process, at most, and of theirs, at least; 0: not known.
  uint32_t own_threads = 0;
  uint32_t others_threads = 0;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_THREAD_USE_H_
