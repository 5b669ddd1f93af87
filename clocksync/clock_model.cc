// SPDX-License-Identifier: Apache-2.0
#include "clocksync/clock_model.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "clocksync/arithmetic.h"
#include "clocksync/model_data.h"

namespace syncline::clocksync {
namespace {

constexpr ClockKind kKinds[] = {ClockKind::kMonotonic, ClockKind::kRaw, ClockKind::kRealtime,
                                ClockKind::kBoottime};
constexpr size_t kKindCount = 6;

// a - b for interval ends: unknown if either is.
int64_t Minus(int64_t a, int64_t b, int64_t unknown) {
  return IsUnknown(a) || IsUnknown(b) ? unknown : Clip(Int128{a} - b);
}

// Whether x is known and where the map was measured (everywhere, for a map exact everywhere).
bool Covers(const BoundedMap& map, int64_t x) {
  if (IsUnknown(x)) return false;
  if (!map.empty() && map.rate_ppb_outside() == 0) return true;
  return !map.empty() && x >= map.knots().front().x && x <= map.knots().back().x;
}

const BoundedMap* HostMap(const HostMaps& host, ClockKind kind) {
  if (kind == ClockKind::kMonotonic) return &host.monotonic;
  if (kind == ClockKind::kBoottime) return &host.boottime;
  return nullptr;
}

// On a break the root's clock neither is before where it was nor after where it will be: clocks do
// not go back. A line that this cuts becomes level, because a chord under a cut would claim too
// much.
void LimitBreaks(const Grid& grid, std::vector<BoundedMap::Knot>* knots) {
  for (size_t first = 1; first + 1 < knots->size(); ++first) {
    if (grid.segments[first] == Grid::Segment::kSmooth) continue;
    size_t last = first + 1;
    while (last < grid.segments.size() && grid.segments[last] != Grid::Segment::kSmooth) ++last;
    if (last + 1 >= knots->size()) return;
    const int64_t least = (*knots)[first - 1].lo, most = (*knots)[last + 1].hi;
    bool cuts_lo = false, cuts_hi = false;
    for (size_t k = first; k <= last; ++k) {
      cuts_lo |= (*knots)[k].lo < least;
      cuts_hi |= (*knots)[k].hi > most;
    }
    for (size_t k = first; k <= last; ++k) {
      if (cuts_lo) (*knots)[k].lo = least;
      if (cuts_hi) (*knots)[k].hi = most;
    }
    first = last;
  }
}

}  // namespace

BoundedMap MapOnGrid(const RootBounds& bounds, const std::vector<int64_t>& x,
                     const std::vector<int64_t>& root_x, const Grid& grid, bool* infeasible) {
  std::vector<BoundedMap::Knot> knots;
  for (size_t k = 0; k < bounds.lo.size(); ++k) {
    BoundedMap::Knot knot{x[k], SaturatingAdd(bounds.lo[k], -grid.bend_ns), root_x[k],
                          SaturatingAdd(bounds.hi[k], grid.bend_ns)};
    if (knot.lo > knot.hi) {
      *infeasible = true;
      std::swap(knot.lo, knot.hi);
    }
    knots.push_back(knot);
  }
  LimitBreaks(grid, &knots);
  const bool cut = KeepLongestAlike(&knots);
  MakeMonotone(&knots);
  return BoundedMap(std::move(knots), cut ? -grid.rate_ppb_max : grid.rate_ppb_max);
}

// What the node's RAW clock reads at `time`.
Bounds ClockModel::Data::RawOf(NodeTime time) const {
  const HostMaps& host = clocks[time.clock.node].host;
  if (time.clock.kind == ClockKind::kRaw) return Bounds::Exactly(time.ns);
  if (time.clock.kind == ClockKind::kRealtime) return RawOfRealtime(host.realtime, time.ns);
  const BoundedMap* map = HostMap(host, time.clock.kind);
  if (map == nullptr || map->empty()) return {kUnknownLo, time.ns, kUnknownHi};
  return map->Inverse(Bounds::Exactly(time.ns));
}

// Without probes a node stands where its wall clock says, and nothing is claimed.
Bounds ClockModel::Data::TimelineOfRaw(uint32_t node, const Bounds& raw) const {
  const NodeClocks& its = clocks[node];
  if (!its.timeline.empty()) return its.timeline.At(raw);
  Bounds result;
  const HostMaps& at_reference = clocks[reference].host;
  if (!its.host.realtime.empty() && !at_reference.realtime.empty()) {
    const int64_t wall = RealtimeOfRaw(its.host.realtime, raw.est).est;
    const int64_t reference_raw = at_reference.realtime.back().Inverse(Bounds::Exactly(wall)).est;
    result.est = Clip(Int128{reference_raw} - zero_reference_raw_ns);
  } else {
    result.est = Clip(Int128{raw.est} - zero_reference_raw_ns);
  }
  return result;
}

void ClockModel::Data::Finish() {
  fast.clear();
  fast.resize(names.size());
  for (uint32_t node = 0; node < names.size(); ++node) {
    fast[node].resize(kKindCount);
    const NodeClocks& its = clocks[node];
    for (ClockKind kind : kKinds) {
      // Where the estimate bends: at knots of the timeline and of the host's own map.
      std::vector<int64_t> raws;
      for (const auto& knot : its.timeline.knots()) raws.push_back(knot.x);
      if (const BoundedMap* map = HostMap(its.host, kind)) {
        for (const auto& knot : map->knots()) raws.push_back(knot.x);
      }
      if (kind == ClockKind::kRealtime) {
        for (const auto& map : its.host.realtime) {
          for (const auto& knot : map.knots()) raws.push_back(knot.x);
        }
      }
      if (raws.empty()) raws.push_back(0);
      std::sort(raws.begin(), raws.end());
      // A second beyond each end, so that the outermost slopes are kept.
      raws.insert(raws.begin(), raws.front() - kBillion);
      raws.push_back(raws.back() + kBillion);
      std::vector<FastMap::Point> points;
      for (int64_t raw : raws) {
        int64_t x = raw;
        if (kind == ClockKind::kRealtime) {
          if (!its.host.realtime.empty()) x = RealtimeOfRaw(its.host.realtime, raw).est;
        } else if (const BoundedMap* map = HostMap(its.host, kind); map && !map->empty()) {
          x = map->At(raw).est;
        }
        points.push_back({x, TimelineOfRaw(node, Bounds::Exactly(raw)).est});
      }
      fast[node][static_cast<size_t>(kind)] =
          std::make_unique<FastMap>(identity ? FastMap() : FastMap(points));
    }
  }
}

const BoundedMap& ClockModel::Data::Pair(uint32_t from, uint32_t to) const {
  const uint64_t key = uint64_t{from} << 32 | to;
  {
    std::shared_lock lock(pairs_mutex);
    if (const auto known = pairs.find(key); known != pairs.end()) return *known->second;
  }
  auto made = std::make_unique<BoundedMap>();
  if (from < grid.x.size() && to < grid.x.size() && !grid.x[from].empty() && !grid.x[to].empty()) {
    const auto bounds = graph.BoundsTo(to, grid, graph.NearPaths(from, to));
    bool infeasible = false;
    *made = MapOnGrid(bounds[from], grid.x[from], grid.x[to], grid, &infeasible);
    if (infeasible) *made = BoundedMap();  // Locate() covers what each edge says
  }
  // Another thread may have been faster; both made the same.
  std::unique_lock lock(pairs_mutex);
  return *pairs.emplace(key, std::move(made)).first->second;
}

ClockModel::ClockModel(std::unique_ptr<Data> data) : data_(std::move(data)) {}
ClockModel::ClockModel(ClockModel&&) noexcept = default;
ClockModel& ClockModel::operator=(ClockModel&&) noexcept = default;
ClockModel::~ClockModel() = default;

ClockModel ClockModel::Identity(std::vector<std::string> names) {
  auto data = std::make_unique<Data>();
  data->identity = true;
  data->clocks.resize(names.size());
  data->names = std::move(names);
  data->Finish();
  return ClockModel(std::move(data));
}

const std::vector<std::string>& ClockModel::nodes() const { return data_->names; }
uint32_t ClockModel::reference_node() const { return data_->reference; }
const std::vector<ClockEvent>& ClockModel::events() const { return data_->events; }
std::vector<ClockModel::Source> ClockModel::sources() const {
  const auto name = [this](uint32_t vertex) { return data_->VertexName(vertex); };
  std::vector<Source> sources;
  for (const GraphEdge& edge : data_->graph.edges()) {
    const std::string local = name(edge.local), remote = name(edge.remote);
    if (edge.samples_of_local > 0) sources.push_back({local, remote, edge.samples_of_local});
    if (edge.samples_of_remote > 0) sources.push_back({remote, local, edge.samples_of_remote});
  }
  return sources;
}
int64_t ClockModel::epoch_unix_ns() const { return data_->epoch_unix_ns; }

bool ClockModel::Knows(ClockId clock) const {
  if (clock.node >= data_->names.size() || clock.device != 0) return false;
  const HostMaps& host = data_->clocks[clock.node].host;
  switch (clock.kind) {
    case ClockKind::kMonotonic:
    case ClockKind::kRaw:
      return true;
    case ClockKind::kRealtime:
      return data_->identity || !host.realtime.empty();
    case ClockKind::kBoottime:
      return data_->identity || !host.boottime.empty();
    default:
      return false;
  }
}

TimelineEstimate ClockModel::Locate(NodeTime time) const {
  if (!Knows(time.clock)) return {};
  const FastMap& fast = *data_->fast[time.clock.node][static_cast<size_t>(time.clock.kind)];
  const int64_t est = fast.At(time.ns);
  if (data_->identity) return {.est = {est}};
  const Bounds at = data_->TimelineOfRaw(time.clock.node, data_->RawOf(time));
  return {.est = {est}, .lo = {std::min(at.lo, est)}, .hi = {std::max(at.hi, est)}};
}

DurationEstimate ClockModel::Difference(NodeTime a, NodeTime b) const {
  if (!Knows(a.clock) || !Knows(b.clock)) return {};
  if (a.clock == b.clock) {
    const int64_t exact = Clip(Int128{b.ns} - a.ns);
    return {exact, exact, exact};
  }
  const Data& data = *data_;
  const uint32_t i = a.clock.node, j = b.clock.node;
  const Bounds raw_a = data.RawOf(a), raw_b = data.RawOf(b);
  if (i == j) {
    const int64_t est = Clip(Int128{raw_b.est} - raw_a.est);
    return {est, Minus(raw_b.lo, raw_a.hi, kUnknownLo), Minus(raw_b.hi, raw_a.lo, kUnknownHi)};
  }
  const TimelineEstimate at_a = Locate(a), at_b = Locate(b);
  DurationEstimate result{Clip(Int128{at_b.est.ns} - at_a.est.ns),
                          Minus(at_b.lo.ns, at_a.hi.ns, kUnknownLo),
                          Minus(at_b.hi.ns, at_a.lo.ns, kUnknownHi)};
  if (data.identity) return result;
  // The way from a's clock to b's, without the detour over the reference: what did b's RAW clock
  // read at a? The rest of the way to b is on b's own clock, whose rate is known to within the
  // slack.
  const NodeClocks& its = data.clocks[j];
  const Bounds y = data.Pair(i, j).At(raw_a);
  const bool inside = its.rate_slack_ppb >= 0 && Covers(its.timeline, y.lo) &&
                      Covers(its.timeline, y.hi) && Covers(its.timeline, raw_b.lo) &&
                      Covers(its.timeline, raw_b.hi);
  if (inside) {
    const auto stretch = [&](int64_t from, int64_t to, int sign) {
      const Int128 est = Int128{its.timeline.At(to).est} - its.timeline.At(from).est;
      const Int128 distance = std::abs(to - from);
      return Clip(est + sign * (distance * its.rate_slack_ppb / kBillion + 2));
    };
    result.lo_ns = std::max(result.lo_ns, stretch(y.hi, raw_b.lo, -1));
    result.hi_ns = std::min(result.hi_ns, stretch(y.lo, raw_b.hi, +1));
  }
  result.est_ns = std::clamp(result.est_ns, std::min(result.lo_ns, result.hi_ns),
                             std::max(result.lo_ns, result.hi_ns));
  result.lo_ns = std::min(result.lo_ns, result.est_ns);
  result.hi_ns = std::max(result.hi_ns, result.est_ns);
  return result;
}

Ordering ClockModel::Order(NodeTime a, NodeTime b) const {
  const DurationEstimate difference = Difference(a, b);
  if (difference.lo_ns > 0) return Ordering::kBefore;
  if (difference.hi_ns < 0) return Ordering::kAfter;
  return Ordering::kUndecided;
}

NodeTime ClockModel::Unlocate(ClockId clock, TimelineTime time) const {
  if (!Knows(clock)) return {clock, 0};
  return {clock, data_->fast[clock.node][static_cast<size_t>(clock.kind)]->Inverse(time.ns)};
}

std::optional<std::vector<int64_t>> ClockModel::BendsOf(ClockId clock) const {
  if (!Knows(clock)) return std::nullopt;
  const NodeClocks& its = data_->clocks[clock.node];
  const BoundedMap* map = HostMap(its.host, clock.kind);
  if (clock.kind == ClockKind::kRealtime) {
    if (its.host.realtime.size() > 1) return std::nullopt;  // set in between: ends may jump
    if (!its.host.realtime.empty()) map = &its.host.realtime.front();
  }
  std::vector<int64_t> raws;
  for (const auto& knot : its.timeline.knots()) raws.push_back(knot.x);
  if (map != nullptr) {
    for (const auto& knot : map->knots()) raws.push_back(knot.x);
  }
  std::vector<int64_t> bends;
  for (const int64_t raw : raws) {
    if (map == nullptr || map->empty()) {
      bends.push_back(raw);
      continue;
    }
    // Each line bends where it reaches the knot itself.
    const Bounds at = map->At(raw);
    for (const int64_t ns : {at.lo, at.est, at.hi}) {
      if (!IsUnknown(ns)) bends.push_back(ns);
    }
  }
  std::sort(bends.begin(), bends.end());
  bends.erase(std::unique(bends.begin(), bends.end()), bends.end());
  return bends;
}

ClockModel::Mapper ClockModel::MapperFor(ClockId clock) const {
  Mapper mapper;
  if (Knows(clock)) mapper.map_ = data_->fast[clock.node][static_cast<size_t>(clock.kind)].get();
  return mapper;
}

TimelineTime ClockModel::Mapper::At(int64_t clock_ns) {
  if (map_ == nullptr) return {clock_ns};
  return {static_cast<const FastMap*>(map_)->At(clock_ns, &segment_)};
}

void ClockModel::Mapper::PlaceAll(std::span<int64_t> times_ns) {
  if (map_ == nullptr) return;
  const auto& map = *static_cast<const FastMap*>(map_);
  size_t segment = segment_;
  for (int64_t& ns : times_ns) ns = map.At(ns, &segment);
  segment_ = segment;
}

std::optional<ClockLine> ClockModel::Mapper::LineAt(int64_t clock_ns) {
  if (map_ == nullptr) return std::nullopt;
  return static_cast<const FastMap*>(map_)->LineAt(clock_ns, &segment_);
}

}  // namespace syncline::clocksync
