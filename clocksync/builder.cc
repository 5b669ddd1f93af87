#include "clocksync/builder.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "clocksync/arithmetic.h"
#include "clocksync/corridor.h"
#include "clocksync/graph.h"
#include "clocksync/host_chain.h"
#include "clocksync/model_data.h"
#include "clocksync/placement.h"
#include "common/status.h"

namespace syncline::clocksync {
namespace {

constexpr size_t kSamplesFew = 3;
constexpr int64_t kStampMax = int64_t{1} << 59;  // 18 years of uptime: more is not a RAW clock

struct EdgeFit {
  Constraints constraints;
  Corridor corridor;
  size_t samples = 0;
  size_t unusable = 0;    // nothing in it, or from before the clock went back
  size_t impossible = 0;  // its own times contradict each other
  int64_t round_trip_min_ns = kUnknownHi;
  std::array<uint64_t, kStampSources> samples_by_source{};
};

// Both clocks only go forward; where the local one goes back (a reboot), the longest stretch
// counts.
std::span<const ProbeSample> LongestForwardRun(const std::vector<ProbeSample>& samples) {
  const auto begin_of = [](const ProbeSample& s) {
    return s.t1_local_ns ? s.t1_local_ns : s.t4_local_ns;
  };
  constexpr int64_t kReorderNs = 10 * kBillion;  // answers may overtake one another a little
  size_t first = 0, best = 0, best_size = 0;
  for (size_t i = 1; i <= samples.size(); ++i) {
    if (i < samples.size() && begin_of(samples[i]) > begin_of(samples[i - 1]) - kReorderNs)
      continue;
    if (i - first > best_size) best = first, best_size = i - first;
    first = i;
  }
  return std::span(samples).subspan(best, best_size);
}

EdgeFit CollectEdge(const Edge& edge) {
  EdgeFit fit;
  const auto run = LongestForwardRun(edge.samples);
  fit.unusable = edge.samples.size() - run.size();
  for (const ProbeSample& s : run) {
    const bool out = s.t1_local_ns != 0 && s.t2_remote_ns != 0;
    const bool back = s.t3_remote_ns != 0 && s.t4_local_ns != 0;
    const bool whole = out && back;
    const bool sane = std::abs(s.t1_local_ns) < kStampMax && std::abs(s.t2_remote_ns) < kStampMax &&
                      std::abs(s.t3_remote_ns) < kStampMax && std::abs(s.t4_local_ns) < kStampMax;
    if ((!out && !back) || !sane) {
      ++fit.unusable;
      continue;
    }
    // An answer that took longer than the whole exchange: a stamp is false, or a clock jumped in
    // between.
    const int64_t away = SaturatingAdd(s.t4_local_ns, -s.t1_local_ns);
    const int64_t there = SaturatingAdd(s.t3_remote_ns, -s.t2_remote_ns);
    if (whole && (away < 0 || there < 0 || there - away > 1'000 + away / 1'000)) {
      ++fit.impossible;
      continue;
    }
    ++fit.samples;
    ++fit.samples_by_source[static_cast<size_t>(s.source)];
    if (out) fit.constraints.upper.push_back({s.t1_local_ns, s.t2_remote_ns});
    if (back) fit.constraints.lower.push_back({s.t4_local_ns, s.t3_remote_ns});
    if (whole) {
      fit.round_trip_min_ns =
          std::min(fit.round_trip_min_ns,
                   (s.t4_local_ns - s.t1_local_ns) - (s.t3_remote_ns - s.t2_remote_ns));
    }
  }
  return fit;
}

EdgeQuality QualityOf(const Edge& edge, const EdgeFit& fit) {
  const auto& by_source = fit.samples_by_source;
  const auto commonest = std::max_element(by_source.begin(), by_source.end());
  EdgeQuality quality{.local = edge.local,
                      .remote = edge.remote,
                      .source = static_cast<StampSource>(commonest - by_source.begin()),
                      .samples = fit.samples,
                      .samples_by_source = by_source};
  if (fit.round_trip_min_ns != kUnknownHi) quality.round_trip_min_ns = fit.round_trip_min_ns;
  const auto& knots = fit.corridor.map.knots();
  if (knots.empty()) return quality;
  std::vector<int64_t> bounds;
  for (const BoundedMap::Knot& knot : knots) {
    const bool known = knot.lo != kUnknownLo && knot.hi != kUnknownHi;
    bounds.push_back(known ? std::max(knot.hi - knot.est, knot.est - knot.lo) : kUnknownHi);
  }
  std::sort(bounds.begin(), bounds.end());
  quality.bound_median_ns = bounds[bounds.size() / 2];
  quality.bound_worst_ns = bounds.back();
  const BoundedMap::Knot& middle = knots[knots.size() / 2];
  quality.offset_ns = middle.est - middle.x;
  const BoundedMap::Knot& a = knots.front();
  const BoundedMap::Knot& b = knots.back();
  if (b.x > a.x) {
    const Int128 theta = (Int128{b.est} - a.est) - (Int128{b.x} - a.x);
    quality.drift_ppb = static_cast<int64_t>(theta * kBillion / (b.x - a.x));
  }
  return quality;
}

class Builder {
 public:
  Builder(const BuildInput& input, const BuildOptions& options)
      : input_(input), options_(options), data_(std::make_unique<ModelAssembler::Data>()) {}

  absl::StatusOr<BuildResult> Build() {
    SYNCLINE_RETURN_IF_ERROR(NameVertices());
    SYNCLINE_RETURN_IF_ERROR(FitHosts());
    SYNCLINE_RETURN_IF_ERROR(FitEdges());
    PlaceNodes();
    const int64_t wall =
        RealtimeOfRaw(data_->clocks[data_->reference].host.realtime, options_.zero_reference_raw_ns)
            .est;
    data_->epoch_unix_ns = wall;
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
    for (const HostClocks& host : input_.hosts) {
      const auto vertex = vertices_.find(host.node);
      if (vertex == vertices_.end() && host.node != "coordinator") {
        return absl::InvalidArgumentError(
            absl::StrCat("clock readings of \"", host.node, "\", which is not in the recording"));
      }
      if (vertex == vertices_.end() || vertex->second >= data_->names.size()) continue;
      HostFit fit = FitHostClocks(host);
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

  // A happened before B: when A's clock read a, B's had not passed b.
  void AddCausalPairs(std::vector<Edge>* edges, std::vector<EdgeFit>* fits) const {
    std::unordered_map<uint64_t, size_t> edge_of;
    const auto key = [](uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; };
    for (size_t i = 0; i < edges->size(); ++i) {
      edge_of.emplace(key(vertices_.at((*edges)[i].local), vertices_.at((*edges)[i].remote)), i);
    }
    for (const CausalPair& pair : input_.causal) {
      const uint32_t a = pair.before.clock.node, b = pair.after.clock.node;
      const Bounds before = RawOf(pair.before), after = RawOf(pair.after);
      if (a == b || before.lo <= -kStampMax || after.hi >= kStampMax) continue;
      if (before.lo >= kStampMax || after.hi <= -kStampMax) continue;
      if (const auto reverse = edge_of.find(key(b, a)); reverse != edge_of.end()) {
        (*fits)[reverse->second].constraints.lower.push_back({after.hi, before.lo});
        continue;
      }
      const auto [found, is_new] = edge_of.emplace(key(a, b), edges->size());
      if (is_new) {
        edges->push_back({.local = data_->names[a], .remote = data_->names[b]});
        fits->emplace_back();
      }
      (*fits)[found->second].constraints.upper.push_back({before.lo, after.hi});
    }
  }

  absl::Status FitEdges() {
    std::vector<Edge> edges;
    std::vector<EdgeFit> fits;
    for (const Edge& edge : input_.edges) {
      edges.push_back({.local = edge.local, .remote = edge.remote});
      fits.push_back(CollectEdge(edge));
    }
    AddCausalPairs(&edges, &fits);
    std::vector<GraphEdge> graph_edges;
    for (size_t i = 0; i < edges.size(); ++i) {
      EdgeFit& fit = fits[i];
      fit.corridor = FitCorridor(fit.constraints, {.rate_ppb_max = options_.rate_ppb_max,
                                                   .wander_ppb_per_s = options_.wander_ppb_per_s});
      Report(edges[i], fit);
      if (i < input_.edges.size()) qualities_.push_back(QualityOf(edges[i], fit));
      breaks_.push_back(fit.corridor.breaks);
      graph_edges.push_back({vertices_.at(edges[i].local), vertices_.at(edges[i].remote),
                             std::move(fit.corridor.map)});
      fit.constraints = {};
    }
    const auto vertices = static_cast<uint32_t>(data_->names.size() + data_->hubs.size());
    data_->graph = ClockGraph(vertices, std::move(graph_edges));
    return absl::OkStatus();
  }

  void Report(const Edge& edge, const EdgeFit& fit) {
    const std::string name = absl::StrCat(edge.local, "--", edge.remote);
    const auto add = [&](ClockEvent::Kind kind, int64_t begin, int64_t end, std::string text) {
      events_.push_back({kind, name, begin, end, std::move(text)});
    };
    const auto& knots = fit.corridor.map.knots();
    const int64_t begin = knots.empty() ? 0 : knots.front().x;
    const int64_t end = knots.empty() ? 0 : knots.back().x;
    if (knots.empty()) {
      add(ClockEvent::Kind::kNoSamples, 0, 0, "no usable samples");
    } else if (fit.samples > 0 && fit.samples < kSamplesFew) {
      add(ClockEvent::Kind::kNoSamples, begin, end, absl::StrCat("only ", fit.samples, " samples"));
    }
    if (fit.unusable > 0) {
      add(ClockEvent::Kind::kGap, begin, end,
          absl::StrCat(
              fit.unusable,
              " samples without a whole direction, or from before a reboot, were left out"));
    }
    if (fit.impossible > 0) {
      add(ClockEvent::Kind::kInfeasible, begin, end,
          absl::StrCat(fit.impossible,
                       " samples whose own times contradict each other were left out"));
    }
    if (fit.corridor.contradicting > 0) {
      add(ClockEvent::Kind::kInfeasible, begin, end,
          absl::StrCat(fit.corridor.contradicting,
                       " stamps that contradict all others around them were left out"));
    }
    if (fit.corridor.gave_up) {
      add(ClockEvent::Kind::kInfeasible, begin, end,
          "these samples contradict each other all over; only the longest stretch that fits is "
          "used");
    }
    for (const Break& gap : fit.corridor.breaks) {
      add(ClockEvent::Kind::kInfeasible, gap.begin_ns, gap.end_ns,
          absl::StrCat(
              "no pair of clocks that keeps to rate ", options_.rate_ppb_max, " ppb and wander ",
              options_.wander_ppb_per_s,
              " ppb/s explains the samples: the offset changed by about ", gap.step_ns,
              " ns (a step, suspend or migration)",
              gap.backwards ? "; a clock went back, only the longer stretch is used" : ""));
    }
  }

  void PlaceNodes() {
    data_->grid = PlaceClocks(data_->graph, {.reference = data_->reference,
                                             .rate_ppb_max = options_.rate_ppb_max,
                                             .wander_ppb_per_s = options_.wander_ppb_per_s,
                                             .breaks = breaks_});
    const Grid& grid = data_->grid;
    const std::vector<RootBounds> bounds = data_->graph.BoundsTo(data_->reference, grid);
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
      if (infeasible) map = Loosest(node, bounds);
      its.timeline = Shifted(map);
      its.rate_slack_ppb = RateSlack(node, its.timeline);
    }
  }

  // The edges of this node contradict each other: some assumption broke, we cannot know which. The
  // interval that holds whichever is right.
  BoundedMap Loosest(uint32_t node, const std::vector<RootBounds>& bounds) {
    const Grid& grid = data_->grid;
    RootBounds loosest = bounds[node];
    size_t first = grid.size(), last = 0;
    for (size_t k = 0; k < loosest.lo.size(); ++k) {
      if (loosest.lo[k] > loosest.hi[k]) first = std::min(first, k), last = k;
    }
    std::string names;
    for (uint32_t edge : data_->graph.EdgesOf(node)) {
      const uint32_t other = data_->graph.OtherEnd(edge, node);
      absl::StrAppend(&names, names.empty() ? "" : ", ", Name(node), "--", Name(other));
      std::vector<bool> only(data_->graph.vertex_count(), true);
      ClockGraph alone(data_->graph.vertex_count(), WithoutOtherEdges(node, edge));
      const std::vector<RootBounds> one = alone.BoundsTo(data_->reference, grid);
      for (size_t k = 0; k < one[node].lo.size(); ++k) {
        loosest.lo[k] = std::min({loosest.lo[k], one[node].lo[k], one[node].hi[k]});
        loosest.hi[k] = std::max({loosest.hi[k], one[node].hi[k], one[node].lo[k]});
      }
    }
    const std::vector<int64_t>& x = grid.x[node];
    events_.push_back({ClockEvent::Kind::kInfeasible, data_->names[node],
                       first < x.size() ? x[first] : 0, last < x.size() ? x[last] : 0,
                       absl::StrCat("the paths over ", names,
                                    " contradict each other; the interval covers what each says")});
    bool infeasible = false;
    return MapOnGrid(loosest, x, grid.x[data_->reference], grid, &infeasible);
  }

  std::vector<GraphEdge> WithoutOtherEdges(uint32_t node, uint32_t keep) const {
    std::vector<GraphEdge> edges;
    for (uint32_t i = 0; i < data_->graph.edges().size(); ++i) {
      const GraphEdge& edge = data_->graph.edges()[i];
      if (i == keep || (edge.local != node && edge.remote != node)) edges.push_back(edge);
    }
    return edges;
  }

  std::string Name(uint32_t vertex) const {
    return vertex < data_->names.size() ? data_->names[vertex]
                                        : data_->hubs[vertex - data_->names.size()];
  }

  BoundedMap Shifted(const BoundedMap& map) const {
    std::vector<BoundedMap::Knot> knots = map.knots();
    for (BoundedMap::Knot& knot : knots) {
      knot.lo = SaturatingAdd(knot.lo, -options_.zero_reference_raw_ns);
      knot.est -= options_.zero_reference_raw_ns;
      knot.hi = SaturatingAdd(knot.hi, -options_.zero_reference_raw_ns);
    }
    return BoundedMap(std::move(knots), map.rate_ppb_outside());
  }

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
      for (size_t m = 0; m < 2 * knots.size(); m = 2 * m + 1) {
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
