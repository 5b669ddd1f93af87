// SPDX-License-Identifier: Apache-2.0
#include "clocksync/blame.h"

#include <algorithm>
#include <tuple>

#include "clocksync/arithmetic.h"

namespace syncline::clocksync {
namespace {

constexpr size_t kAnchors = 32;      // breaks of one vertex that are tried as the one to agree with
constexpr size_t kBreaksMax = 2000;  // in all; beyond, nobody is blamed

// One break as the clock of one of its edge's ends sees it.
struct View {
  uint32_t edge = 0;
  size_t index = 0;  // of the edge's breaks
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t step_ns = 0;
  int64_t step_ns_min = 0;
  int64_t step_ns_max = 0;
  bool backwards = false;
};

int64_t Negated(int64_t ns) {
  return ns == kUnknownLo ? kUnknownHi : ns == kUnknownHi ? kUnknownLo : -ns;
}

View ViewOf(const WatchedEdge& edge, uint32_t edge_index, size_t index, uint32_t vertex) {
  const Break& gap = edge.corridor->breaks[index];
  View view{edge_index,
            index,
            gap.begin_ns,
            gap.end_ns,
            -gap.step_ns,
            Negated(gap.step_ns_max),
            Negated(gap.step_ns_min),
            gap.backwards};
  if (vertex == edge.remote) {
    view.begin_ns = std::min(gap.begin_y_ns, gap.end_y_ns);
    view.end_ns = std::max(gap.begin_y_ns, gap.end_y_ns);
    view.step_ns = gap.step_ns;
    view.step_ns_min = gap.step_ns_min;
    view.step_ns_max = gap.step_ns_max;
  }
  return view;
}

// Breaks that one step of one clock explains.
struct Cluster {
  uint32_t vertex = 0;
  std::vector<View> views;
  View common;  // what all of them have in common; step_ns of the narrowest
  size_t denials = 0;
  bool slept = false;

  auto Rank() const { return std::tuple(denials == 0, views.size(), slept); }
};

bool Narrow(const View& view, View* common) {
  const View old = *common;
  common->begin_ns = std::max(common->begin_ns, view.begin_ns);
  common->end_ns = std::min(common->end_ns, view.end_ns);
  common->step_ns_min = std::max(common->step_ns_min, view.step_ns_min);
  common->step_ns_max = std::min(common->step_ns_max, view.step_ns_max);
  const bool agrees =
      common->begin_ns <= common->end_ns && common->step_ns_min <= common->step_ns_max;
  if (!agrees) {
    *common = old;
    return false;
  }
  const auto width = [](const View& v) { return Int128{v.step_ns_max} - v.step_ns_min; };
  if (width(view) < width(old)) common->step_ns = view.step_ns;
  common->step_ns = std::clamp(common->step_ns, common->step_ns_min, common->step_ns_max);
  common->backwards |= view.backwards;
  return true;
}

class Blamer {
 public:
  Blamer(std::span<const WatchedEdge> edges, uint32_t vertex_count, std::span<const Sleep> sleeps)
      : edges_(edges), sleeps_(sleeps), of_(vertex_count) {
    for (uint32_t i = 0; i < edges.size(); ++i) {
      of_[edges[i].local].push_back(i);
      of_[edges[i].remote].push_back(i);
      explained_.emplace_back(edges[i].corridor->breaks.size(), false);
      open_ += edges[i].corridor->breaks.size();
    }
  }

  std::vector<Suspect> Run() {
    std::vector<Suspect> suspects;
    if (open_ > kBreaksMax) return EachForItself();
    while (open_ > 0) {
      Cluster best;
      for (uint32_t v = 0; v < of_.size(); ++v) {
        Cluster mine = BestOf(v);
        if (!mine.views.empty() && (best.views.empty() || mine.Rank() > best.Rank())) {
          best = std::move(mine);
        }
      }
      suspects.push_back(Accuse(best));
      for (const View& view : best.views) {
        explained_[view.edge][view.index] = true;
        --open_;
      }
    }
    return suspects;
  }

 private:
  std::vector<View> OpenViews(uint32_t vertex) const {
    std::vector<View> views;
    for (uint32_t e : of_[vertex]) {
      for (size_t i = 0; i < explained_[e].size(); ++i) {
        if (!explained_[e][i]) views.push_back(ViewOf(edges_[e], e, i, vertex));
      }
    }
    return views;
  }

  // The largest set of open breaks of its edges that one step of the vertex explains.
  Cluster BestOf(uint32_t vertex) const {
    const std::vector<View> views = OpenViews(vertex);
    Cluster best;
    const size_t stride = views.size() / kAnchors + 1;
    for (size_t first = 0; first < views.size(); first += stride) {
      Cluster cluster{.vertex = vertex, .views = {views[first]}, .common = views[first]};
      uint32_t edge = edges_.size();  // views of one edge stand together: one of them may join
      for (const View& view : views) {
        if (view.edge == edge || view.edge == views[first].edge) continue;
        if (!Narrow(view, &cluster.common)) continue;
        cluster.views.push_back(view);
        edge = view.edge;
      }
      if (cluster.views.size() > best.views.size()) best = std::move(cluster);
    }
    if (best.views.empty()) return best;
    for (uint32_t e : of_[vertex]) best.denials += Denies(e, best) ? 1 : 0;
    best.slept = Slept(vertex, best.common);
    return best;
  }

  // Whether the edge was watched while the cluster's clock is said to have stepped, and shows
  // nothing.
  bool Denies(uint32_t edge, const Cluster& cluster) const {
    for (const View& view : cluster.views) {
      if (view.edge == edge) return false;
    }
    const View& common = cluster.common;
    const int64_t least = common.step_ns_min > 0   ? common.step_ns_min
                          : common.step_ns_max < 0 ? -common.step_ns_max
                                                   : 0;
    const WatchedEdge& e = edges_[edge];
    const BoundedMap& map = e.corridor->map;
    if (least == 0 || map.knots().size() < 2) return false;
    const bool by_local = e.local == cluster.vertex;
    const auto& first = map.knots().front();
    const auto& last = map.knots().back();
    const int64_t from = by_local ? first.x : first.hi, to = by_local ? last.x : last.lo;
    if (common.begin_ns <= from || common.end_ns >= to) return false;
    for (int64_t at : {common.begin_ns, common.end_ns}) {
      const Interval there = by_local ? map.EndsAt(at) : map.InverseEnds(at);
      if (IsUnknown(there.lo) || IsUnknown(there.hi)) return false;
      // A hidden step makes the interval narrow: what the edge can hide is its round trip.
      const Int128 hides = std::max(Int128{there.hi} - there.lo, Int128{e.round_trip_min_ns});
      if (hides * 2 >= least) return false;
    }
    for (size_t i = 0; i < e.corridor->breaks.size(); ++i) {
      const View view = ViewOf(e, edge, i, cluster.vertex);
      if (view.begin_ns <= common.end_ns && view.end_ns >= common.begin_ns) return false;
    }
    return true;
  }

  bool Slept(uint32_t vertex, const View& view) const {
    return std::any_of(sleeps_.begin(), sleeps_.end(), [&](const Sleep& sleep) {
      return sleep.vertex == vertex && sleep.begin_ns <= view.end_ns &&
             sleep.end_ns >= view.begin_ns;
    });
  }

  // The assumptions plainly do not hold: who could say which of these is whose?
  std::vector<Suspect> EachForItself() const {
    std::vector<Suspect> suspects;
    for (uint32_t e = 0; e < edges_.size(); ++e) {
      for (size_t i = 0; i < explained_[e].size(); ++i) {
        const View view = ViewOf(edges_[e], e, i, edges_[e].remote);
        suspects.push_back(EitherEnd(view));
      }
    }
    return suspects;
  }

  Suspect EitherEnd(const View& break_of) const {
    const WatchedEdge& edge = edges_[break_of.edge];
    const View remote = ViewOf(edge, break_of.edge, break_of.index, edge.remote);
    const Break& gap = edge.corridor->breaks[break_of.index];
    return {.places = {{edge.remote, remote.begin_ns, remote.end_ns},
                       {edge.local, gap.begin_ns, gap.end_ns}},
            .edges = {break_of.edge},
            .step_ns = remote.step_ns,
            .step_ns_min = remote.step_ns_min,
            .step_ns_max = remote.step_ns_max,
            .backwards = gap.backwards};
  }

  Suspect Accuse(const Cluster& cluster) const {
    const View& common = cluster.common;
    Suspect suspect{.places = {{cluster.vertex, common.begin_ns, common.end_ns}},
                    .step_ns = common.step_ns,
                    .step_ns_min = common.step_ns_min,
                    .step_ns_max = common.step_ns_max,
                    .slept = cluster.slept,
                    .backwards = common.backwards};
    for (const View& view : cluster.views) suspect.edges.push_back(view.edge);
    if (cluster.views.size() > 1) return suspect;
    const WatchedEdge& edge = edges_[cluster.views[0].edge];
    const uint32_t other = edge.local == cluster.vertex ? edge.remote : edge.local;
    const bool alone = cluster.denials > 0;
    if (!alone && (cluster.slept || BestOf(other).denials > 0)) return suspect;
    suspect = EitherEnd(cluster.views[0]);
    suspect.edge_alone = alone;
    return suspect;
  }

  std::span<const WatchedEdge> edges_;
  std::span<const Sleep> sleeps_;
  std::vector<std::vector<uint32_t>> of_;     // [vertex] -> edges
  std::vector<std::vector<bool>> explained_;  // [edge][break]
  size_t open_ = 0;
};

}  // namespace

std::vector<Suspect> Blame(std::span<const WatchedEdge> edges, uint32_t vertex_count,
                           std::span<const Sleep> sleeps) {
  return Blamer(edges, vertex_count, sleeps).Run();
}

std::vector<Interval> HiddenBreaks(const WatchedEdge& edge, uint32_t edge_index,
                                   std::span<const Suspect> suspects) {
  const BoundedMap& map = edge.corridor->map;
  std::vector<Interval> hidden;
#if SYNCLINE_TEST_MUTANTS
  suspects = {};  // tests/sim must notice
#endif
  if (map.empty()) return hidden;
  for (const Suspect& suspect : suspects) {
    const bool shows =
        std::find(suspect.edges.begin(), suspect.edges.end(), edge_index) != suspect.edges.end();
    if (shows || suspect.edge_alone) continue;
    for (const Suspect::Place& place : suspect.places) {
      if (place.vertex != edge.local && place.vertex != edge.remote) continue;
      Interval at{place.begin_ns, place.end_ns};
      if (place.vertex == edge.remote) {
        const Interval begin = map.InverseEnds(place.begin_ns), end = map.InverseEnds(place.end_ns);
        if (IsUnknown(begin.lo) || IsUnknown(begin.hi)) continue;
        if (IsUnknown(end.lo) || IsUnknown(end.hi)) continue;
        // The map itself may be off by the step that it does not show, which is less than its
        // width.
        at = {std::min(SaturatingAdd(begin.lo, begin.lo - begin.hi), end.lo),
              std::max(begin.hi, SaturatingAdd(end.hi, end.hi - end.lo))};
      }
      const bool own = std::any_of(
          edge.corridor->breaks.begin(), edge.corridor->breaks.end(),
          [&](const Break& gap) { return gap.begin_ns <= at.hi && gap.end_ns >= at.lo; });
      if (!own) hidden.push_back(at);
    }
  }
  std::sort(hidden.begin(), hidden.end(),
            [](const Interval& a, const Interval& b) { return a.lo < b.lo; });
  std::vector<Interval> apart;
  for (const Interval& gap : hidden) {
    if (!apart.empty() && gap.lo <= apart.back().hi) {
      apart.back().hi = std::max(apart.back().hi, gap.hi);
    } else {
      apart.push_back(gap);
    }
  }
  return apart;
}

}  // namespace syncline::clocksync
