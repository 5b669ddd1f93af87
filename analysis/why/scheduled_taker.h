// SPDX-License-Identifier: Apache-2.0
// Who had the CPU while a rank's driver was ready to run, by the scheduler's own trace
// (`syncline record --scheduling`). Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_SCHEDULED_TAKER_H_
#define SYNCLINE_ANALYSIS_WHY_SCHEDULED_TAKER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/why/judged.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

// The driver's own turns, in order of time; none without a trace.
std::vector<const evidence::Turn*> DriverTurns(const RankInput& rank, int32_t driver_tid);

// The kind of takers that had the CPU longest in the judged `steps`, with the largest of that kind
// by name; Taker::cpu_ns is the mean of a step. nullopt: the rank has no such trace, the driver did
// not wait, or who had the CPU is known of less than half of that time.
std::optional<Taker> ScheduledTakerOf(std::span<const RankInput> job, const RankInput& rank,
                                      int32_t driver_tid, std::span<const OwnInterval> steps);

// The same, or else by the samples (takers.h).
std::optional<Taker> WhoTook(const JobInput& input, const JudgedRank& rank);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_SCHEDULED_TAKER_H_
