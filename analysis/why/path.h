// SPDX-License-Identifier: Apache-2.0
// The critical path of a job whose ranks wait for each other in collectives: from the end of its
// last judged step back to the begin of its first, always to what happened last before. Pure.
//
// From a rank's own work back to the wait before it; from there through the collective that it
// waited for to the rank that began it last, and on in that rank's own work before it launched it.
// If the thread that carries collectives out was busy with an earlier one then, through that one
// first.
//
// A rank that begins to wait for a transfer when the other rank has begun it, too, waits for the
// rest of the transfer: the path goes on in the rank's own work.
//
// Worked example: rank 0 launches an all-reduce at 10 ms and waits, rank 1 launches it at 30 ms; at
// 34 ms both go on, and their step ends at 35 ms. The path: own work of rank 1 until 30, the
// collective until 34, own work until 35.
#ifndef SYNCLINE_ANALYSIS_WHY_PATH_H_
#define SYNCLINE_ANALYSIS_WHY_PATH_H_

#include <optional>
#include <string>

#include "analysis/why/judged.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

// Why times of ranks that wait for each other cannot be compared; empty: they can. Of a job whose
// ranks do not wait for each other there is nothing to compare, which is no reason.
std::string PathUnknown(const JobInput& input, const Judged& judged);

// For 2 % of the steps or more it is not known which of two collectives ranks waited for.
bool AreAmbiguous(const Judged& judged);

// Of the ranks' parts of collectives that they entered in the judged steps.
struct EntryCounts {
  size_t all = 0;
  size_t unknown = 0;  // its end was not recorded, or not the entry of each of its ranks
  size_t rooted = 0;   // it is not known who waits for whom
  size_t partial = 0;  // the rank waits there for some ranks of the job only
};
EntryCounts CountEntries(const JobInput& input, const Judged& judged);

// Of a job of which PathUnknown() has nothing to say. nullopt: no rank waits for another.
std::optional<CriticalPath> PathOf(const JobInput& input, const Judged& judged);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_PATH_H_
