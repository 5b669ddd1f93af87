// SPDX-License-Identifier: Apache-2.0
// Scenarios of clocks that keep to the model's assumptions: drift, wander, discipline.
#include <cmath>
#include <numbers>

#include "tests/sim/scenario_kit.h"

namespace syncline::sim {
namespace {

using clocksync::ClockEvent;

// Two hosts on one cable, so near each other that nanoseconds of wander matter.
Scenario Near(Random* r, int64_t length_ns) {
  Scenario s = Pair(r);
  s.length_ns = length_ns;
  s.links = {Link(0, 1, 90, 15)};
  s.bound_median_max_ns = 140;
  s.error_median_max_ns = 40;
  for (HostSpec& host : s.hosts) host.raw.sine_ppm = 0;
  return s;
}

std::function<bool(const World&)> BendsBy(int64_t least_ns, int64_t length_ns) {
  return [=](const World& w) { return Bend(w, 1, 0, 0, length_ns) > least_ns; };
}

void AddDrifts(std::vector<NamedScenario>* all) {
  Add(all, "drift_100_ppm", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[0].raw.drift_ppm = 0;
    s.hosts[1].raw.drift_ppm = 100;
    s.occurred = [](const World& w) { return Gained(w, 1, 0, 0, 10 * kSecond) > 900'000; };
    return s;
  });
  Add(all, "drift_minus_100_ppm", [](Random* r) {
    Scenario s = Near(r, 12 * kSecond);
    s.hosts[0].raw.drift_ppm = 50;
    s.hosts[1].raw.drift_ppm = -50;
    s.occurred = [](const World& w) { return Gained(w, 1, 0, 0, 10 * kSecond) < -900'000; };
    return s;
  });
  Add(all, "drift_to_the_limit", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[0].raw.drift_ppm = -99;
    s.hosts[1].raw.drift_ppm = 99;
    s.occurred = [](const World& w) { return Gained(w, 1, 0, 0, 10 * kSecond) > 1'900'000; };
    return s;
  });
  Add(all, "no_drift_at_all", [](Random* r) {
    Scenario s = Near(r, 12 * kSecond);
    for (HostSpec& host : s.hosts) host.raw.drift_ppm = 0;
    s.occurred = [](const World& w) { return Gained(w, 1, 0, 0, 10 * kSecond) == 0; };
    return s;
  });
}

void AddWander(std::vector<NamedScenario>* all) {
  // A straight line over the whole time would be off by microseconds.
  Add(all, "wander", [](Random* r) {
    Scenario s = Near(r, 60 * kSecond);
    for (HostSpec& host : s.hosts) host.raw.sine_ppm = 0.15, host.raw.sine_period_s = 240;
    s.hosts[0].raw.sine_phase = 0, s.hosts[1].raw.sine_phase = std::numbers::pi;
    s.occurred = BendsBy(1'000, 60 * kSecond);
    return s;
  });
  Add(all, "drift_and_wander", [](Random* r) {
    Scenario s = Near(r, 60 * kSecond);
    s.hosts[0].raw.drift_ppm = 0;
    s.hosts[1].raw.drift_ppm = 100;
    s.hosts[1].raw.sine_ppm = 0.1, s.hosts[1].raw.sine_period_s = 300;
    s.hosts[1].raw.sine_phase = 0;
    s.occurred = [](const World& w) {
      return Gained(w, 1, 0, 0, 50 * kSecond) > 4'900'000 && Bend(w, 1, 0, 0, 60 * kSecond) > 200;
    };
    return s;
  });
  // The fastest change of rate that is allowed, in waves.
  Add(all, "wander_to_the_limit", [](Random* r) {
    Scenario s = Near(r, 60 * kSecond);
    constexpr double kPeriodS = 40;
    s.hosts[1].raw.sine_period_s = kPeriodS;
    s.hosts[1].raw.sine_ppm = 9.9e-3 * kPeriodS / (2 * std::numbers::pi);
    s.occurred = BendsBy(300, 60 * kSecond);
    return s;
  });
  Add(all, "quick_small_waves", [](Random* r) {
    Scenario s = Near(r, 30 * kSecond);
    s.hosts[1].raw.sine_period_s = 4;
    s.hosts[1].raw.sine_ppm = 9.5e-3 * 4 / (2 * std::numbers::pi);
    s.occurred = BendsBy(2, 30 * kSecond);
    return s;
  });
  Add(all, "random_walk", [](Random* r) {
    Scenario s = Near(r, 40 * kSecond);
    for (HostSpec& host : s.hosts) host.raw.walk_ppb_per_s = 5;
    s.occurred = BendsBy(0, 40 * kSecond);
    return s;
  });
  Add(all, "temperature_ramp", [](Random* r) {
    Scenario s = Near(r, 60 * kSecond);
    s.hosts[1].raw.ramp_ppb_per_s = 9;
    s.occurred = BendsBy(2'000, 60 * kSecond);
    return s;
  });
  Add(all, "temperature_falls_here_and_rises_there", [](Random* r) {
    Scenario s = Near(r, 60 * kSecond);
    s.hosts[0].raw.ramp_ppb_per_s = -4.9;
    s.hosts[1].raw.ramp_ppb_per_s = 4.9;
    s.occurred = BendsBy(2'000, 60 * kSecond);
    return s;
  });
  Add(all, "ten_minutes_of_wander", [](Random* r) {
    Scenario s = Near(r, 600 * kSecond);
    s.links[0].every_ns = 2 * kSecond;
    s.links[0].burst = 8;
    s.bound_median_max_ns = 200;
    s.error_median_max_ns = 60;
    for (HostSpec& host : s.hosts) host.raw.sine_ppm = 0.1, host.raw.sine_period_s = 300;
    s.hosts[0].raw.sine_phase = 0, s.hosts[1].raw.sine_phase = std::numbers::pi;
    s.occurred = BendsBy(5'000, 600 * kSecond);
    return s;
  });
}

// How far MONOTONIC runs ahead of RAW from one instant to another.
int64_t Slewed(const World& w, uint32_t host, int64_t from_ns, int64_t to_ns) {
  const auto ahead = [&](int64_t t) { return w.hosts[host].Monotonic(t) - w.hosts[host].Raw(t); };
  return ahead(to_ns) - ahead(from_ns);
}

// MONOTONIC is what the events carry; NTP bends it.
void AddDiscipline(std::vector<NamedScenario>* all) {
  Add(all, "ntp_slew_500_ppm", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[1].slews = {
        {4 * kSecond + 37 * kMs, 500}, {7 * kSecond + 11 * kMs, -500}, {9 * kSecond, 0}};
    s.reported = {ClockEvent::Kind::kSlew};
    s.occurred = [](const World& w) { return Slewed(w, 1, 4 * kSecond, 7 * kSecond) > kMs; };
    return s;
  });
  for (const auto& [name, ppm] :
       {std::pair{"chrony_slew_83333_ppm", 83'333.0}, std::pair{"slew_100000_ppm", 99'900.0},
        std::pair{"slew_minus_100000_ppm", -99'900.0}}) {
    Add(all, name, [ppm = ppm](Random* r) {
      Scenario s = Pair(r);
      s.hosts[0].slews = {{5 * kSecond + 55 * kMs, ppm}, {6 * kSecond + 55 * kMs, 0}};
      s.reported = {ClockEvent::Kind::kSlew};
      s.occurred = [](const World& w) {
        return std::abs(Slewed(w, 0, 5 * kSecond, 7 * kSecond)) > 80 * kMs;
      };
      return s;
    });
  }
  Add(all, "both_are_slewed", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[0].slews = {{3 * kSecond, -400}, {8 * kSecond, 0}};
    s.hosts[1].slews = {{2 * kSecond + 50 * kMs, 300}, {5 * kSecond, 450}, {9 * kSecond, 20}};
    s.reported = {ClockEvent::Kind::kSlew};
    s.occurred = [](const World& w) {
      return Slewed(w, 0, 3 * kSecond, 8 * kSecond) < -kMs &&
             Slewed(w, 1, 3 * kSecond, 8 * kSecond) > kMs;
    };
    return s;
  });
  Add(all, "slewed_every_second", [](Random* r) {
    Scenario s = Pair(r);
    for (int64_t i = 1; i < 11; ++i) {
      s.hosts[1].slews.push_back({i * kSecond + 31 * kMs, Between(-200, 200, r)});
    }
    s.reported = {ClockEvent::Kind::kSlew};
    s.occurred = [](const World& w) { return w.hosts[1].spec().slews.size() == 10; };
    return s;
  });
  Add(all, "slew_that_adjtimex_hides", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[1].slews = {{5 * kSecond + 23 * kMs, 500, false}, {7 * kSecond + 71 * kMs, 0, false}};
    s.reported = {ClockEvent::Kind::kSlew};
    s.occurred = [](const World& w) {
      return Slewed(w, 1, 5 * kSecond, 7 * kSecond) > 900'000 &&
             w.tuples[1].tuples.back().adjtimex_freq == 0;
    };
    return s;
  });
}

void AddWallClocks(std::vector<NamedScenario>* all) {
  for (const auto& [name, by] : {std::pair{"wall_step_forward", int64_t{3'600} * kSecond},
                                 std::pair{"wall_step_backward", int64_t{-3'600} * kSecond},
                                 std::pair{"wall_step_small", 5 * kMs}}) {
    Add(all, name, [by = by](Random* r) {
      Scenario s = Pair(r);
      s.hosts[1].wall_steps = {{6 * kSecond + 17 * kMs, by}};
      s.reported = {ClockEvent::Kind::kStep};
      s.occurred = [by](const World& w) {
        const auto wall = [&](int64_t t) { return w.hosts[1].Realtime(t) - w.hosts[1].Raw(t); };
        return std::abs(wall(7 * kSecond) - wall(6 * kSecond) - by) < kMs;
      };
      return s;
    });
  }
  // As a daemon does that knows no slewing: neither a rate nor steps fit, and what is left of the
  // wall clock's map must still be one that can be stored.
  Add(all, "wall_pushed_a_little_every_10_ms", [](Random* r) {
    Scenario s = Pair(r);
    for (int64_t at = 3 * kSecond; at < 9 * kSecond; at += 10 * kMs) {
      s.hosts[1].wall_steps.push_back({at + static_cast<int64_t>(Between(0, 9e6, r)), 3'000});
    }
    s.occurred = [](const World& w) {
      const auto wall = [&](int64_t t) { return w.hosts[1].Realtime(t) - w.hosts[1].Raw(t); };
      return wall(9 * kSecond) - wall(3 * kSecond) > 1'000'000;
    };
    return s;
  });
  Add(all, "wall_steps_again_and_again", [](Random* r) {
    Scenario s = Pair(r);
    for (HostSpec& host : s.hosts) {
      for (int64_t i = 1; i < 10; ++i) {
        host.wall_steps.push_back(
            {i * kSecond + 17 * kMs, static_cast<int64_t>(Between(-2e9, 2e9, r))});
      }
    }
    s.reported = {ClockEvent::Kind::kStep};
    s.occurred = [](const World& w) { return w.hosts[0].spec().wall_steps.size() == 9; };
    return s;
  });
  // Of a host without readings only RAW is known; the edge is as good as ever.
  Add(all, "a_host_without_readings", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[1].logs_tuples = false;
    s.bound_median_max_ns = kUnknownHi;
    s.error_median_max_ns = 0;
    s.occurred = [](const World& w) { return w.tuples[1].tuples.empty(); };
    return s;
  });
}

}  // namespace

void AddClockScenarios(std::vector<NamedScenario>* all) {
  AddDrifts(all);
  AddWander(all);
  AddDiscipline(all);
  AddWallClocks(all);
}

}  // namespace syncline::sim
