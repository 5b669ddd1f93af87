// SPDX-License-Identifier: Apache-2.0
// Where each clock of a graph stands: the best single line, apart from the proof.
//
// From a common sequence of instants (of the reference's clock) to what each clock reads then:
// first along the tree of the narrowest edges, then by weighted least squares over all edges, which
// averages what several hubs say and makes loops close.
#ifndef SYNCLINE_CLOCKSYNC_PLACEMENT_H_
#define SYNCLINE_CLOCKSYNC_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "clocksync/corridor.h"
#include "clocksync/graph.h"

namespace syncline::clocksync {

struct PlacementOptions {
  uint32_t reference = 0;
  int64_t rate_ppb_max = 200'000;
  int64_t wander_ppb_per_s = 10;
  bool rate_varies = false;  // at any time, within rate_ppb_max
  // For each edge of the graph: where its assumptions broke.
  std::vector<std::vector<Break>> breaks;
};

// The grid; a vertex without a path to the reference has none. Grid::x of the reference are the
// instants.
Grid PlaceClocks(const ClockGraph& graph, const PlacementOptions& options);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_PLACEMENT_H_
