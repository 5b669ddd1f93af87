// SPDX-License-Identifier: Apache-2.0
// Of a recording with less than full detail: operators that lie in no other operator. Those alone
// every rank has recorded.
#ifndef SYNCLINE_ANALYSIS_WHY_OUTERMOST_H_
#define SYNCLINE_ANALYSIS_WHY_OUTERMOST_H_

#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Takes operators and primitives that lie in another operator of their thread out of the job, where
// its detail is not full.
void KeepOutermost(JobInput* job);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_OUTERMOST_H_
