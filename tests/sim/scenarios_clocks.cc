// Scenarios of the clocks: drift, wander, discipline, steps, suspends, lies.
#include <cmath>
#include <numbers>

#include "tests/sim/scenario_kit.h"

namespace syncline::sim {
namespace {

using clocksync::ClockEvent;

void AddDrifts(std::vector<NamedScenario>* all) {
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
}

void AddDiscipline(std::vector<NamedScenario>* all) {
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

}  // namespace

void AddClockScenarios(std::vector<NamedScenario>* all) {
  AddDrifts(all);
  AddDiscipline(all);
  AddBreaks(all);
}

}  // namespace syncline::sim
