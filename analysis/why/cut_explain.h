// SPDX-License-Identifier: Apache-2.0
// What the steps of a model that is cut into partitions are made of: their critical paths, by
// partition, operator and tensor. Pure. Definitions: docs/findings.md.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_EXPLAIN_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_EXPLAIN_H_

#include "analysis/why/cut_model.h"

namespace syncline::analysis::why {

CutAnswer ExplainCut(const CutInput& input);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_EXPLAIN_H_
