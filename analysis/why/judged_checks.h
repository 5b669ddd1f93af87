// SPDX-License-Identifier: Apache-2.0
// What of a job's recording cannot be judged, each with the one line that says so. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_JUDGED_CHECKS_H_
#define SYNCLINE_ANALYSIS_WHY_JUDGED_CHECKS_H_

#include <string>

#include "analysis/why/judged.h"

namespace syncline::analysis::why {

// "rank 1 (beta, pid 4711)".
std::string RankName(const RankInput& rank);

// How much of the window lies in holes.
int64_t MissingNs(const RankInput& rank);

// The first reason stays.
void Refuse(Refusal refusal, std::string text, Judged* judged);

// Refuses a GPU job by what its processes say of themselves.
void CheckAccelerators(const JobInput& input, Judged* judged);

// Ranks that ended in the window: all else that is wrong follows from that.
void CheckEnds(const JobInput& input, Judged* judged);

// Ranks of which too little of the window was recorded.
void CheckCoverage(const JobInput& input, Judged* judged);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_JUDGED_CHECKS_H_
