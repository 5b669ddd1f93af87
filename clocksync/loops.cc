// SPDX-License-Identifier: Apache-2.0
#include "clocksync/loops.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "clocksync/arithmetic.h"

namespace syncline::clocksync {
namespace {

constexpr size_t kLoopMax = 8;     // edges
constexpr size_t kRoundsMax = 24;  // loops dealt with
constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;
constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Shortest walks at one instant of the grid. The weight of a step from i to j is the most that
// clock j can be ahead of where the grid has it, when clock i is where the grid has it.
class Instant {
 public:
  Instant(const ClockGraph& graph, const Grid& grid, size_t k)
      : graph_(graph), grid_(grid), k_(k) {}

  // Least weights of walks of at most kLoopMax edges from `from`, over no edge in `without`.
  struct Walks {
    std::vector<std::vector<int64_t>> weight;      // [edges][vertex]
    std::vector<std::vector<uint32_t>> last_edge;  // of that walk
  };
  Walks From(uint32_t from, const std::vector<uint32_t>& without) const {
    const uint32_t count = graph_.vertex_count();
    Walks walks;
    walks.weight.assign(1, std::vector<int64_t>(count, kFar));
    walks.last_edge.assign(1, std::vector<uint32_t>(count, kNone));
    walks.weight[0][from] = 0;
    for (size_t h = 1; h <= kLoopMax; ++h) {
      walks.weight.emplace_back(count, kFar);
      walks.last_edge.emplace_back(count, kNone);
      for (uint32_t v = 0; v < count; ++v) {
        if (walks.weight[h - 1][v] == kFar) continue;
        for (uint32_t edge : graph_.EdgesOf(v)) {
          if (std::find(without.begin(), without.end(), edge) != without.end()) continue;
          const int64_t step = Step(edge, v);
          if (step == kFar) continue;
          const uint32_t to = graph_.OtherEnd(edge, v);
          const int64_t through = walks.weight[h - 1][v] + step;
          if (through >= walks.weight[h][to]) continue;
          walks.weight[h][to] = through;
          walks.last_edge[h][to] = edge;
        }
      }
    }
    return walks;
  }

  // The shortest loop through `vertex` that contradicts itself; empty when there is none.
  std::vector<uint32_t> LoopThrough(uint32_t vertex, const std::vector<uint32_t>& without) const {
    const Walks walks = From(vertex, without);
    for (size_t h = 2; h <= kLoopMax; ++h) {
      if (walks.weight[h][vertex] >= -Tolerance()) continue;
      std::vector<uint32_t> loop;
      uint32_t v = vertex;
      for (size_t at = h; at > 0; --at) {
        loop.push_back(walks.last_edge[at][v]);
        v = graph_.OtherEnd(loop.back(), v);
      }
      return loop;
    }
    return {};
  }

  // The most that `to` can be ahead of the grid when `from` is on it; kFar: no way.
  int64_t Most(const Walks& walks, uint32_t to) const {
    int64_t most = kFar;
    for (const auto& weights : walks.weight) most = std::min(most, weights[to]);
    return most;
  }

  int64_t Tolerance() const { return 2 * grid_.bend_ns + 2; }

 private:
  int64_t Step(uint32_t edge, uint32_t from) const {
    const uint32_t to = graph_.OtherEnd(edge, from);
    if (grid_.x[from].empty() || grid_.x[to].empty()) return kFar;
    const int64_t hi = graph_.Cross(edge, from, Bounds::Exactly(grid_.x[from][k_])).hi;
    if (IsUnknown(hi)) return kFar;
    const Int128 step = Int128{hi} - grid_.x[to][k_];
    return step > kFar / 64 || step < -kFar / 64 ? kFar : static_cast<int64_t>(step);
  }

  const ClockGraph& graph_;
  const Grid& grid_;
  size_t k_;
};

class Reconciler {
 public:
  Reconciler(uint32_t reference, const Grid& grid, ClockGraph* graph)
      : reference_(reference), grid_(grid), graph_(graph) {}

  Reconciliation Run() {
    Reconciliation result;
    for (;;) {
      result.bounds = graph_->BoundsTo(reference_, grid_);
      if (result.loops.size() == kRoundsMax) break;
      std::optional<ContradictingLoop> loop = Find(result.bounds);
      if (!loop) break;
      Resolve(&*loop);
      result.loops.push_back(*std::move(loop));
    }
    return result;
  }

 private:
  struct Spot {
    uint32_t vertex = kNone;
    size_t worst = 0;  // instant
    size_t first = 0;
    size_t last = 0;
  };

  // Clocks whose paths to the reference contradict each other, worst instant each.
  std::vector<Spot> Spots(const std::vector<RootBounds>& bounds) const {
    std::vector<Spot> spots;
    for (uint32_t v = 0; v < bounds.size(); ++v) {
      Spot spot;
      int64_t worst = 2 * grid_.bend_ns;
      for (size_t k = 0; k < bounds[v].lo.size(); ++k) {
        const int64_t lo = bounds[v].lo[k], hi = bounds[v].hi[k];
        if (IsUnknown(lo) || IsUnknown(hi) || SaturatingAdd(hi, 2 * grid_.bend_ns) >= lo) continue;
        if (spot.vertex == kNone) spot.first = k;
        spot.last = k;
        spot.vertex = v;
        if (SaturatingAdd(lo, -hi) > worst) worst = SaturatingAdd(lo, -hi), spot.worst = k;
      }
      if (spot.vertex != kNone) spots.push_back(spot);
    }
    return spots;
  }

  std::optional<ContradictingLoop> Find(const std::vector<RootBounds>& bounds) {
    const std::vector<Spot> spots = Spots(bounds);
    ContradictingLoop best;
    size_t k = 0;
    for (size_t i = 0; i < std::min<size_t>(spots.size(), 32); ++i) {
      const Instant instant(*graph_, grid_, spots[i].worst);
      std::vector<uint32_t> loop = instant.LoopThrough(spots[i].vertex, {});
      if (loop.empty() || (!best.edges.empty() && loop.size() >= best.edges.size())) continue;
      k = spots[i].worst;
      best = {
          .edges = std::move(loop), .first_instant = spots[i].first, .last_instant = spots[i].last};
      start_ = spots[i].vertex;
    }
    if (best.edges.empty()) return std::nullopt;
    const Instant instant(*graph_, grid_, k);
    const auto walks = instant.From(start_, {});
    best.short_ns = -walks.weight[best.edges.size()][start_];
    best.suspects = SuspectsOf(best, instant);
    return best;
  }

  // Edges of the loop without which no loop through its clocks contradicts itself at this instant.
  std::vector<uint32_t> SuspectsOf(const ContradictingLoop& loop, const Instant& instant) const {
    std::vector<uint32_t> suspects;
    for (uint32_t edge : loop.edges) {
      const bool cures = std::all_of(loop.edges.begin(), loop.edges.end(), [&](uint32_t other) {
        return instant.LoopThrough(graph_->edges()[other].local, {edge}).empty() &&
               instant.LoopThrough(graph_->edges()[other].remote, {edge}).empty();
      });
      if (cures) suspects.push_back(edge);
    }
    return suspects.empty() ? loop.edges : suspects;
  }

  void Resolve(ContradictingLoop* loop) {
    std::vector<GraphEdge> edges = graph_->edges();
    const bool one = loop->suspects.size() == 1;
    std::vector<std::pair<int64_t, int64_t>> more;  // per suspect: downwards, upwards
    for (uint32_t edge : loop->suspects) {
      more.push_back(one ? std::pair<int64_t, int64_t>() : Missing(edge));
    }
    for (size_t i = 0; i < loop->suspects.size(); ++i) {
      BoundedMap& map = edges[loop->suspects[i]].map;
      if (one) {
        map = BoundedMap();
        continue;
      }
      std::vector<BoundedMap::Knot> knots = map.knots();
      for (BoundedMap::Knot& knot : knots) {
        knot.lo = SaturatingAdd(knot.lo, -more[i].first);
        knot.hi = SaturatingAdd(knot.hi, more[i].second);
      }
      map = BoundedMap(std::move(knots), map.rate_ppb_outside());
    }
    *graph_ = ClockGraph(graph_->vertex_count(), std::move(edges));
  }

  // How far the edge must be widened to both sides to reach all that the other edges say of it.
  std::pair<int64_t, int64_t> Missing(uint32_t edge) const {
    const GraphEdge& e = graph_->edges()[edge];
    int64_t down = 0, up = 0;
    for (size_t k = 0; k < grid_.size(); ++k) {
      const Instant instant(*graph_, grid_, k);
      const Bounds own = graph_->Cross(edge, e.local, Bounds::Exactly(grid_.x[e.local][k]));
      const int64_t most = instant.Most(instant.From(e.local, {edge}), e.remote);
      const int64_t least = instant.Most(instant.From(e.remote, {edge}), e.local);
      if (IsUnknown(own.lo) || IsUnknown(own.hi)) continue;
      const int64_t slack = instant.Tolerance();
      if (most != kFar) {
        up = std::max(up, Clip(Int128{grid_.x[e.remote][k]} + most + slack - own.hi));
      }
      if (least != kFar) {
        down = std::max(down, Clip(Int128{own.lo} + least + slack - grid_.x[e.remote][k]));
      }
    }
    return {down, up};
  }

  uint32_t reference_;
  const Grid& grid_;
  ClockGraph* graph_;
  uint32_t start_ = 0;  // where the loop found last begins
};

}  // namespace

Reconciliation ReconcileLoops(uint32_t reference, const Grid& grid, ClockGraph* graph) {
  return Reconciler(reference, grid, graph).Run();
}

}  // namespace syncline::clocksync
