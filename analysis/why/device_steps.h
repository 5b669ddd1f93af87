// SPDX-License-Identifier: Apache-2.0
// Gives the steps of a rank names that are the same on all ranks, where only its optimizer says
// where a step begins and ends: by the first collective that its program launches in the step. The
// collectives of a group have the same numbers on all of its ranks, so no clock is needed.
//
// Pure. Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_WHY_DEVICE_STEPS_H_
#define SYNCLINE_ANALYSIS_WHY_DEVICE_STEPS_H_

#include <cstdint>
#include <span>

#include "common/time.h"
#include "timeline/device_work.h"

namespace syncline::analysis::why {

struct NumberedLaunch {
  TimelineTime at;
  uint64_t number = 0;  // in the job's group
};

// `launches`: of the rank, in one group of all ranks, in any order. A step in which it launches
// none is named by the last one in which it does, and by how many steps it is behind that; before
// the first of these it gets the name "", by which no step is paired. Steps of another kind keep
// their names.
void NameSteps(std::span<const NumberedLaunch> launches, timeline::ProcessDevices* devices);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_DEVICE_STEPS_H_
