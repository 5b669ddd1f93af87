// SPDX-License-Identifier: Apache-2.0
#include "clocksync/graph.h"

#include <algorithm>
#include <limits>

#include "clocksync/arithmetic.h"

namespace syncline::clocksync {
namespace {

constexpr int kRoundsMax = 8;  // edges on a path
// A gain smaller than this, or than 1/64 of the interval, does not start another round.
constexpr int64_t kWorthItNs = 2;

// The line of `values` over `grid` at x, loosened: `sign` +1 for an upper, -1 for a lower line.
int64_t ValueAt(const std::vector<int64_t>& values, const std::vector<int64_t>& x_grid,
                const Grid& grid, int64_t x, int sign) {
  if (IsUnknown(x)) return sign > 0 ? kUnknownHi : kUnknownLo;
  const auto after = std::upper_bound(x_grid.begin(), x_grid.end(), x);
  const bool before = after == x_grid.begin();
  const size_t k = before ? 0 : static_cast<size_t>(after - x_grid.begin()) - 1;
  if (IsUnknown(values[k])) return values[k];
  const Int128 dx = Int128{x} - x_grid[k];
  if (!before && dx == 0) return values[k];
  if (before || after == x_grid.end()) {
    const Int128 slack = (dx < 0 ? -dx : dx) * grid.rate_ppb_max / kBillion + 1;
    return Clip(values[k] + dx + sign * slack);
  }
  if (IsUnknown(values[k + 1])) return values[k + 1];
  const Int128 dy = Int128{values[k + 1]} - values[k];
  const Int128 length = Int128{x_grid[k + 1]} - x_grid[k];
  return Clip(values[k] + dy * dx / length + sign * (grid.bend_ns + 1));
}

// On a break the interval of theta = y - x is the larger of the segment's ends.
void LevelBreaks(const Grid& grid, const std::vector<int64_t>& x, std::vector<int64_t>* values,
                 int sign) {
  for (size_t k = 0; k < grid.segments.size(); ++k) {
    if (grid.segments[k] == Grid::Segment::kSmooth) continue;
    int64_t& a = (*values)[k];
    int64_t& b = (*values)[k + 1];
    if (IsUnknown(a) || IsUnknown(b)) {
      a = b = IsUnknown(a) ? a : b;
      continue;
    }
    const Int128 length = Int128{x[k + 1]} - x[k];
    const bool near = grid.segments[k] == Grid::Segment::kNearBreak;
    const Int128 loose = near ? length * grid.rate_ppb_max / kBillion + 1 : 0;
    const Int128 theta_a = Int128{a} - x[k], theta_b = Int128{b} - x[k + 1];
    const Int128 theta =
        sign > 0 ? std::max(theta_a, theta_b) + loose : std::min(theta_a, theta_b) - loose;
    a = Clip(theta + x[k]);
    b = Clip(theta + x[k + 1]);
  }
}

// Intersects `best` with `candidate`; whether that was a gain.
bool Tighten(const RootBounds& candidate, RootBounds* best) {
  bool gain = false;
  for (size_t k = 0; k < candidate.lo.size(); ++k) {
    const int64_t width = SaturatingAdd(best->hi[k], -std::max(best->lo[k], -kUnknownHi));
    const int64_t worth = std::max(kWorthItNs, IsUnknown(width) ? 0 : width / 64);
    gain |= SaturatingAdd(candidate.lo[k], -worth) > best->lo[k] ||
            SaturatingAdd(candidate.hi[k], worth) < best->hi[k];
    best->lo[k] = std::max(best->lo[k], candidate.lo[k]);
    best->hi[k] = std::min(best->hi[k], candidate.hi[k]);
  }
  return gain;
}

}  // namespace

ClockGraph::ClockGraph(uint32_t vertex_count, std::vector<GraphEdge> edges)
    : edges_(std::move(edges)), adjacent_(vertex_count) {
  for (uint32_t i = 0; i < edges_.size(); ++i) {
    adjacent_[edges_[i].local].push_back(i);
    adjacent_[edges_[i].remote].push_back(i);
  }
}

uint32_t ClockGraph::OtherEnd(uint32_t edge, uint32_t vertex) const {
  return edges_[edge].local == vertex ? edges_[edge].remote : edges_[edge].local;
}

Bounds ClockGraph::Cross(uint32_t edge, uint32_t from, const Bounds& x) const {
  const GraphEdge& e = edges_[edge];
  return e.local == from ? e.map.At(x) : e.map.Inverse(x);
}

// What the root's clock reads when `way.vertex` reads x, over this way.
Interval ClockGraph::Follow(const Via& way, const Grid& grid, const RootBounds& via_bounds,
                            int64_t x) const {
  const GraphEdge& edge = edges_[way.edge];
  const Interval y = edge.local == way.vertex ? edge.map.EndsAt(x) : edge.map.InverseEnds(x);
  if (way.via_is_root) return y;
  return {ValueAt(via_bounds.lo, grid.x[way.via], grid, y.lo, -1),
          ValueAt(via_bounds.hi, grid.x[way.via], grid, y.hi, +1)};
}

RootBounds ClockGraph::Candidate(const Via& way, const Grid& grid,
                                 const RootBounds& via_bounds) const {
  const std::vector<int64_t>& x = grid.x[way.vertex];
  RootBounds bounds;
  bounds.lo.reserve(x.size());
  bounds.hi.reserve(x.size());
  for (int64_t at : x) {
    const Interval root = Follow(way, grid, via_bounds, at);
    bounds.lo.push_back(root.lo);
    bounds.hi.push_back(root.hi);
  }
  LevelBreaks(grid, x, &bounds.lo, -1);
  LevelBreaks(grid, x, &bounds.hi, +1);
  return bounds;
}

// A look at a few instants: in a large graph most ways are not worth following at all of them. To
// pass one over is sound.
bool ClockGraph::Promises(const Via& way, const Grid& grid, const RootBounds& via_bounds,
                          const RootBounds& best) const {
  const std::vector<int64_t>& x = grid.x[way.vertex];
  const size_t stride = std::max<size_t>(x.size() / 8, 1);
  for (size_t k = stride / 2; k < x.size(); k += stride) {
    const Interval root = Follow(way, grid, via_bounds, x[k]);
    if (root.lo > best.lo[k] || root.hi < best.hi[k]) return true;
  }
  return false;
}

std::vector<RootBounds> ClockGraph::BoundsTo(uint32_t root, const Grid& grid,
                                             const std::vector<bool>& only) const {
  std::vector<RootBounds> bounds(vertex_count());
  if (grid.x[root].empty()) return bounds;
  bounds[root] = {grid.x[root], grid.x[root]};
  std::vector<uint32_t> changed = {root};
  for (int round = 0; round < kRoundsMax && !changed.empty(); ++round) {
    std::vector<bool> improved(vertex_count(), false);
    for (uint32_t via : changed) {
      for (uint32_t edge : adjacent_[via]) {
        const uint32_t vertex = OtherEnd(edge, via);
        if (vertex == root || grid.x[vertex].empty()) continue;
        if (!only.empty() && !only[vertex]) continue;
        RootBounds& best = bounds[vertex];
        const Via way{via, edge, vertex, via == root};
        if (best.lo.empty()) {
          best = Candidate(way, grid, bounds[via]);
          improved[vertex] = true;
        } else if (Promises(way, grid, bounds[via], best)) {
          if (Tighten(Candidate(way, grid, bounds[via]), &best)) improved[vertex] = true;
        }
      }
    }
    changed.clear();
    for (uint32_t v = 0; v < vertex_count(); ++v) {
      if (improved[v]) changed.push_back(v);
    }
  }
  return bounds;
}

std::vector<int> ClockGraph::HopsFrom(uint32_t vertex) const {
  std::vector<int> hops(vertex_count(), -1);
  std::vector<uint32_t> queue = {vertex};
  hops[vertex] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t edge : adjacent_[queue[i]]) {
      const uint32_t next = OtherEnd(edge, queue[i]);
      if (hops[next] >= 0) continue;
      hops[next] = hops[queue[i]] + 1;
      queue.push_back(next);
    }
  }
  return hops;
}

std::vector<bool> ClockGraph::NearPaths(uint32_t a, uint32_t b) const {
  const std::vector<int> from_a = HopsFrom(a), from_b = HopsFrom(b);
  std::vector<bool> near(vertex_count(), false);
  if (from_a[b] < 0) return near;
  for (uint32_t v = 0; v < vertex_count(); ++v) {
    near[v] = from_a[v] >= 0 && from_a[v] + from_b[v] <= from_a[b] + 1;
  }
  return near;
}

}  // namespace syncline::clocksync
