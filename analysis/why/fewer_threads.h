// SPDX-License-Identifier: Apache-2.0
// Who does the same work on fewer threads than the others: by another setting, or since it was
// pinned to fewer CPUs before it started, from which libraries take how many threads they make. One
// that has as many threads, on fewer CPUs, is not found here: its threads wait for each other.
// Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_FEWER_THREADS_H_
#define SYNCLINE_ANALYSIS_WHY_FEWER_THREADS_H_

#include <cstddef>
#include <cstdint>
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
  double queued_ns = 0;   // by how much more a sampled helper was kept waiting for a CPU
  double busy = 0;        // threads
  // All threads of the process, and the CPUs that they may use; 0: not known.
  uint32_t threads_least = 0;
  uint32_t threads_most = 0;
  uint32_t allowed_cpus = 0;
};

// By rank; nullopt: not known, or less than 95 % of the sampled time are judged steps. Helpers are
// counted over all of that time: in the rest of it they do something else, such as an evaluation.
std::vector<std::optional<StepUse>> StepUsesOf(std::span<const JudgedRank> ranks);

// Busy threads of a rank: 1 and, for each ns of the compute part, the processor time of threads
// other than the driver and those that carry out collectives. Threads that wait for work actively
// (OpenMP's) count as busy.
//
// `rank` is one of at least two; nullopt, if anything of this is not so or not known:
// - more than half of the others have at least a third more busy threads than it;
// - more than half of the others have more threads than it, by half of what they keep more busy or
//   more; or may use more CPUs, and it fewer than they keep threads busy;
// - it uses no more processor time than they do (median, plus a tenth): it has no more work, and
//   its processor is not slower;
// - its host code, which runs on one thread, differs by at most half of what its compute part
//   does, in proportion: between processors of different speed both do;
// - of what it computes longer, at most a tenth is sleep of its driver, and at most half a helper's
//   wait for a CPU;
// - what it computes longer is from half to 1.25 times what its fewer threads explain: the
//   processor time that threads beside the driver spend on the others and not on it. Less would
//   show threads of theirs that do something else.
// That the ranks do the same work is the caller's to know.
std::optional<FewerThreads> FewerThreadsOf(std::span<const std::optional<StepUse>> uses,
                                           size_t rank);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_FEWER_THREADS_H_
