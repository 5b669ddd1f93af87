// SPDX-License-Identifier: Apache-2.0
// Loops of edges that contradict each other: each edge is consistent in itself, yet going around no
// clock reading comes back to where it began. Then some edge says what is false (a path whose
// stamps break rule 1, a clock that broke while nobody looked), and without more evidence no
// interval that uses it may be believed.
//
// The shortest loop that contradicts itself is looked for (a negative cycle of the differences, few
// edges first), then the edges in it without which no loop through it contradicts itself. Is there
// one such edge, it is the false one and is left out. Are there several, it may be any of them:
// each is widened by what the others say about it, so that the truth is inside whichever is false.
#ifndef SYNCLINE_CLOCKSYNC_LOOPS_H_
#define SYNCLINE_CLOCKSYNC_LOOPS_H_

#include <cstdint>
#include <vector>

#include "clocksync/graph.h"

namespace syncline::clocksync {

struct ContradictingLoop {
  std::vector<uint32_t> edges;     // in the order of the loop
  std::vector<uint32_t> suspects;  // of those, one is false; a single one was left out
  int64_t short_ns = 0;            // by how much the loop fails to close, at least
  size_t first_instant = 0;        // of the grid, at which a clock's paths contradict each other
  size_t last_instant = 0;
};

struct Reconciliation {
  std::vector<ContradictingLoop>
      loops;                       // what was done to whom; empty (the usual case) if all agree
  std::vector<RootBounds> bounds;  // BoundsTo(reference) of the graph as it is then
};

// Leaves out or widens edges of `graph` until no loop contradicts itself.
Reconciliation ReconcileLoops(uint32_t reference, const Grid& grid, ClockGraph* graph);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_LOOPS_H_
