#include "tests/sim/scenarios.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace syncline::sim {
namespace {

using clocksync::ClockEvent;
using clocksync::ProbeSample;

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

LinkSpec Link(uint32_t local, uint32_t remote, int64_t min_ns = 20'000, int64_t jitter_ns = 5'000,
              Jitter jitter = Jitter::kExponential) {
  LinkSpec link{.local = local, .remote = remote};
  link.out = link.back = {min_ns, jitter_ns, jitter};
  return link;
}

// Two hosts that probe each other, 20 us apart.
Scenario Pair(Random* random) {
  Scenario s;
  s.hosts = {SomeHost("master-0", random), SomeHost("worker-0", random)};
  s.links = {Link(0, 1)};
  s.bound_median_max_ns = 26'000;
  s.error_median_max_ns = 4'000;
  s.quiet = true;
  return s;
}

// Every node probed by the coordinator, which is no node.
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

int64_t RoundTrip(const ProbeSample& s) {
  return (s.t4_local_ns - s.t1_local_ns) - (s.t3_remote_ns - s.t2_remote_ns);
}

std::vector<int64_t> RoundTrips(const World& world, size_t edge) {
  std::vector<int64_t> trips;
  for (const ProbeSample& s : world.edges[edge].samples) {
    if (s.t4_local_ns != 0) trips.push_back(RoundTrip(s));
  }
  std::sort(trips.begin(), trips.end());
  return trips;
}

void AddDelays(std::vector<NamedScenario>* all) {
  all->push_back({"quiet_pair", [](Random* r) { return Pair(r); }});
  all->push_back({"loopback", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links = {Link(0, 1, 90, 15)};
                    s.bound_median_max_ns = 140;
                    s.error_median_max_ns = 40;
                    return s;
                  }});
  all->push_back({"no_jitter", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links = {Link(0, 1, 20'000, 0, Jitter::kNone)};
                    s.bound_median_max_ns = 20'200;
                    s.error_median_max_ns = 100;
                    return s;
                  }});
  all->push_back({"uniform_jitter", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links = {Link(0, 1, 20'000, 40'000, Jitter::kUniform)};
                    s.bound_median_max_ns = 30'000;
                    return s;
                  }});
  all->push_back({"heavy_tail", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links = {Link(0, 1, 20'000, 10'000, Jitter::kHeavyTail)};
                    s.bound_median_max_ns = 30'000;
                    s.occurred = [](const World& w) {
                      const auto trips = RoundTrips(w, 0);
                      return trips.back() > 10 * trips[trips.size() / 2];
                    };
                    return s;
                  }});
  all->push_back({"bursts_of_congestion", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links = {Link(0, 1, 20'000, 5'000, Jitter::kBursts)};
                    s.bound_median_max_ns = 30'000;
                    s.occurred = [](const World& w) { return RoundTrips(w, 0).back() > 500'000; };
                    return s;
                  }});
  all->push_back({"asymmetric_60_40", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].out.min_ns = 60'000;
                    s.links[0].back.min_ns = 40'000;
                    s.bound_median_max_ns = 60'000;
                    s.error_median_max_ns = 14'000;
                    return s;
                  }});
  // The truth lies at the very end of the interval: halving it must be noticed.
  all->push_back({"all_delay_out", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].out = {50'000, 2'000, Jitter::kExponential};
                    s.links[0].back = {0, 0, Jitter::kNone};
                    s.bound_median_max_ns = 27'000;
                    s.error_median_max_ns = 27'000;
                    return s;
                  }});
  all->push_back({"all_delay_back", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].back = {50'000, 2'000, Jitter::kExponential};
                    s.links[0].out = {0, 0, Jitter::kNone};
                    s.bound_median_max_ns = 27'000;
                    s.error_median_max_ns = 27'000;
                    return s;
                  }});
  all->push_back({"route_change", [](Random* r) {
                    Scenario s = Pair(r);
                    for (DelaySpec* d : {&s.links[0].out, &s.links[0].back}) {
                      d->change_at_ns = 6 * kSecond;
                      d->min_after_ns = 90'000;
                    }
                    s.bound_median_max_ns = 100'000;
                    s.error_median_max_ns = 30'000;
                    return s;
                  }});
  all->push_back({"route_change_one_way", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].out.change_at_ns = 6 * kSecond;
                    s.links[0].out.min_after_ns = 90'000;
                    s.bound_median_max_ns = 60'000;
                    s.error_median_max_ns = 60'000;
                    return s;
                  }});
  all->push_back({"wide_area", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links = {Link(0, 1, 20 * kMs, 2 * kMs)};
                    s.bound_median_max_ns = 22 * kMs;
                    s.error_median_max_ns = 2 * kMs;
                    return s;
                  }});
}

void AddClocks(std::vector<NamedScenario>* all) {
  all->push_back({"drift_100_ppm", [](Random* r) {
                    Scenario s = Pair(r);
                    s.hosts[0].raw.drift_ppm = 0;
                    s.hosts[1].raw.drift_ppm = 100;
                    s.occurred = [](const World& w) {
                      const auto gained = [&](int64_t t) {
                        return w.hosts[1].Raw(t) - w.hosts[0].Raw(t);
                      };
                      return gained(10 * kSecond) - gained(0) > 900'000;
                    };
                    return s;
                  }});
  all->push_back({"drift_to_the_limit", [](Random* r) {
                    Scenario s = Pair(r);
                    s.hosts[0].raw.drift_ppm = -99;
                    s.hosts[1].raw.drift_ppm = 99;
                    return s;
                  }});
  // A straight line over the whole time would be off by microseconds.
  all->push_back(
      {"wander", [](Random* r) {
         Scenario s = Pair(r);
         s.length_ns = 60 * kSecond;
         s.links = {Link(0, 1, 90, 15)};
         for (HostSpec& host : s.hosts) host.raw.sine_ppm = 0.15, host.raw.sine_period_s = 240;
         s.hosts[0].raw.sine_phase = 0, s.hosts[1].raw.sine_phase = std::numbers::pi;
         s.bound_median_max_ns = 140;
         s.error_median_max_ns = 40;
         s.occurred = [](const World& w) {
           const auto theta = [&](int64_t t) { return w.hosts[1].Raw(t) - w.hosts[0].Raw(t); };
           const int64_t bend = theta(30 * kSecond) - (theta(0) + theta(60 * kSecond)) / 2;
           return std::abs(bend) > 1'000;
         };
         return s;
       }});
  all->push_back({"random_walk", [](Random* r) {
                    Scenario s = Pair(r);
                    s.length_ns = 40 * kSecond;
                    s.links = {Link(0, 1, 90, 15)};
                    for (HostSpec& host : s.hosts)
                      host.raw.sine_ppm = 0, host.raw.walk_ppb_per_s = 5;
                    s.bound_median_max_ns = 140;
                    s.error_median_max_ns = 40;
                    return s;
                  }});
  all->push_back({"temperature_ramp", [](Random* r) {
                    Scenario s = Pair(r);
                    s.length_ns = 60 * kSecond;
                    s.links = {Link(0, 1, 90, 15)};
                    s.hosts[1].raw.sine_ppm = s.hosts[0].raw.sine_ppm = 0;
                    s.hosts[1].raw.ramp_ppb_per_s = 9;
                    s.bound_median_max_ns = 140;
                    s.error_median_max_ns = 40;
                    return s;
                  }});
  // MONOTONIC is what the events carry; NTP bends it.
  all->push_back({"ntp_slew_500_ppm", [](Random* r) {
                    Scenario s = Pair(r);
                    s.hosts[1].slews = {{4 * kSecond + 37 * kMs, 500},
                                        {7 * kSecond + 11 * kMs, -500},
                                        {9 * kSecond, 0}};
                    s.reported = {ClockEvent::Kind::kSlew};
                    s.occurred = [](const World& w) {
                      const auto ahead = [&](int64_t t) {
                        return w.hosts[1].Monotonic(t) - w.hosts[1].Raw(t);
                      };
                      return ahead(7 * kSecond) - ahead(4 * kSecond) > kMs;
                    };
                    return s;
                  }});
  all->push_back(
      {"chrony_slew_83333_ppm", [](Random* r) {
         Scenario s = Pair(r);
         s.hosts[0].slews = {{5 * kSecond + 55 * kMs, 83'333}, {6 * kSecond + 55 * kMs, 0}};
         s.reported = {ClockEvent::Kind::kSlew};
         return s;
       }});
  all->push_back({"slew_that_adjtimex_hides", [](Random* r) {
                    Scenario s = Pair(r);
                    s.hosts[1].slews = {{5 * kSecond + 23 * kMs, 500, false},
                                        {7 * kSecond + 71 * kMs, 0, false}};
                    return s;
                  }});
  for (const auto& [name, by] : {std::pair{"wall_step_forward", int64_t{3'600} * kSecond},
                                 std::pair{"wall_step_backward", int64_t{-3'600} * kSecond},
                                 std::pair{"wall_step_small", 5 * kMs}}) {
    all->push_back({name, [by = by](Random* r) {
                      Scenario s = Pair(r);
                      s.hosts[1].wall_steps = {{6 * kSecond + 17 * kMs, by}};
                      s.reported = {ClockEvent::Kind::kStep};
                      return s;
                    }});
  }
}

bool HasGap(const World& w, size_t edge, int64_t at_least_ns) {
  const auto& samples = w.edges[edge].samples;
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].t1_local_ns - samples[i - 1].t1_local_ns >= at_least_ns) return true;
  }
  return false;
}

// A link whose assumptions break: everything must be told, and nothing claimed wrongly.
void AddBreaks(std::vector<NamedScenario>* all) {
  for (const auto& [name, by] : {std::pair{"migration_forward", 2 * kMs},
                                 std::pair{"migration_forward_far", 3'600 * kSecond},
                                 std::pair{"migration_back_a_little", -30 * kMs}}) {
    all->push_back({name, [by = by](Random* r) {
                      Scenario s = Pair(r);
                      s.hosts[1].raw.steps = {{6 * kSecond + 130 * kMs, by}};
                      s.links[0].every_ns = 200 * kMs;
                      s.bound_median_max_ns = 40'000;
                      s.error_median_max_ns = 0;
                      s.reported = {ClockEvent::Kind::kInfeasible};
                      s.quiet = false;
                      // A clock that goes back reads every instant of the jump twice: those are not
                      // asked.
                      if (by < 0)
                        s.ask = [](int64_t t) { return t < 5 * kSecond || t > 7 * kSecond; };
                      return s;
                    }});
  }
  all->push_back({"suspend", [](Random* r) {
                    Scenario s = Pair(r);
                    s.hosts[1].suspends = {{5 * kSecond, 2 * kSecond}};
                    s.bound_median_max_ns = 40'000;
                    s.reported = {ClockEvent::Kind::kInfeasible, ClockEvent::Kind::kSuspend};
                    s.quiet = false;
                    s.occurred = [](const World& w) { return HasGap(w, 0, kSecond); };
                    return s;
                  }});
  all->push_back({"suspend_of_the_reference", [](Random* r) {
                    Scenario s = Pair(r);
                    s.hosts[0].suspends = {{5 * kSecond, 2 * kSecond}};
                    s.bound_median_max_ns = 40'000;
                    s.reported = {ClockEvent::Kind::kInfeasible, ClockEvent::Kind::kSuspend};
                    s.quiet = false;
                    return s;
                  }});
  all->push_back({"one_of_four_migrates", [](Random* r) {
                    Scenario s = Star(4, r);
                    s.hosts[2].raw.steps = {{6 * kSecond + 130 * kMs, 5 * kMs}};
                    s.error_median_max_ns = 0;
                    s.reported = {ClockEvent::Kind::kInfeasible};
                    s.quiet = false;
                    return s;
                  }});
  all->push_back({"false_stamps", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].false_stamp = 0.02;
                    s.reported = {ClockEvent::Kind::kInfeasible};
                    s.quiet = false;
                    s.occurred = [](const World& w) { return RoundTrips(w, 0).front() < 0; };
                    return s;
                  }});
}

void AddSampling(std::vector<NamedScenario>* all) {
  all->push_back({"a_third_is_lost", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].loss = 0.33;
                    s.occurred = [](const World& w) {
                      return w.edges[0].samples.size() < 120 * 4 * 8 / 10;
                    };
                    return s;
                  }});
  all->push_back({"silence_of_five_seconds", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].quiet_from_ns = 4 * kSecond;
                    s.links[0].quiet_to_ns = 9 * kSecond;
                    s.occurred = [](const World& w) { return HasGap(w, 0, 4 * kSecond); };
                    return s;
                  }});
  all->push_back({"answers_mostly_lost", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].loss_out_only = 0.9;
                    s.bound_median_max_ns = 35'000;
                    s.error_median_max_ns = 12'000;
                    return s;
                  }});
  all->push_back({"one_way_only", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].loss_out_only = 1;
                    s.bound_median_max_ns = 0;
                    s.error_median_max_ns = 0;
                    s.occurred = [](const World& w) {
                      return !w.edges[0].samples.empty() && w.edges[0].samples[0].t4_local_ns == 0;
                    };
                    return s;
                  }});
  all->push_back({"duplicates", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].duplicates = 0.5;
                    return s;
                  }});
  all->push_back({"once_a_second", [](Random* r) {
                    Scenario s = Pair(r);
                    s.length_ns = 30 * kSecond;
                    s.links[0].every_ns = kSecond;
                    s.links[0].burst = 8;
                    return s;
                  }});
  all->push_back({"three_samples", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].exchanges_max = 3;
                    s.bound_median_max_ns = 3 * kMs;
                    s.error_median_max_ns = 2 * kMs;
                    return s;
                  }});
  all->push_back({"one_sample", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].exchanges_max = 1;
                    s.bound_median_max_ns = 3 * kMs;
                    s.error_median_max_ns = 2 * kMs;
                    s.reported = {ClockEvent::Kind::kNoSamples};
                    s.occurred = [](const World& w) { return w.edges[0].samples.size() == 1; };
                    return s;
                  }});
  all->push_back({"no_samples", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links[0].exchanges_max = 0;
                    s.bound_median_max_ns = 0;
                    s.error_median_max_ns = 0;
                    s.reported = {ClockEvent::Kind::kNoSamples};
                    return s;
                  }});
  all->push_back({"late_joiner", [](Random* r) {
                    Scenario s = Star(3, r);
                    s.links[2].begin_ns = 8 * kSecond;
                    return s;
                  }});
  all->push_back({"one_leaves_early", [](Random* r) {
                    Scenario s = Star(3, r);
                    s.links[1].end_ns = 6 * kSecond;
                    return s;
                  }});
}

void AddGraphs(std::vector<NamedScenario>* all) {
  all->push_back({"star_of_two", [](Random* r) { return Star(2, r); }});
  all->push_back({"star_of_eight", [](Random* r) { return Star(8, r); }});
  all->push_back({"ring", [](Random* r) {
                    Scenario s = Star(6, r);
                    s.hosts.pop_back();
                    s.links.clear();
                    for (uint32_t i = 0; i < 6; ++i) s.links.push_back(Link(i, (i + 1) % 6));
                    s.bound_median_max_ns = 80'000;
                    return s;
                  }});
  all->push_back({"hubs_are_nodes", [](Random* r) {
                    Scenario s = Star(8, r);
                    s.hosts.pop_back();
                    s.links.clear();
                    for (uint32_t hub = 6; hub < 8; ++hub) {
                      for (uint32_t leaf = 0; leaf < hub; ++leaf)
                        s.links.push_back(Link(hub, leaf));
                    }
                    return s;
                  }});
  all->push_back({"hub_dies", [](Random* r) {
                    Scenario s = Star(6, r);
                    s.hosts.pop_back();
                    s.links.clear();
                    for (uint32_t hub = 4; hub < 6; ++hub) {
                      for (uint32_t leaf = 0; leaf < 4; ++leaf) s.links.push_back(Link(hub, leaf));
                    }
                    for (size_t i = 4; i < 8; ++i) s.links[i].end_ns = 6 * kSecond;
                    s.links.push_back(Link(4, 5));
                    return s;
                  }});
  all->push_back({"two_islands", [](Random* r) {
                    Scenario s = Pair(r);
                    s.hosts.push_back(SomeHost("node-2", r));
                    s.hosts.push_back(SomeHost("node-3", r));
                    s.links = {Link(2, 3)};
                    s.bound_median_max_ns = 0;
                    s.error_median_max_ns = 0;
                    s.reported = {ClockEvent::Kind::kNoSamples};
                    return s;
                  }});
  all->push_back(
      {"messages_of_the_work_only", [](Random* r) {
         Scenario s = Pair(r);
         s.links.clear();
         s.bound_median_max_ns = 90'000;
         s.error_median_max_ns = 40'000;
         s.causal = [](const World& w, Random* random) {
           std::vector<CausalPair> pairs;
           for (int64_t t = 0; t < 12 * kSecond; t += 5 * kMs) {
             for (uint32_t from : {0u, 1u}) {
               const int64_t sent = t + static_cast<int64_t>(Between(0, 4e6, random));
               const int64_t got = sent + DrawDelay({40'000, 20'000}, sent, random);
               pairs.push_back(
                   {{{from, ClockKind::kMonotonic}, w.hosts[from].Monotonic(sent)},
                    {{1 - from, ClockKind::kMonotonic}, w.hosts[1 - from].Monotonic(got)}});
             }
           }
           return pairs;
         };
         return s;
       }});
  all->push_back(
      {"messages_tighten_probes", [](Random* r) {
         Scenario s = Pair(r);
         s.links = {Link(0, 1, 500'000, 50'000)};
         s.bound_median_max_ns = 60'000;
         s.error_median_max_ns = 30'000;
         s.causal = [](const World& w, Random* random) {
           std::vector<CausalPair> pairs;
           for (int64_t t = 0; t < 12 * kSecond; t += 10 * kMs) {
             for (uint32_t from : {0u, 1u}) {
               const int64_t sent = t + static_cast<int64_t>(Between(0, 9e6, random));
               const int64_t got = sent + DrawDelay({20'000, 20'000}, sent, random);
               pairs.push_back(
                   {{{from, ClockKind::kMonotonic}, w.hosts[from].Monotonic(sent)},
                    {{1 - from, ClockKind::kMonotonic}, w.hosts[1 - from].Monotonic(got)}});
             }
           }
           return pairs;
         };
         return s;
       }});
}

}  // namespace

const std::vector<NamedScenario>& Scenarios() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<NamedScenario>;
    AddDelays(all);
    AddClocks(all);
    AddBreaks(all);
    AddSampling(all);
    AddGraphs(all);
    return all;
  }();
  return *kAll;
}

}  // namespace syncline::sim
