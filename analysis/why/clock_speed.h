// SPDX-License-Identifier: Apache-2.0
// How fast the processors of ranks were clocked. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_CLOCK_SPEED_H_
#define SYNCLINE_ANALYSIS_WHY_CLOCK_SPEED_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/why/clock_speed_model.h"
#include "analysis/why/judged.h"

namespace syncline::analysis::why {

// What readings say of the clock, in kHz, ascending.
std::vector<int64_t> ClocksIn(std::span<const Reading> readings);

// nullopt: not measured, or too seldom.
std::optional<CpuClock> CpuClockOf(const JudgedRank& rank);

// Of a rank whose clock was certainly lower than the others': nine of ten of its readings are lower
// than nine of ten of the other rank's in the middle, and what that takes, which is no more than
// its driver is longer on a CPU than that rank's, is above `limit_ns` a step. nullopt: not so, or
// not known of all ranks.
std::optional<SlowerClock> SlowerClockOf(std::span<const JudgedRank> ranks, size_t rank,
                                         int64_t limit_ns);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CLOCK_SPEED_H_
