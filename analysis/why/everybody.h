// SPDX-License-Identifier: Apache-2.0
// What takes time of every rank, so that no rank is named for it. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_EVERYBODY_H_
#define SYNCLINE_ANALYSIS_WHY_EVERYBODY_H_

#include "analysis/why/judged.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Fills everybody and who had the CPU; notes that quotas throttle all. `answer->ranks` is filled.
void FindEverybody(const JobInput& input, const Judged& judged, Answer* answer);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_EVERYBODY_H_
