// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenario_kit.h"

#include <algorithm>
#include <cstdlib>

namespace syncline::sim {
namespace {

int64_t RoundTrip(const clocksync::ProbeSample& s) {
  return (s.t4_local_ns - s.t1_local_ns) - (s.t3_remote_ns - s.t2_remote_ns);
}

}  // namespace

double Between(double lo, double hi, Random* random) {
  return std::uniform_real_distribution<>(lo, hi)(*random);
}

HostSpec SomeHost(const std::string& name, Random* random) {
  HostSpec host{.name = name};
  host.raw.offset_ns = static_cast<int64_t>(Between(1e12, 1e15, random));
  host.raw.drift_ppm = Between(-40, 40, random);
  host.raw.sine_ppm = 0.05;
  host.raw.sine_period_s = Between(100, 300, random);
  host.raw.sine_phase = Between(0, 6, random);
  host.monotonic_ahead_ns = static_cast<int64_t>(Between(-1e9, 1e9, random));
  host.wall_error_ns = static_cast<int64_t>(Between(-3e9, 3e9, random));
  return host;
}

LinkSpec Link(uint32_t local, uint32_t remote, int64_t min_ns, int64_t jitter_ns, Jitter jitter) {
  LinkSpec link{.local = local, .remote = remote};
  link.out = link.back = {min_ns, jitter_ns, jitter};
  return link;
}

Scenario Pair(Random* random) {
  Scenario s;
  s.hosts = {SomeHost("master-0", random), SomeHost("worker-0", random)};
  s.links = {Link(0, 1)};
  s.bound_median_max_ns = 26'000;
  s.error_median_max_ns = 4'000;
  s.quiet = true;
  return s;
}

Scenario Star(int nodes, Random* random) {
  Scenario s;
  for (int i = 0; i < nodes; ++i) s.hosts.push_back(SomeHost("node-" + std::to_string(i), random));
  s.hosts.push_back(SomeHost("coordinator", random));
  for (int i = 0; i < nodes; ++i) {
    s.links.push_back(Link(static_cast<uint32_t>(nodes), static_cast<uint32_t>(i)));
  }
  s.bound_median_max_ns = 52'000;
  s.error_median_max_ns = 6'000;
  s.quiet = true;
  return s;
}

std::vector<int64_t> RoundTrips(const World& world, size_t edge) {
  std::vector<int64_t> trips;
  for (const clocksync::ProbeSample& s : world.edges[edge].samples) {
    if (s.t4_local_ns != 0) trips.push_back(RoundTrip(s));
  }
  std::sort(trips.begin(), trips.end());
  return trips;
}

bool HasGap(const World& w, size_t edge, int64_t at_least_ns) {
  const auto& samples = w.edges[edge].samples;
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].t1_local_ns - samples[i - 1].t1_local_ns >= at_least_ns) return true;
  }
  return false;
}

void Add(std::vector<NamedScenario>* all, std::string name, std::function<Scenario(Random*)> make) {
  all->push_back({std::move(name), std::move(make)});
}

int64_t ShortestOut(const World& w, size_t edge, int64_t from_ns, int64_t to_ns) {
  int64_t least = kUnknownHi;
  for (const Flight& f : w.flights[edge]) {
    if (f.sent_ns >= from_ns && f.sent_ns < to_ns) least = std::min(least, f.out_ns);
  }
  return least;
}

int64_t ShortestBack(const World& w, size_t edge, int64_t from_ns, int64_t to_ns) {
  int64_t least = kUnknownHi;
  for (const Flight& f : w.flights[edge]) {
    if (f.sent_ns >= from_ns && f.sent_ns < to_ns) least = std::min(least, f.back_ns);
  }
  return least;
}

int64_t Gained(const World& w, uint32_t host, uint32_t on, int64_t from_ns, int64_t to_ns) {
  return (w.hosts[host].Raw(to_ns) - w.hosts[host].Raw(from_ns)) -
         (w.hosts[on].Raw(to_ns) - w.hosts[on].Raw(from_ns));
}

int64_t Bend(const World& w, uint32_t a, uint32_t b, int64_t from_ns, int64_t to_ns) {
  constexpr int kSteps = 64;
  const int64_t all = Gained(w, a, b, from_ns, to_ns);
  int64_t worst = 0;
  for (int i = 1; i < kSteps; ++i) {
    const int64_t until = from_ns + (to_ns - from_ns) / kSteps * i;
    worst = std::max(worst, std::abs(Gained(w, a, b, from_ns, until) - all * i / kSteps));
  }
  return worst;
}

size_t SamplesIn(const World& w, size_t edge, int64_t from_ns, int64_t to_ns) {
  return static_cast<size_t>(std::count_if(
      w.flights[edge].begin(), w.flights[edge].end(),
      [&](const Flight& f) { return f.arrived && f.sent_ns >= from_ns && f.sent_ns < to_ns; }));
}

Broken StepOf(const Scenario& s, uint32_t host, bool named) {
  const Step& step = s.hosts[host].raw.steps.front();
  return {host, step.at_ns, step.by_ns, named};
}

void Breaks(Scenario* s, const Broken& broken) {
  s->broken.push_back(broken);
  s->reported.push_back(clocksync::ClockEvent::Kind::kInfeasible);
  s->quiet = false;
  s->error_median_max_ns = 0;
  s->bound_median_max_ns = std::max<int64_t>(s->bound_median_max_ns, 60'000);
}

const std::vector<NamedScenario>& Scenarios() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<NamedScenario>;
    AddNetworkScenarios(all);
    AddClockScenarios(all);
    AddBreakScenarios(all);
    AddGraphScenarios(all);
    return all;
  }();
  return *kAll;
}

}  // namespace syncline::sim
