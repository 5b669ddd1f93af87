// SPDX-License-Identifier: Apache-2.0
// The samples of a node, added up over a time. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_USAGE_H_
#define SYNCLINE_ANALYSIS_WHY_USAGE_H_

#include "analysis/machines.h"
#include "analysis/why/model.h"
#include "evidence/evidence.h"

namespace syncline::analysis::why {

// `within`: of the node's CLOCK_MONOTONIC; samples farther outside than kMarginNs are not used.
MachineUsage UsageOf(const evidence::Evidence& evidence, const OwnInterval& within);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_USAGE_H_
