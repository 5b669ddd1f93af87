// SPDX-License-Identifier: Apache-2.0
// How long a driver ran, waited for a CPU and slept, as the kernel counts it. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_PROCESSOR_TIME_H_
#define SYNCLINE_ANALYSIS_WHY_PROCESSOR_TIME_H_

#include <optional>

#include "analysis/why/judged.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Of a step; nullopt without samples.
std::optional<ProcessorTime> ProcessorTimeOf(const JudgedRank& rank);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_PROCESSOR_TIME_H_
