// SPDX-License-Identifier: Apache-2.0
// What is missing in a recording.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_LOSSES_H_
#define SYNCLINE_COORDINATOR_MERGE_LOSSES_H_

#include <cstdint>
#include <optional>

#include "coordinator/merge/inputs.h"
#include "timeline/builder.h"

namespace syncline::merge {

struct Losses {
  bool incomplete = false;                  // something is missing, events or anything else
  std::optional<uint64_t> lost_events = 0;  // of all nodes; nullopt: lost, but not counted
};

Losses LossesOf(const OpenedInputs& inputs, const timeline::BuiltTimeline& built);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_LOSSES_H_
