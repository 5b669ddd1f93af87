// SPDX-License-Identifier: Apache-2.0
// Who is late, and why: amounts of causes with their intervals, and the verdict drawn from them.
//
// Evidence beats lead: a rank is named for a cause when the amount of that cause, compared with the
// other ranks, is surely above max(2 % of the step, 0.5 ms), also where its lead is not sure. A
// lead without evidence accuses nobody. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_CAUSES_H_
#define SYNCLINE_ANALYSIS_WHY_CAUSES_H_

#include "analysis/why/judged.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Fills verdict, findings, closest and everybody. `judged` has steps of at least one rank, and
// `answer->ranks` is filled.
void FindCauses(const JobInput& input, const Judged& judged, Answer* answer);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CAUSES_H_
