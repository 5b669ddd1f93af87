// SPDX-License-Identifier: Apache-2.0
// Who does the same work on fewer threads than the others: by another setting, or because it may
// use fewer CPUs. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_FEWER_THREADS_H_
#define SYNCLINE_ANALYSIS_WHY_FEWER_THREADS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/why/judged.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Means of a step, ns.
struct StepUse {
  double compute_ns = 0;
  double host_ns = 0;
  double helpers_ns = 0;  // processor time of threads that compute for the driver
  double cpu_ns = 0;      // and of the driver
  double asleep_ns = 0;   // the driver, in own work
  double busy = 0;        // threads
};

// By rank; nullopt: not known.
std::vector<std::optional<StepUse>> StepUsesOf(std::span<const JudgedRank> ranks);

// Busy threads of a rank: 1 and, for each ns of the compute part, the processor time of threads
// other than the driver and those that carry out collectives. Threads that wait for work actively
// (OpenMP's) count as busy.
//
// `rank` is one of at least two; nullopt, if anything of this is not so or not known:
// - more than half of the others have at least a third more busy threads than it;
// - it uses no more processor time than they do (median, plus a tenth): it has no more work, and
//   its processor is not slower;
// - its host code, which runs on one thread, is longer by at most half of what its compute part
//   is, in proportion: on a slower processor both are;
// - at most half of what it computes longer its driver sleeps longer;
// - what it computes longer is no more than its fewer threads explain (and a quarter of that): the
//   processor time that threads beside the driver spend on the others and not on it.
// That the ranks do the same work is the caller's to know.
std::optional<FewerThreads> FewerThreadsOf(std::span<const std::optional<StepUse>> uses,
                                           size_t rank);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_FEWER_THREADS_H_
