// SPDX-License-Identifier: Apache-2.0
// The clocks of all hosts as a graph: vertices are RAW clocks, edges the intervals between two of
// them.
//
// The tightest interval for any two clocks is the shortest path between them (Patt-Shamir and
// Rajsbaum). Here a path is a chain of bounded maps: what clock j reads at the instant at which
// clock i reads x is followed edge by edge, so no two clocks ever need a common "now". Every path
// gives a sound interval, so stopping a search early only loosens.
//
// A grid names, for each clock, what it reads (by estimate) at a common sequence of instants;
// intervals are computed there. A grid segment that meets a break of an edge is marked: on it the
// interval is the larger of its two ends.
#ifndef SYNCLINE_CLOCKSYNC_GRAPH_H_
#define SYNCLINE_CLOCKSYNC_GRAPH_H_

#include <cstdint>
#include <vector>

#include "clocksync/bounded_map.h"

namespace syncline::clocksync {

struct GraphEdge {
  uint32_t local = 0;
  uint32_t remote = 0;
  BoundedMap map;  // local -> remote
  // That it was made of, by who asked; 0: none, or not known any more.
  uint64_t samples_of_local = 0;
  uint64_t samples_of_remote = 0;
};

struct Grid {
  enum class Segment : uint8_t {
    kSmooth,     // the truth bends by at most the wander
    kBreak,      // a break lies inside
    kNearBreak,  // one may: the instant is known to within the interval only
  };
  std::vector<std::vector<int64_t>>
      x;                          // [vertex][instant]; empty for a vertex that is not connected
  std::vector<Segment> segments;  // between instant k and k + 1
  int64_t bend_ns = 0;            // what the truth may bend between two instants
  int64_t rate_ppb_max = 200'000;
  size_t size() const { return segments.empty() ? 1 : segments.size() + 1; }
};

// lo and hi of the root's clock at each instant of a vertex's grid.
struct RootBounds {
  std::vector<int64_t> lo;
  std::vector<int64_t> hi;
};

class ClockGraph {
 public:
  ClockGraph() = default;
  ClockGraph(uint32_t vertex_count, std::vector<GraphEdge> edges);

  uint32_t vertex_count() const { return static_cast<uint32_t>(adjacent_.size()); }
  const std::vector<GraphEdge>& edges() const { return edges_; }
  const std::vector<uint32_t>& EdgesOf(uint32_t vertex) const { return adjacent_[vertex]; }
  uint32_t OtherEnd(uint32_t edge, uint32_t vertex) const;

  // The clock at the other end of `edge` when clock `from` reads x.
  Bounds Cross(uint32_t edge, uint32_t from, const Bounds& x) const;

  // For every vertex (or those in `only`): the root's clock at its grid instants. Empty vectors:
  // not connected. lo > hi where the edges contradict each other.
  std::vector<RootBounds> BoundsTo(uint32_t root, const Grid& grid,
                                   const std::vector<bool>& only = {}) const;

  // The vertices worth asking for paths from a to b: those on walks at most one edge longer than
  // needed.
  std::vector<bool> NearPaths(uint32_t a, uint32_t b) const;

 private:
  // From `vertex` over `edge` to `via`, and from there as already known.
  struct Via {
    uint32_t via = 0;
    uint32_t edge = 0;
    uint32_t vertex = 0;
    bool via_is_root = false;
  };
  Interval Follow(const Via& way, const Grid& grid, const RootBounds& via_bounds, int64_t x) const;
  RootBounds Candidate(const Via& way, const Grid& grid, const RootBounds& via_bounds) const;
  bool Promises(const Via& way, const Grid& grid, const RootBounds& via_bounds,
                const RootBounds& best) const;
  std::vector<int> HopsFrom(uint32_t vertex) const;

  std::vector<GraphEdge> edges_;
  std::vector<std::vector<uint32_t>> adjacent_;  // [vertex] -> edges
};

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_GRAPH_H_
