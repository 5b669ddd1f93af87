// SPDX-License-Identifier: Apache-2.0
// Of a recording with less than full detail: what every rank has recorded for certain.
#ifndef SYNCLINE_ANALYSIS_WHY_OUTERMOST_H_
#define SYNCLINE_ANALYSIS_WHY_OUTERMOST_H_

#include <cstddef>

#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Where the job's detail is not full: takes operators and primitives out of it that lie directly in
// another operator of their thread, or in what is taken out; and all shapes.
// `threads`: at most.
void KeepOutermost(JobInput* job, size_t threads = 1);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_OUTERMOST_H_
