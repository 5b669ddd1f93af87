// SPDX-License-Identifier: Apache-2.0
// Several recordings of one job as one side of a comparison: their steps one after the other. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_POOLED_H_
#define SYNCLINE_ANALYSIS_WHY_POOLED_H_

#include <span>

#include "analysis/why/side.h"

namespace syncline::analysis::why {

// At least one; none is refused, and all have the same ranks and the same kind of steps. Names of
// the job and of the steps are the first one's.
Side Pooled(std::span<const Side> sides);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_POOLED_H_
