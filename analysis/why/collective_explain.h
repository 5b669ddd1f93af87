// SPDX-License-Identifier: Apache-2.0
// Whom the ranks of a job wait for, by the kernels of its collectives alone. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_COLLECTIVE_EXPLAIN_H_
#define SYNCLINE_ANALYSIS_WHY_COLLECTIVE_EXPLAIN_H_

#include <span>

#include "analysis/communicators.h"
#include "analysis/why/collective_model.h"

namespace syncline::analysis::why {

// `communicators`: of one job, with all that were recorded; at least one. `nodes`: names by number.
// `ranks`: how many the job has, -1: it does not say. `incomplete`: something was lost.
CollectiveAnswer ExplainCollectives(std::span<const CommunicatorReport> communicators,
                                    std::span<const std::string> nodes, int32_t ranks,
                                    bool incomplete);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_COLLECTIVE_EXPLAIN_H_
