// SPDX-License-Identifier: Apache-2.0
// The traces of the schedulers of a recording's nodes (evidence/scheduling.h), for the report and
// the timeline.
#ifndef SYNCLINE_COORDINATOR_MERGE_NODE_SCHEDULING_H_
#define SYNCLINE_COORDINATOR_MERGE_NODE_SCHEDULING_H_

#include <deque>
#include <optional>

#include "coordinator/merge/inputs.h"
#include "evidence/scheduling.h"
#include "timeline/scheduling_series.h"

namespace syncline::merge {

// Of each of inputs->nodes, in their order; nullopt: recorded without, or unreadable, which is then
// a complaint.
std::deque<std::optional<evidence::Scheduling>> ReadScheduling(OpenedInputs* inputs);

// All of it, as series of the timeline. `node`: whose it is, for its processes' ranks.
timeline::SchedulingSeries SchedulingSeriesOf(const evidence::Scheduling& scheduling,
                                              const timeline::NodeInput& node);

// What the threads of every node did in `counted`, into inputs->facts; with `draw` also the whole
// as series, into inputs->nodes. What cannot be read is a complaint; lines that are damaged are a
// note.
void AddScheduling(timeline::Interval counted, bool draw, OpenedInputs* inputs);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_NODE_SCHEDULING_H_
