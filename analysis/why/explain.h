// SPDX-License-Identifier: Apache-2.0
// From a job's tasks, collectives and samples to the answer of `syncline why`. Pure: the same input
// gives the same answer, on any machine. The definitions: docs/findings.md.
#ifndef SYNCLINE_ANALYSIS_WHY_EXPLAIN_H_
#define SYNCLINE_ANALYSIS_WHY_EXPLAIN_H_

#include "analysis/why/model.h"

namespace syncline::analysis::why {

// `threads`: at most; the answer does not depend on them.
Answer Explain(const JobInput& input, size_t threads = 1);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_EXPLAIN_H_
