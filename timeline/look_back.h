// SPDX-License-Identifier: Apache-2.0
// What of a node's trace a cut needs: the cut, a little behind it, and before it as much as the
// tasks that are open there need to be found. Tasks carry their depth, so what is open at an
// instant is known from the thread's next task, and where all of it has begun shows backwards.
//
//   depth 0  |--- epoch ---------------------------------------
//   depth 1        |- step -|   |- step -|   |- step -|
//                          chunk 2 | chunk 1    |  cut  |
//   "step" ends in the cut at depth 1: two tasks are open where it begins. Chunk 1 shows depth 1
//   (step's begin), not yet depth 0; chunk 2, four times as long, ...
//
// What cannot be known without reading everything, and is therefore missing or may differ:
//   - tasks that were begun before the part by a thread that does nothing in it; asynchronous tasks
//     that were begun before it; collectives that end long behind the cut
//   - counters that were set before it, and pauses of the program (`__itt_pause`)
//   - of a process that never said `off` (killed, or in one call at the end), whether it lived on
//   - which send of a group of ranks was the first one: arrows between ranks are matched as in a
//     recording that began there; groups that are announced in no part
//   - losses that only the processes' own counts show; names that only the trace knows
//   - messages of recordings that announce connections once
// Processes and threads must be known from the control block; where a thread is not, the whole
// trace is read.
//
// Thread-safety: no state.
#ifndef SYNCLINE_TIMELINE_LOOK_BACK_H_
#define SYNCLINE_TIMELINE_LOOK_BACK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "timeline/builder.h"
#include "timeline/node_input.h"
#include "timeline/node_tables.h"

namespace syncline::timeline {

struct PartRead {
  ClockInterval part{kUnknownLo, kUnknownHi};  // trace clock; that: everything
  // Inside of tasks whose begin lies before the part.
  uint64_t unresolved_threads = 0;

  bool whole() const { return part.begin_ns == kUnknownLo && part.end_ns == kUnknownHi; }
  bool from_the_start() const { return part.begin_ns == kUnknownLo; }
};

// `tables` knows the processes of `node`; at most `most_ns` before the cut is read, and at least
// what is between two announcements (2 s). An error is the
// readers'.
absl::StatusOr<PartRead> ChoosePart(const NodeInput& node, const NodeTables& tables,
                                    const Interval& cut, int64_t most_ns);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_LOOK_BACK_H_
