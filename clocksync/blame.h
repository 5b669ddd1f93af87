// SPDX-License-Identifier: Apache-2.0
// Whose clock broke? From breaks of single edges to the node that explains them.
//
// A break says that one of an edge's two clocks stepped (or slept, or changed its rate at once),
// not which. A clock that steps does so on all of its edges at once and by the same amount. So a
// node is blamed for the breaks of its edges that agree in time and size, unless another edge of it
// was watched then and would have seen a step of that size. Of several such nodes the one that
// explains most counts, then the one whose own clocks say that it slept. Two nodes with one edge
// between them cannot be told apart: both are named. A break that both ends' other edges deny is
// the edge's own: its stamps are false.
//
// Worked example: edges h--a, h--b, a--b; a jumps. h--a and a--b break, h--b does not. Blaming h
// would explain one break, and h--b denies it; blaming b likewise; a explains both and nothing
// denies it.
#ifndef SYNCLINE_CLOCKSYNC_BLAME_H_
#define SYNCLINE_CLOCKSYNC_BLAME_H_

#include <cstdint>
#include <span>
#include <vector>

#include "clocksync/corridor.h"

namespace syncline::clocksync {

struct WatchedEdge {
  uint32_t local = 0;
  uint32_t remote = 0;
  const Corridor* corridor = nullptr;
  int64_t round_trip_min_ns = kUnknownHi;  // about what a step may have and not be seen
};

// A host's own clocks say that it slept, by its RAW clock.
struct Sleep {
  uint32_t vertex = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

struct Suspect {
  struct Place {
    uint32_t vertex = 0;
    int64_t begin_ns = 0;  // by its clock
    int64_t end_ns = 0;
  };
  // One: the node that broke. Two: an edge's remote and local end, of which one did.
  std::vector<Place> places;
  bool edge_alone = false;      // neither did: both ends' other edges deny it
  std::vector<uint32_t> edges;  // that show it
  // Of the first place's clock against the others, as in Break.
  int64_t step_ns = 0;
  int64_t step_ns_min = 0;
  int64_t step_ns_max = 0;
  bool slept = false;
  bool backwards = false;
};

// Every break of every edge is explained by exactly one suspect.
std::vector<Suspect> Blame(std::span<const WatchedEdge> edges, uint32_t vertex_count,
                           std::span<const Sleep> sleeps);

// By an edge's local clock: when the suspect broke, if the edge was watched then and does not show
// it itself. What its samples say across that instant must not be believed.
std::vector<Interval> HiddenBreaks(const WatchedEdge& edge, uint32_t edge_index,
                                   std::span<const Suspect> suspects);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_BLAME_H_
