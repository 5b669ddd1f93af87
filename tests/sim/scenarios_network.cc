// Scenarios of the network and of the sampling: delays, jitter, routes, losses, silence.
#include "tests/sim/scenario_kit.h"

namespace syncline::sim {
namespace {

using clocksync::ClockEvent;

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
                      return trips.back() > 5 * trips[trips.size() / 2];
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
}

void AddPaths(std::vector<NamedScenario>* all) {
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

void AddLosses(std::vector<NamedScenario>* all) {
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
}

void AddFewSamples(std::vector<NamedScenario>* all) {
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

}  // namespace

void AddNetworkScenarios(std::vector<NamedScenario>* all) {
  AddDelays(all);
  AddPaths(all);
  AddLosses(all);
  AddFewSamples(all);
}

}  // namespace syncline::sim
