// SPDX-License-Identifier: Apache-2.0
// Narrower intervals under an assumption that no sample can prove (ClockModel::AssumingAsymmetry).
//
// An edge's corridor says theta <= F and theta >= -B. Each of its constraints is a message, and has
// as much to spare as that message took; so F - theta is at least the least that any message out
// took, and theta + B the least that any took back, wherever the corridor is asked. W, the width of
// the corridor where it is narrowest, is the shortest round trip that the path is known to allow.
// If no message took less than m = (100 - percent)/200 of W, both ends of the corridor may be moved
// inwards by m, everywhere: also over breaks and gaps, where it is the hull of such intervals.
//
// Example: W = 100 us and 50 per cent: neither way takes less than 25 us, so the corridor is 50 us
// wide. Were the ways 10 and 90 us long, the truth would be outside it: that is the assumption.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocksync/arithmetic.h"
#include "clocksync/clock_model.h"
#include "clocksync/model_data.h"

namespace syncline::clocksync {
namespace {

BoundedMap Narrowed(const BoundedMap& map, int64_t percent) {
  int64_t width_ns = kUnknownHi;
  for (const BoundedMap::Knot& knot : map.knots()) {
    if (IsUnknown(knot.lo) || IsUnknown(knot.hi)) continue;
    width_ns = std::min(width_ns, Clip(Int128{knot.hi} - knot.lo));
  }
  if (IsUnknown(width_ns)) return map;
  const int64_t least_ns = Clip(Int128{width_ns} * (100 - percent) / 200);
  std::vector<BoundedMap::Knot> knots = map.knots();
  for (BoundedMap::Knot& knot : knots) {
    knot.lo = SaturatingAdd(knot.lo, least_ns);
    knot.hi = SaturatingAdd(knot.hi, -least_ns);
    knot.est = std::clamp(knot.est, knot.lo, knot.hi);
  }
  MakeMonotone(&knots);
  return BoundedMap(std::move(knots), map.rate_ppb_outside());
}

// Whether the edge is one of a loop that contradicts itself.
bool MayLie(const GraphEdge& edge, const ModelAssembler::Data& data) {
  const std::string name =
      absl::StrCat(data.VertexName(edge.local), "--", data.VertexName(edge.remote));
  return std::any_of(data.events.begin(), data.events.end(), [&](const ClockEvent& event) {
    if (event.cause != ClockEvent::Cause::kLoop) return false;
    return event.node == name ||
           std::find(event.between.begin(), event.between.end(), name) != event.between.end();
  });
}

// By the narrower graph, on the timeline; nullopt where that contradicts itself.
std::optional<BoundedMap> TimelineOf(uint32_t node, const RootBounds& bounds,
                                     const ModelAssembler::Data& data) {
  const std::vector<int64_t>& root_x = data.grid.x[data.reference];
  bool infeasible = false;
  const BoundedMap map = MapOnGrid(bounds, data.grid.x[node], root_x, data.grid, &infeasible);
  if (infeasible) return std::nullopt;
  return Shifted(map, -data.zero_reference_raw_ns);
}

bool SameEstimate(const BoundedMap& a, const BoundedMap& b) {
  return std::equal(a.knots().begin(), a.knots().end(), b.knots().begin(), b.knots().end(),
                    [](const BoundedMap::Knot& x, const BoundedMap::Knot& y) {
                      return x.x == y.x && x.est == y.est;
                    });
}

}  // namespace

std::string AsymmetryText(int64_t percent) {
  return absl::StrCat("path asymmetry <= ", percent, " %");
}

std::string AsymmetryMeaning(int64_t percent) {
  const int64_t halves = 100 - std::clamp<int64_t>(percent, 0, kAsymmetryPercentAny);
  return absl::StrCat("no message took less than ", halves / 2, halves % 2 == 0 ? "" : ".5",
                      " % of its path's shortest round trip");
}

std::optional<ClockModel> ClockModel::AssumingAsymmetry(int64_t percent) const {
  percent = std::clamp<int64_t>(percent, 0, kAsymmetryPercentAny);
  auto data = std::make_unique<Data>();
  data->identity = data_->identity;
  data->names = data_->names;
  data->hubs = data_->hubs;
  data->reference = data_->reference;
  data->zero_reference_raw_ns = data_->zero_reference_raw_ns;
  data->epoch_unix_ns = data_->epoch_unix_ns;
  data->clocks = data_->clocks;
  data->grid = data_->grid;
  data->events = data_->events;
  std::vector<GraphEdge> edges = data_->graph.edges();
  for (GraphEdge& edge : edges) {
    // What traces alone say has no round trip; and of one that was widened because it may lie,
    // nobody knows where the truth is in it.
    if (edge.samples_of_local + edge.samples_of_remote == 0 || MayLie(edge, *data_)) continue;
    edge.map = Narrowed(edge.map, percent);
  }
  data->graph = ClockGraph(data_->graph.vertex_count(), std::move(edges));
  if (!data->identity && percent < kAsymmetryPercentAny) {
    const std::vector<RootBounds> bounds = data->graph.BoundsTo(data->reference, data->grid);
    for (uint32_t node = 0; node < data->names.size(); ++node) {
      NodeClocks& its = data->clocks[node];
      if (node == data->reference || its.timeline.empty() || bounds[node].lo.empty()) continue;
      if (IsUnknown(its.timeline.knots().front().lo)) continue;  // nothing is proven, either
      std::optional<BoundedMap> timeline = TimelineOf(node, bounds[node], *data);
      if (!timeline.has_value()) return std::nullopt;
      its.timeline = *std::move(timeline);
      if (!SameEstimate(its.timeline, data_->clocks[node].timeline)) its.rate_slack_ppb = -1;
    }
  }
  data->Finish();
  return ClockModel(std::move(data));
}

}  // namespace syncline::clocksync
