// SPDX-License-Identifier: Apache-2.0
#include "clocksync/builder.h"

#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clocksync/arithmetic.h"
#include "clocksync/blame.h"
#include "clocksync/corridor.h"
#include "clocksync/edge_fit.h"
#include "clocksync/graph.h"
#include "clocksync/host_chain.h"
#include "clocksync/loops.h"
#include "clocksync/model_data.h"
#include "clocksync/placement.h"
#include "common/duration_text.h"
#include "common/status.h"

namespace syncline::clocksync {
namespace {

constexpr size_t kSamplesFew = 3;
constexpr int64_t kSilenceNsMin = 3 * kBillion;  // each of a pair asks every other second at least

class Builder {
 public:
  Builder(const BuildInput& input, const BuildOptions& options)
      : input_(input), options_(options), data_(std::make_unique<ModelAssembler::Data>()) {}

  absl::StatusOr<BuildResult> Build() {
    SYNCLINE_RETURN_IF_ERROR(NameVertices());
    SYNCLINE_RETURN_IF_ERROR(FitHosts());
    FitEdges();
    PlaceNodes();
    PlaceEvents();
    const int64_t wall =
        RealtimeOfRaw(data_->clocks[data_->reference].host.realtime, options_.zero_reference_raw_ns)
            .est;
    data_->epoch_unix_ns = wall;
    data_->events = events_;
    data_->Finish();
    return BuildResult{ModelAssembler::Make(std::move(data_)), std::move(qualities_),
                       std::move(events_)};
  }

 private:
  absl::Status NameVertices() {
    if (input_.nodes.empty())
      return absl::InvalidArgumentError("a clock model needs at least one node");
    data_->names = input_.nodes;
    data_->zero_reference_raw_ns = options_.zero_reference_raw_ns;
    for (const std::string& name : input_.nodes) {
      const auto index = static_cast<uint32_t>(vertices_.size());
      if (!vertices_.emplace(name, index).second) {
        return absl::InvalidArgumentError(absl::StrCat("node \"", name, "\" is named twice"));
      }
    }
    const auto reference = vertices_.find(options_.reference);
    if (reference == vertices_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the reference \"", options_.reference, "\" is not one of the nodes"));
    }
    data_->reference = reference->second;
    for (const Edge& edge : input_.edges) {
      for (const std::string& name : {edge.local, edge.remote}) {
        if (vertices_.contains(name)) continue;
        if (name != "coordinator") {
          return absl::InvalidArgumentError(absl::StrCat("the samples ", edge.local, "--",
                                                         edge.remote, " name a node \"", name,
                                                         "\" that is not in the recording"));
        }
        vertices_.emplace(name, static_cast<uint32_t>(vertices_.size()));
        data_->hubs.push_back(name);
      }
      if (edge.local == edge.remote) {
        return absl::InvalidArgumentError(
            absl::StrCat("samples of \"", edge.local, "\" with itself"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FitHosts() {
    data_->clocks.resize(data_->names.size());
    for (NodeClocks& clocks : data_->clocks) {
      if (options_.wall_clocks) clocks.host.realtime = {BoundedMap({{0, 0, 0, 0}}, 0)};
    }
    for (const HostClocks& host : input_.hosts) {
      const auto vertex = vertices_.find(host.node);
      if (vertex == vertices_.end() && host.node != "coordinator") {
        return absl::InvalidArgumentError(
            absl::StrCat("clock readings of \"", host.node, "\", which is not in the recording"));
      }
      if (vertex == vertices_.end()) continue;
      HostFit fit = FitHostClocks(host);
      for (const ClockEvent& event : fit.events) {
        if (event.kind != ClockEvent::Kind::kSuspend) continue;
        sleeps_.push_back({vertex->second, event.begin_ns, event.end_ns});
      }
      if (vertex->second >= data_->names.size()) continue;
      data_->clocks[vertex->second].host = std::move(fit.maps);
      events_.insert(events_.end(), fit.events.begin(), fit.events.end());
    }
    return absl::OkStatus();
  }

  // RAW of a causal instant, the sound side of it; unknown when its clock is.
  Bounds RawOf(NodeTime time) const {
    if (time.clock.node >= data_->names.size()) return {};
    return data_->RawOf(time);
  }

  static uint64_t Key(uint32_t local, uint32_t remote) { return uint64_t{local} << 32 | remote; }

  // One edge per pair of nodes, whoever asked.
  void AddProbedEdges() {
    for (const Edge& edge : input_.edges) {
      const uint32_t local = vertices_.at(edge.local), remote = vertices_.at(edge.remote);
      if (const auto reverse = edge_of_.find(Key(remote, local)); reverse != edge_of_.end()) {
        AddAskedByRemote(edge, &fits_[reverse->second]);
        continue;
      }
      edge_of_.emplace(Key(local, remote), edges_.size());
      edges_.push_back({.local = edge.local, .remote = edge.remote});
      fits_.push_back(CollectEdge(edge));
    }
    probed_ = edges_.size();
  }

  // A happened before B: when A's clock read a, B's had not passed b.
  void AddCausalPairs() {
    for (const CausalPair& pair : input_.causal) {
      const uint32_t a = pair.before.clock.node, b = pair.after.clock.node;
      const Bounds before = RawOf(pair.before), after = RawOf(pair.after);
      const int64_t most = options_.wall_clocks ? kWallMax : kStampMax;
      if (a == b || before.lo <= -most || after.hi >= most) continue;
      if (before.lo >= most || after.hi <= -most) continue;
      if (const auto reverse = edge_of_.find(Key(b, a)); reverse != edge_of_.end()) {
        fits_[reverse->second].constraints.lower.push_back({after.hi, before.lo});
        continue;
      }
      const auto [found, is_new] = edge_of_.emplace(Key(a, b), edges_.size());
      if (is_new) {
        edges_.push_back({.local = data_->names[a], .remote = data_->names[b]});
        fits_.emplace_back();
      }
      fits_[found->second].constraints.upper.push_back({before.lo, after.hi});
    }
  }

  CorridorOptions FitOptions() const {
    return {.rate_ppb_max = options_.rate_ppb_max, .wander_ppb_per_s = options_.wander_ppb_per_s};
  }

  void FitEdges() {
    AddProbedEdges();
    AddCausalPairs();
    for (EdgeFit& fit : fits_) {
      fit.corridor = options_.wall_clocks ? FitVaryingRate(fit.constraints, options_.rate_ppb_max)
                                          : FitCorridor(fit.constraints, FitOptions());
    }
    FindSuspects();
    std::vector<GraphEdge> graph_edges;
    for (size_t i = 0; i < edges_.size(); ++i) {
      EdgeFit& fit = fits_[i];
      ReportEdge(i);
      if (i < probed_) {
        ReportGaps(i);
        qualities_.push_back(QualityOf(edges_[i], fit));
        if (options_.audit) AuditOf(i);
      }
      breaks_.push_back(fit.corridor.breaks);
      graph_edges.push_back({vertices_.at(edges_[i].local), vertices_.at(edges_[i].remote),
                             std::move(fit.corridor.map), fit.samples_of_local,
                             fit.samples_of_remote});
      fit.constraints = {};
    }
    data_->graph = ClockGraph(VertexCount(), std::move(graph_edges));
  }

  uint32_t VertexCount() const {
    return static_cast<uint32_t>(data_->names.size() + data_->hubs.size());
  }

  // Who broke, and where other edges of theirs must therefore not be believed.
  void FindSuspects() {
    std::vector<WatchedEdge> watched;
    for (size_t i = 0; i < edges_.size(); ++i) {
      watched.push_back({vertices_.at(edges_[i].local), vertices_.at(edges_[i].remote),
                         &fits_[i].corridor, fits_[i].round_trip_min_ns});
    }
    const std::vector<Suspect> suspects = Blame(watched, VertexCount(), sleeps_);
    if (suspects.empty()) return;
    for (const Suspect& suspect : suspects) ReportSuspect(suspect);
    std::vector<std::vector<Interval>> hidden;
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      hidden.push_back(HiddenBreaks(watched[i], i, suspects));
    }
    for (size_t i = 0; i < edges_.size(); ++i) {
      if (hidden[i].empty()) continue;
      for (const Break& gap : fits_[i].corridor.breaks) {
        hidden[i].push_back({gap.begin_ns, gap.end_ns});
      }
      std::sort(hidden[i].begin(), hidden[i].end(),
                [](const Interval& a, const Interval& b) { return a.lo < b.lo; });
      fits_[i].corridor = FitCorridor(fits_[i].constraints, FitOptions(), hidden[i]);
    }
  }

  void ReportSuspect(const Suspect& suspect) {
    const Suspect::Place& place = suspect.places.front();
    ClockEvent event{.kind = ClockEvent::Kind::kInfeasible,
                     .node = Name(place.vertex),
                     .begin_ns = place.begin_ns,
                     .end_ns = place.end_ns,
                     .step_ns = suspect.step_ns,
                     .step_ns_min = suspect.step_ns_min,
                     .step_ns_max = suspect.step_ns_max};
    for (uint32_t edge : suspect.edges) event.evidence.push_back(EdgeName(edge));
    if (suspect.places.size() > 1) {
      event.node = event.evidence.front();
      event.begin_ns = suspect.places[1].begin_ns;  // by the local clock
      event.end_ns = suspect.places[1].end_ns;
      if (!suspect.edge_alone) {
        for (const Suspect::Place& one : suspect.places) event.between.push_back(Name(one.vertex));
      }
    }
    event.cause = suspect.edge_alone              ? ClockEvent::Cause::kFalseStamps
                  : suspect.slept                 ? ClockEvent::Cause::kSuspend
                  : event.step_size_ns_min() == 0 ? ClockEvent::Cause::kRateChange
                                                  : ClockEvent::Cause::kStep;
    event.text = TextOfBreak(event, suspect.backwards);
    events_.push_back(std::move(event));
  }

  std::string EdgeName(size_t edge) const {
    return absl::StrCat(edges_[edge].local, "--", edges_[edge].remote);
  }

  void AuditOf(size_t i) {
    EdgeAudit audit = AuditEdge(fits_[i].constraints, fits_[i].corridor, FitOptions());
    qualities_.back().audit = std::move(audit);
    qualities_.back().constraints = fits_[i].constraints;
    qualities_.back().corridor = fits_[i].corridor.map;
  }

  void ReportGaps(size_t i) {
    for (const SampleGap& gap : FindGaps(fits_[i].constraints, fits_[i].corridor)) {
      const std::string bound =
          gap.bound_ns == kUnknownHi ? "unknown" : absl::StrCat("± ", DurationText(gap.bound_ns));
      events_.push_back({ClockEvent::Kind::kGap, EdgeName(i), gap.begin_ns, gap.end_ns,
                         absl::StrCat("no samples for ", DurationText(gap.end_ns - gap.begin_ns),
                                      ": in its middle the bound of this edge is ", bound)});
    }
  }

  void ReportEdge(size_t i) {
    const EdgeFit& fit = fits_[i];
    const auto& knots = fit.corridor.map.knots();
    const int64_t begin = knots.empty() ? 0 : knots.front().x;
    const int64_t end = knots.empty() ? 0 : knots.back().x;
    const auto add = [&](ClockEvent::Kind kind, std::string text) {
      events_.push_back({kind, EdgeName(i), begin, end, std::move(text)});
      if (kind == ClockEvent::Kind::kInfeasible) {
        events_.back().cause = ClockEvent::Cause::kFalseStamps;
        events_.back().evidence = {EdgeName(i)};
      }
    };
    if (knots.empty()) {
      add(ClockEvent::Kind::kNoSamples, "no usable samples");
    } else if (fit.samples > 0 && fit.samples < kSamplesFew) {
      add(ClockEvent::Kind::kNoSamples, absl::StrCat("only ", fit.samples, " samples"));
    }
    if (fit.unusable > 0) {
      add(ClockEvent::Kind::kGap,
          absl::StrCat(
              fit.unusable,
              " samples without a whole direction, or from before a reboot, were left out"));
    }
    if (fit.impossible > 0) {
      add(ClockEvent::Kind::kInfeasible,
          absl::StrCat(fit.impossible,
                       " samples whose own times contradict each other were left out"));
    }
    if (fit.corridor.contradicting > 0) {
      add(ClockEvent::Kind::kInfeasible,
          absl::StrCat(fit.corridor.contradicting,
                       " stamps that contradict all others around them were left out"));
    }
    if (fit.corridor.gave_up) {
      add(ClockEvent::Kind::kInfeasible,
          "these samples contradict each other all over; only the longest stretch that fits is "
          "used");
    }
  }

  void Place() {
    data_->grid = PlaceClocks(data_->graph, {.reference = data_->reference,
                                             .rate_ppb_max = options_.rate_ppb_max,
                                             .wander_ppb_per_s = options_.wander_ppb_per_s,
                                             .rate_varies = options_.wall_clocks,
                                             .breaks = breaks_});
  }

  void PlaceNodes() {
    Place();
    Reconciliation agreed = ReconcileLoops(data_->reference, data_->grid, &data_->graph);
    if (!agreed.loops.empty()) {
      for (const ContradictingLoop& loop : agreed.loops) ReportLoop(loop);
      Place();
      agreed.bounds = data_->graph.BoundsTo(data_->reference, data_->grid);
    }
    const Grid& grid = data_->grid;
    const std::vector<RootBounds>& bounds = agreed.bounds;
    for (uint32_t node = 0; node < data_->names.size(); ++node) {
      NodeClocks& its = data_->clocks[node];
      if (node == data_->reference) {
        its.timeline = BoundedMap({{options_.zero_reference_raw_ns, 0, 0, 0}}, 0);
        its.rate_slack_ppb = 0;
        continue;
      }
      if (bounds[node].lo.empty()) {
        events_.push_back(
            {ClockEvent::Kind::kNoSamples, data_->names[node], 0, 0,
             "no samples lead from this node to the reference: it is placed by its wall "
             "clock, and nothing across nodes is claimed"});
        continue;
      }
      bool infeasible = false;
      BoundedMap map =
          MapOnGrid(bounds[node], grid.x[node], grid.x[data_->reference], grid, &infeasible);
      if (infeasible) map = NothingClaimed(node, map);
      its.timeline = Shifted(map, -options_.zero_reference_raw_ns);
      its.rate_slack_ppb = RateSlack(node, its.timeline);
    }
  }

  void ReportLoop(const ContradictingLoop& loop) {
    ClockEvent event{.kind = ClockEvent::Kind::kInfeasible, .cause = ClockEvent::Cause::kLoop};
    event.node = EdgeName(loop.suspects.front());
    const std::vector<int64_t>& x = data_->grid.x[vertices_.at(edges_[loop.suspects[0]].local)];
    event.begin_ns = x[loop.first_instant];
    event.end_ns = x[loop.last_instant];
    for (uint32_t edge : loop.edges) event.evidence.push_back(EdgeName(edge));
    std::vector<std::string> suspects;
    for (uint32_t edge : loop.suspects) suspects.push_back(EdgeName(edge));
    event.text = absl::StrCat("the loop ", absl::StrJoin(event.evidence, ", "),
                              " does not close, by ", DurationText(loop.short_ns), " at least: ");
    if (loop.suspects.size() == 1) {
      absl::StrAppend(&event.text, "all other loops agree without ", suspects[0],
                      ", so its stamps are false, and it is left out");
    } else {
      absl::StrAppend(&event.text, "one of ", absl::StrJoin(suspects, ", "),
                      " is false, nothing tells which; the interval covers what each says");
      event.between = std::move(suspects);
    }
    events_.push_back(std::move(event));
  }

  // So much contradicts itself that no edge may be believed.
  BoundedMap NothingClaimed(uint32_t node, const BoundedMap& map) {
    std::vector<BoundedMap::Knot> knots = map.knots();
    for (BoundedMap::Knot& knot : knots) knot.lo = kUnknownLo, knot.hi = kUnknownHi;
    events_.push_back({.kind = ClockEvent::Kind::kInfeasible,
                       .node = data_->names[node],
                       .begin_ns = knots.front().x,
                       .end_ns = knots.back().x,
                       .text = "the paths to this node contradict each other all over; nothing is "
                               "claimed of it",
                       .cause = ClockEvent::Cause::kLoop});
    return BoundedMap(std::move(knots), map.rate_ppb_outside());
  }

  // Edges whose samples begin long after, or end long before, those of the others.
  void ReportSilences() {
    std::vector<Interval> sampled(qualities_.size());
    Interval all{kUnknownHi, kUnknownLo};
    for (size_t i = 0; i < qualities_.size(); ++i) {
      if (qualities_[i].begin_local_ns > qualities_[i].end_local_ns) continue;
      const uint32_t local = vertices_.at(qualities_[i].local);
      const auto begin = OnTimeline(local, qualities_[i].begin_local_ns);
      const auto end = OnTimeline(local, qualities_[i].end_local_ns);
      if (!begin || !end) continue;
      sampled[i] = {begin->ns, end->ns};
      all = {std::min(all.lo, begin->ns), std::max(all.hi, end->ns)};
    }
    for (size_t i = 0; i < qualities_.size(); ++i) {
      if (IsUnknown(sampled[i].lo)) continue;
      const auto tell = [&](int64_t begin_ns, int64_t length_ns, const char* which) {
        if (length_ns < kSilenceNsMin) return;
        events_.push_back(
            {ClockEvent::Kind::kGap, EdgeName(i), begin_ns, begin_ns + length_ns,
             absl::StrCat("no samples for the ", which, " ", DurationText(length_ns),
                          ": other paths, which are wider, have to do, or the bound grows by ",
                          options_.rate_ppb_max / 1000, " ppm of the time")});
      };
      const int64_t missing_ns = sampled[i].lo - all.lo;
      tell(qualities_[i].begin_local_ns - missing_ns, missing_ns, "first");
      tell(qualities_[i].end_local_ns, all.hi - sampled[i].hi, "last");
    }
  }

  // Where an event stands on the timeline, by estimate; and where the timeline's zero stands.
  void PlaceEvents() {
    for (EdgeQuality& quality : qualities_) {
      const int64_t first = quality.corridor.empty() ? 0 : quality.corridor.knots().front().x;
      const auto at_first = OnTimeline(vertices_.at(quality.local), first);
      quality.zero_local_ns = at_first ? SaturatingAdd(first, -at_first->ns) : first;
    }
    ReportSilences();
    for (ClockEvent& event : events_) {
      const std::string local = event.node.substr(0, event.node.find("--"));
      const auto vertex = vertices_.find(vertices_.contains(event.node) ? event.node : local);
      if (vertex == vertices_.end() || event.end_ns == 0) continue;
      event.begin = OnTimeline(vertex->second, event.begin_ns);
      event.end = OnTimeline(vertex->second, event.end_ns);
    }
  }

  std::optional<TimelineTime> OnTimeline(uint32_t vertex, int64_t raw_ns) const {
    const Grid& grid = data_->grid;
    if (vertex == data_->reference) return TimelineTime{raw_ns - options_.zero_reference_raw_ns};
    if (vertex >= grid.x.size() || grid.x[vertex].empty()) return std::nullopt;
    std::vector<FastMap::Point> points;
    for (size_t k = 0; k < grid.x[vertex].size(); ++k) {
      points.push_back({grid.x[vertex][k], grid.x[data_->reference][k]});
    }
    return TimelineTime{SaturatingAdd(FastMap(points).At(raw_ns), -options_.zero_reference_raw_ns)};
  }

  std::string Name(uint32_t vertex) const { return data_->VertexName(vertex); }

  // How far the estimate's rate may be from the truth's, ppb: from the interval over growing spans
  // (mean value theorem), where no break is near.
  int64_t RateSlack(uint32_t node, const BoundedMap& map) const {
    for (uint32_t vertex : {node, data_->reference}) {
      for (uint32_t edge : data_->graph.EdgesOf(vertex)) {
        if (!breaks_[edge].empty()) return -1;
      }
    }
    const auto& knots = map.knots();
    int64_t worst = 0;
    for (size_t k = 0; k + 1 < knots.size(); ++k) {
      const auto rate = [](Int128 dy, Int128 dx) { return (dy - dx) * kBillion / dx; };
      const Int128 est = rate(Int128{knots[k + 1].est} - knots[k].est, knots[k + 1].x - knots[k].x);
      Int128 slack = options_.rate_ppb_max + (est < 0 ? -est : est) + 1;
      for (size_t m = 0; m < 2 * knots.size() && !options_.wall_clocks; m = 2 * m + 1) {
        const BoundedMap::Knot& a = knots[k > m ? k - m : 0];
        const BoundedMap::Knot& b = knots[std::min(k + 1 + m, knots.size() - 1)];
        if (a.lo == kUnknownLo || a.hi == kUnknownHi) break;
        const Int128 dx = Int128{b.x} - a.x;
        const Int128 bend = dx * options_.wander_ppb_per_s / kBillion + 1;
        const Int128 most = rate(Int128{b.hi} - a.lo, dx) + bend;
        const Int128 least = rate(Int128{b.lo} - a.hi, dx) - bend;
        slack = std::min(slack, std::max(most - est, est - least) + 1);
      }
      worst = std::max(worst, static_cast<int64_t>(std::min<Int128>(slack, kBillion / 2)));
    }
    return worst;
  }

  const BuildInput& input_;
  const BuildOptions& options_;
  std::unique_ptr<ModelAssembler::Data> data_;
  std::unordered_map<std::string, uint32_t> vertices_;
  std::vector<Sleep> sleeps_;
  std::vector<Edge> edges_;  // of the graph, without samples: those probed, then causal ones
  size_t probed_ = 0;
  std::unordered_map<uint64_t, size_t> edge_of_;  // Key() -> the first such edge
  std::vector<EdgeFit> fits_;
  std::vector<std::vector<Break>> breaks_;  // per edge of the graph
  std::vector<EdgeQuality> qualities_;
  std::vector<ClockEvent> events_;
};

}  // namespace

absl::StatusOr<BuildResult> BuildModel(const BuildInput& input, const BuildOptions& options) {
  if (options.rate_ppb_max <= 0 || options.rate_ppb_max > 100'000'000 ||
      options.wander_ppb_per_s < 0) {
    return absl::InvalidArgumentError(
        "the rate bound must be in (0, 10 %], the wander bound not negative");
  }
  return Builder(input, options).Build();
}

}  // namespace syncline::clocksync
