// SPDX-License-Identifier: Apache-2.0
#include "clocksync/placement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "clocksync/arithmetic.h"

namespace syncline::clocksync {
namespace {

constexpr int64_t kKnotNsMin = 20'000'000;
constexpr int64_t kKnotNsMax = kBillion;
constexpr int64_t kVaryingKnotNsMin = 5'000'000;  // between two of them the rate bound counts
constexpr int64_t kVaryingInstantsMax = 20'000;
constexpr int64_t kBreakMarginNs = 1'000;
constexpr int64_t kGapNs = 30 * kBillion;  // between two stretches with samples
constexpr int64_t kInstantsMax = 100'000;
constexpr size_t kBreaksMax = 256;  // instants of breaks put on the grid
constexpr int kSweeps = 12;         // of Gauss-Seidel
constexpr int64_t kOneSidedWidthNs = 1'000'000'000'000;

// Width of an edge's interval in the middle of the knots: typical, cheap.
int64_t TypicalWidth(const BoundedMap& map) {
  if (map.empty()) return kOneSidedWidthNs;
  std::vector<int64_t> widths;
  for (const BoundedMap::Knot& knot : map.knots()) {
    const bool known = knot.lo != kUnknownLo && knot.hi != kUnknownHi;
    widths.push_back(known ? knot.hi - knot.lo : kOneSidedWidthNs);
  }
  std::nth_element(widths.begin(), widths.begin() + static_cast<ptrdiff_t>(widths.size() / 2),
                   widths.end());
  return std::max<int64_t>(widths[widths.size() / 2], 1);
}

// The tree of narrowest paths from the reference: parent edge per vertex, and an order to walk it.
struct Tree {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> parent_edge;
  std::vector<uint32_t> order;
};

Tree NarrowestTree(const ClockGraph& graph, uint32_t root, const std::vector<int64_t>& widths) {
  Tree tree{std::vector<uint32_t>(graph.vertex_count(), Tree::kNone), {}};
  std::vector<int64_t> cost(graph.vertex_count(), std::numeric_limits<int64_t>::max());
  std::vector<bool> done(graph.vertex_count(), false);
  using Entry = std::pair<int64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  cost[root] = 0;
  queue.push({0, root});
  while (!queue.empty()) {
    const uint32_t v = queue.top().second;
    queue.pop();
    if (done[v]) continue;
    done[v] = true;
    tree.order.push_back(v);
    for (uint32_t edge : graph.EdgesOf(v)) {
      const uint32_t u = graph.OtherEnd(edge, v);
      const int64_t through = cost[v] + widths[edge];
      if (done[u] || through >= cost[u] || graph.edges()[edge].map.empty()) continue;
      cost[u] = through;
      tree.parent_edge[u] = edge;
      queue.push({through, u});
    }
  }
  return tree;
}

class Placer {
 public:
  Placer(const ClockGraph& graph, const PlacementOptions& options)
      : graph_(graph), options_(options) {
    for (const GraphEdge& edge : graph.edges()) widths_.push_back(TypicalWidth(edge.map));
    tree_ = NarrowestTree(graph, options.reference, widths_);
  }

  Grid Place() {
    Grid grid;
    grid.rate_ppb_max = options_.rate_ppb_max;
    grid.x.resize(graph_.vertex_count());
    ChooseInstants();
    if (instants_.empty()) return grid;
    for (uint32_t v : tree_.order) grid.x[v].reserve(instants_.size());
    for (const auto& instant : instants_) {
      const std::vector<int64_t> at = Settle(Along(instant.ns));
      for (uint32_t v : tree_.order) grid.x[v].push_back(at[v]);
    }
    // A clock that stood still (a suspended host) moves by a nanosecond: every map must be
    // invertible.
    for (uint32_t v : tree_.order) {
      for (size_t k = 1; k < instants_.size(); ++k) {
        grid.x[v][k] = std::max(grid.x[v][k], grid.x[v][k - 1] + 1);
      }
    }
    for (size_t k = 0; k + 1 < instants_.size(); ++k) grid.segments.push_back(instants_[k].next);
    const double half = static_cast<double>(knot_ns_) / 2e9;
    // Capped where knots stand years apart: the model file takes no more.
    const double bend = options_.rate_varies
                            ? half * static_cast<double>(options_.rate_ppb_max)
                            : half * half * static_cast<double>(options_.wander_ppb_per_s) / 2;
    grid.bend_ns = static_cast<int64_t>(std::min(std::ceil(bend), 1e17)) + 1;
    return grid;
  }

 private:
  struct Instant {
    int64_t ns = 0;
    Grid::Segment next = Grid::Segment::kSmooth;
  };

  // What every clock reads when the reference reads `ns`, by the tree's estimates.
  std::vector<int64_t> Along(int64_t ns) const {
    std::vector<int64_t> at(graph_.vertex_count(), 0);
    at[options_.reference] = ns;
    for (uint32_t v : tree_.order) {
      const uint32_t edge = tree_.parent_edge[v];
      if (edge == Tree::kNone) continue;
      const uint32_t parent = graph_.OtherEnd(edge, v);
      at[v] = graph_.Cross(edge, parent, Bounds::Exactly(at[parent])).est;
    }
    return at;
  }

  // What the reference reads when clock `v` reads `ns`.
  int64_t ToReference(uint32_t v, int64_t ns) const {
    while (tree_.parent_edge[v] != Tree::kNone) {
      const uint32_t edge = tree_.parent_edge[v];
      ns = graph_.Cross(edge, v, Bounds::Exactly(ns)).est;
      v = graph_.OtherEnd(edge, v);
    }
    return ns;
  }

  struct Stretch {
    int64_t begin = 0;
    int64_t end = 0;
  };

  // When there were samples, by the reference's clock: stretches in order, far from each other.
  std::vector<Stretch> SampledStretches(const std::vector<bool>& placed) const {
    std::vector<Stretch> all, merged;
    for (const GraphEdge& edge : graph_.edges()) {
      if (edge.map.empty() || !placed[edge.local]) continue;
      all.push_back({ToReference(edge.local, edge.map.knots().front().x),
                     ToReference(edge.local, edge.map.knots().back().x)});
    }
    std::sort(all.begin(), all.end(),
              [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
    for (const Stretch& stretch : all) {
      if (merged.empty() || stretch.begin > SaturatingAdd(merged.back().end, kGapNs)) {
        merged.push_back(stretch);
      } else {
        merged.back().end = std::max(merged.back().end, stretch.end);
      }
    }
    return merged;
  }

  void ChooseInstants() {
    std::vector<bool> placed(graph_.vertex_count(), false);
    for (uint32_t v : tree_.order) placed[v] = true;
    std::vector<Instant> around;
    for (size_t i = 0; i < graph_.edges().size(); ++i) {
      const GraphEdge& edge = graph_.edges()[i];
      if (edge.map.empty() || !placed[edge.local]) continue;
      for (const Break& gap : options_.breaks[i]) AddBreak(static_cast<uint32_t>(i), gap, &around);
    }
    const std::vector<Stretch> stretches = SampledStretches(placed);
    if (stretches.empty()) return;
    int64_t sampled = 0;
    int64_t instants_max = 64;
    for (const GraphEdge& edge : graph_.edges()) {
      const auto knots = static_cast<int64_t>(edge.map.knots().size());
      instants_max = std::clamp(4 * knots, instants_max, kInstantsMax);
    }
    for (const Stretch& s : stretches) sampled = SaturatingAdd(sampled, s.end - s.begin);
    knot_ns_ = std::max(std::clamp(sampled / 64, kKnotNsMin, kKnotNsMax), sampled / instants_max);
    if (options_.rate_varies) knot_ns_ = std::max(kVaryingKnotNsMin, sampled / kVaryingInstantsMax);
    std::vector<Instant> merged;
    for (const Stretch& s : stretches) {
      for (int64_t t = s.begin; t < s.end; t += knot_ns_) merged.push_back({t});
      merged.push_back({s.end});
    }
    if (around.size() > kBreaksMax) around.resize(kBreaksMax);
    merged.insert(merged.end(), around.begin(), around.end());
    std::stable_sort(merged.begin(), merged.end(),
                     [](const Instant& a, const Instant& b) { return a.ns < b.ns; });
    for (const Instant& instant : merged) {
      if (instants_.empty() || instant.ns > instants_.back().ns) instants_.push_back({instant.ns});
    }
    MarkBreaks(around);
    // Over a gap without instants the truth may bend by more: the rate bound covers it.
    for (size_t k = 0; k + 1 < instants_.size(); ++k) {
      if (instants_[k + 1].ns - instants_[k].ns > 2 * knot_ns_) {
        instants_[k].next = Grid::Segment::kNearBreak;
      }
    }
  }

  // Four instants: just before the break begins, just after, just before it ends, just after.
  void AddBreak(uint32_t edge, const Break& gap, std::vector<Instant>* around) const {
    const GraphEdge& e = graph_.edges()[edge];
    const Bounds at = e.map.At(gap.begin_ns), after = e.map.At(gap.end_ns);
    const auto width = [](const Bounds& b) {
      return b.lo == kUnknownLo || b.hi == kUnknownHi ? 0 : b.hi - b.lo;
    };
    const int64_t margin = kBreakMarginNs + 2 * std::max(width(at), width(after));
    const int64_t begin = ToReference(e.local, gap.begin_ns - margin);
    const int64_t inside = ToReference(e.local, gap.begin_ns + margin);
    const int64_t leaving = ToReference(e.local, gap.end_ns - margin);
    const int64_t end = ToReference(e.local, gap.end_ns + margin);
    around->push_back(
        {begin - kBreakMarginNs});  // what is loose inside does not reach beyond these
    around->push_back({begin, Grid::Segment::kNearBreak});
    if (inside < leaving) {
      around->push_back({inside, Grid::Segment::kBreak});
      around->push_back({leaving, Grid::Segment::kNearBreak});
    }
    around->push_back({end});
    around->push_back({end + kBreakMarginNs});
  }

  // Segments between two instants of a break are of its kind, also where others were put between
  // them.
  void MarkBreaks(const std::vector<Instant>& around) {
    for (size_t i = 0; i + 1 < around.size(); ++i) {
      if (around[i].next == Grid::Segment::kSmooth) continue;
      for (Instant& instant : instants_) {
        if (instant.ns < around[i].ns || instant.ns >= around[i + 1].ns) continue;
        if (instant.next != Grid::Segment::kNearBreak) instant.next = around[i].next;
      }
    }
  }

  // Weighted least squares around `at` over all edges, then shifted so that the reference stays.
  std::vector<int64_t> Settle(std::vector<int64_t> at) const {
    if (graph_.edges().size() + 1 <= tree_.order.size()) return at;  // a tree has nothing to settle
    struct Residual {
      uint32_t a, b;
      double weight, z;
    };
    std::vector<std::vector<Residual>> of(graph_.vertex_count());
    for (uint32_t i = 0; i < graph_.edges().size(); ++i) {
      const GraphEdge& edge = graph_.edges()[i];
      if (edge.map.empty() || widths_[i] >= kOneSidedWidthNs) continue;
      const Bounds y = edge.map.At(at[edge.local]);
      if (y.lo == kUnknownLo || y.hi == kUnknownHi) continue;
      const double width = std::max<double>(static_cast<double>(y.hi - y.lo), 1.0);
      const double z = static_cast<double>(y.est - at[edge.remote]);
      of[edge.local].push_back({edge.local, edge.remote, 1 / (width * width), -z});
      of[edge.remote].push_back({edge.remote, edge.local, 1 / (width * width), z});
    }
    std::vector<double> delta(graph_.vertex_count(), 0);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (uint32_t v : tree_.order) {
        double sum = 0, weights = 0;
        for (const Residual& r : of[v]) {
          sum += r.weight * (delta[r.b] + r.z);
          weights += r.weight;
        }
        if (weights > 0) delta[v] = sum / weights;
      }
    }
    for (uint32_t v : tree_.order) {
      at[v] += std::llround(delta[v] - delta[options_.reference]);
    }
    return at;
  }

  const ClockGraph& graph_;
  const PlacementOptions& options_;
  std::vector<int64_t> widths_;
  Tree tree_;
  std::vector<Instant> instants_;
  int64_t knot_ns_ = kKnotNsMax;
};

}  // namespace

Grid PlaceClocks(const ClockGraph& graph, const PlacementOptions& options) {
  return Placer(graph, options).Place();
}

}  // namespace syncline::clocksync
