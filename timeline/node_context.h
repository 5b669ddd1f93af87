// SPDX-License-Identifier: Apache-2.0
// What the parts of the walk over one node's events share.
//
// Thread-safety: plain values; one thread.
#ifndef SYNCLINE_TIMELINE_NODE_CONTEXT_H_
#define SYNCLINE_TIMELINE_NODE_CONTEXT_H_

#include <cstdint>

#include "timeline/builder.h"
#include "timeline/emitter.h"
#include "timeline/node_input.h"
#include "timeline/placement.h"
#include "timeline/schema.h"
#include "timeline/thread_spans.h"

namespace syncline::timeline {

// All of it outlives the walk.
struct NodeContext {
  const NodeInput& node;
  uint32_t index = 0;  // of the node
  ClockId clock;       // of its traces
  const BuildOptions& options;
  Emitter* emitter = nullptr;

  Moment At(int64_t clock_ns) const { return {{clock, clock_ns}, node.placement->At(clock_ns)}; }
  // Whether what happens then counts in the results.
  bool IsCounted(TimelineTime time) const {
    return !options.cut.has_value() || options.cut->Contains(time);
  }
  // The window asked for, which there is, in the clock of the traces.
  ClockInterval Window() const {
    return {node.placement->ClockNs(options.window->begin),
            node.placement->ClockNs(options.window->end)};
  }
};

// An event of our own, during the call that gets it.
struct NodeEvent {
  EventKind kind = EventKind::kForeign;
  const EventReader& fields;
  Moment at;
  uint32_t thread = 0;  // by their numbers in NodeTables; 0 where HasThread(kind) is false
  uint32_t process = 0;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_NODE_CONTEXT_H_
