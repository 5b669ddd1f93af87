// SPDX-License-Identifier: Apache-2.0
// Few steps that take far longer than the others: a checkpoint, an evaluation, a log that is
// written, a machine that stood still. Means over all steps say little of them. Pure.
//
// Worked example: of 240 steps of 30 ms four take 530 ms on both ranks. Rank 0's own work takes
// 500 ms longer there, rank 1 waits for it: 4 stalls, by rank 0, one in 60 steps; together they
// are 2 of 9.2 s.
#ifndef SYNCLINE_ANALYSIS_WHY_STALLS_H_
#define SYNCLINE_ANALYSIS_WHY_STALLS_H_

#include <optional>

#include "analysis/why/judged.h"
#include "analysis/why/stalls_model.h"

namespace syncline::analysis::why {

// Steps of at least twice the median step on every rank, and 5 ms longer: at most one in eight.
// nullopt: there are none, or none of their groups is large.
std::optional<Stalls> StallsOf(const JobInput& input, const Judged& judged);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STALLS_H_
