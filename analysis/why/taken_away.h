// SPDX-License-Identifier: Apache-2.0
// What the kernel took from a driver's own work: the growth of its run-queue time between two
// samples, cut out of the pieces that stand out from their kind (parts.h), the largest excess over
// the usual first; what that leaves, evenly out of the own work of that time. A single step's
// value is an estimate; the window's sum is the counter's. Pure.
//
// Worked example: a quota stops the driver for 70 ms within `conv`, which usually takes 3 ms. The
// sample behind it shows 70 ms of run-queue time more, all of it throttled by the group's count:
// `conv` took 73, its excess is 70, and 70 ms of compute become `throttled`.
#ifndef SYNCLINE_ANALYSIS_WHY_TAKEN_AWAY_H_
#define SYNCLINE_ANALYSIS_WHY_TAKEN_AWAY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/why/parts.h"
#include "analysis/why/samples.h"

namespace syncline::analysis::why {

struct Unplaced {
  int64_t ns = 0;         // run-queue time for which no own work was found
  int64_t judged_ns = 0;  // of it, in judged steps
};

// Moves what was taken from its part to kThrottled and kWaitingForCpu in `tables` (of the judged
// steps). `pieces` are in order.
Unplaced TakeAway(std::span<const Growth> growths, std::vector<Piece>* pieces,
                  std::vector<PartTable>* tables);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TAKEN_AWAY_H_
