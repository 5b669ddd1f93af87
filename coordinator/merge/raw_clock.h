// SPDX-License-Identifier: Apache-2.0
// From the timeline to a node's own CLOCK_MONOTONIC_RAW, in which VTune takes times.
#ifndef SYNCLINE_COORDINATOR_MERGE_RAW_CLOCK_H_
#define SYNCLINE_COORDINATOR_MERGE_RAW_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "coordinator/merge/inputs.h"

namespace syncline::merge {

// What that clock of the node read when the timeline was at a time, ns. Empty: nothing relates the
// node's traces to it. `inputs` outlives it.
std::function<int64_t(TimelineTime)> RawClockOf(const OpenedInputs& inputs, size_t node);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_RAW_CLOCK_H_
