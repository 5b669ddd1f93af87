// SPDX-License-Identifier: Apache-2.0
#include "clocksync/edge_fit.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include "clocksync/arithmetic.h"

namespace syncline::clocksync {
namespace {

// Both clocks only go forward; where the local one goes back (a reboot), the longest stretch
// counts.
std::span<const ProbeSample> LongestForwardRun(const std::vector<ProbeSample>& samples) {
  constexpr int64_t kReorderNs = 10 * kBillion;  // answers may overtake one another a little
  // Seconds with samples, then samples: what is old is thinned (thinning.h).
  using Run = std::pair<size_t, size_t>;
  size_t first = 0, best = 0;
  Run run{1, 0}, longest{0, 0};
  for (size_t i = 1; i <= samples.size(); ++i) {
    ++run.second;
    if (i < samples.size() && samples[i].local_ns() > samples[i - 1].local_ns() - kReorderNs) {
      run.first += samples[i].local_ns() / kBillion != samples[i - 1].local_ns() / kBillion ? 1 : 0;
      continue;
    }
    if (run > longest) best = first, longest = run;
    run = {1, 0};
    first = i;
  }
  return std::span(samples).subspan(best, longest.second);
}

}  // namespace

EdgeFit CollectEdge(const Edge& edge) {
  EdgeFit fit{.samples_of_local = edge.samples.size()};
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
      fit.round_trip_min_ns = std::min(fit.round_trip_min_ns, s.round_trip_ns());
    }
  }
  return fit;
}

void AddAskedByRemote(const Edge& reverse, EdgeFit* fit) {
  const EdgeFit other = CollectEdge(reverse);
  // x(y_k) <= x_k is y(x_k) >= y_k, because both clocks only go forward.
  for (const Constraint& c : other.constraints.upper) {
    fit->constraints.lower.push_back({c.y, c.x});
  }
  for (const Constraint& c : other.constraints.lower) {
    fit->constraints.upper.push_back({c.y, c.x});
  }
  fit->samples += other.samples;
  fit->unusable += other.unusable;
  fit->impossible += other.impossible;
  fit->round_trip_min_ns = std::min(fit->round_trip_min_ns, other.round_trip_min_ns);
  for (size_t i = 0; i < kStampSources; ++i) {
    fit->samples_by_source[i] += other.samples_by_source[i];
  }
  fit->samples_of_remote += other.samples_of_local;
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
  quality.begin_local_ns = knots.front().x;
  quality.end_local_ns = knots.back().x;
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

}  // namespace syncline::clocksync
