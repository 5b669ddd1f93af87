// SPDX-License-Identifier: Apache-2.0
// Scenarios that break the model's assumptions: clocks that step, sleep or change their rate,
// stamps that lie. Everything must be told and named, and nothing claimed wrongly.
#include <cstdlib>

#include "tests/sim/scenario_kit.h"

namespace syncline::sim {
namespace {

using clocksync::ClockEvent;

constexpr int64_t kWhen = 6 * kSecond + 130 * kMs;

// A clock that goes back reads every instant of the jump twice: those are not asked.
bool NotNearTheJump(int64_t t) { return t < 5 * kSecond || t > 7 * kSecond; }

std::function<bool(const World&)> Jumped(uint32_t host, uint32_t on, int64_t at_ns, int64_t by_ns) {
  return [=](const World& w) {
    return std::abs(Gained(w, host, on, at_ns - kMs, at_ns + kMs) - by_ns) < 1'000;
  };
}

// `host` of `s` jumps at kWhen.
void Jump(Scenario* s, uint32_t host, int64_t by_ns, bool named) {
  s->hosts[host].raw.steps = {{kWhen, by_ns}};
  Breaks(s, StepOf(*s, host, named));
  s->occurred = Jumped(host, host == 0 ? 1 : 0, kWhen, by_ns);
}

void AddSteps(std::vector<NamedScenario>* all) {
  for (const auto& [name, by] :
       {std::pair{"migration_forward", 2 * kMs},
        std::pair{"migration_forward_a_little", int64_t{70'000}},
        std::pair{"migration_forward_far", 3'600 * kSecond},
        std::pair{"migration_back_a_little", -30 * kMs}, std::pair{"reboot", -1'000 * kSecond}}) {
    Add(all, name, [by = by](Random* r) {
      Scenario s = Pair(r);
      Jump(&s, 1, by, false);
      s.links[0].every_ns = 200 * kMs;
      if (by < 0) s.ask = NotNearTheJump;
      // Of a clock that began anew only the longer stretch is known.
      if (by < -kSecond) s.bound_median_max_ns = kUnknownHi;
      return s;
    });
  }
  Add(all, "the_reference_migrates", [](Random* r) {
    Scenario s = Pair(r);
    Jump(&s, 0, 2 * kMs, false);
    return s;
  });
  Add(all, "migration_brings_another_rate", [](Random* r) {
    Scenario s = Pair(r);
    Jump(&s, 1, 3 * kMs, false);
    s.hosts[1].raw.new_rate_at_ns = kWhen;
    s.hosts[1].raw.new_rate_ppm = 50;
    return s;
  });
  Add(all, "rate_changes_at_once", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 2'000, 500)};
    s.hosts[1].raw.new_rate_at_ns = kWhen;
    s.hosts[1].raw.new_rate_ppm = 50;
    Breaks(&s, {.host = 1, .at_ns = kWhen, .by_ns = 0, .named = false});
    s.occurred = [](const World& w) {
      return Gained(w, 1, 0, kWhen, kWhen + kSecond) - Gained(w, 1, 0, kWhen - kSecond, kWhen) >
             40'000;
    };
    return s;
  });
  Add(all, "two_migrations_of_one", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[1].raw.steps = {{4 * kSecond, 2 * kMs}, {8 * kSecond, 5 * kMs}};
    Breaks(&s, {1, 4 * kSecond, 2 * kMs, false});
    Breaks(&s, {1, 8 * kSecond, 5 * kMs, false});
    s.occurred = [](const World& w) { return Gained(w, 1, 0, 3 * kSecond, 9 * kSecond) > 6 * kMs; };
    return s;
  });
  // Smaller than the shorter way is long: cannot be seen, and need not be.
  Add(all, "step_below_the_bound", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[1].raw.steps = {{kWhen, 8'000}};
    s.error_median_max_ns = 8'000;
    s.quiet = false;
    s.occurred = Jumped(1, 0, kWhen, 8'000);
    return s;
  });
}

void AddSleeps(std::vector<NamedScenario>* all) {
  for (uint32_t host : {0u, 1u}) {
    Add(all, host == 0 ? "suspend_of_the_reference" : "suspend", [host](Random* r) {
      Scenario s = Pair(r);
      s.hosts[host].suspends = {{5 * kSecond, 2 * kSecond}};
      Breaks(&s,
             {.host = host, .at_ns = 5 * kSecond, .by_ns = -2 * kSecond, .lasts_ns = 2 * kSecond});
      s.reported.push_back(ClockEvent::Kind::kSuspend);
      s.occurred = [host](const World& w) {
        return SamplesIn(w, 0, 5 * kSecond, 7 * kSecond) == 0 &&
               std::abs(Gained(w, host, 1 - host, 4 * kSecond, 8 * kSecond) + 2 * kSecond) < kMs;
      };
      return s;
    });
  }
  // RAW stands still and no other clock of the host tells: a paused virtual machine.
  Add(all, "one_of_four_is_paused", [](Random* r) {
    Scenario s = Star(4, r);
    s.hosts[2].raw.steps = {{kWhen, -300 * kMs}};
    Breaks(&s, StepOf(s, 2, true));
    s.ask = NotNearTheJump;
    s.occurred = Jumped(2, 0, kWhen, -300 * kMs);
    return s;
  });
  Add(all, "one_of_four_is_suspended", [](Random* r) {
    Scenario s = Star(4, r);
    s.hosts[3].suspends = {{4 * kSecond, kSecond}};
    Breaks(&s, {.host = 3, .at_ns = 4 * kSecond, .by_ns = -kSecond, .lasts_ns = kSecond});
    s.reported.push_back(ClockEvent::Kind::kSuspend);
    s.occurred = [](const World& w) { return HasGap(w, 3, kSecond / 2); };
    return s;
  });
}

void AddCulprits(std::vector<NamedScenario>* all) {
  Add(all, "one_of_four_migrates", [](Random* r) {
    Scenario s = Star(4, r);
    Jump(&s, 2, 5 * kMs, true);
    return s;
  });
  Add(all, "one_corner_of_a_triangle_migrates", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts.push_back(SomeHost("worker-1", r));
    s.links = {Link(0, 1), Link(0, 2), Link(1, 2)};
    Jump(&s, 1, 3 * kMs, true);
    return s;
  });
  Add(all, "a_hub_migrates", [](Random* r) {
    Scenario s = Star(6, r);
    s.hosts.pop_back();
    s.links.clear();
    for (uint32_t hub = 4; hub < 6; ++hub) {
      for (uint32_t leaf = 0; leaf < hub; ++leaf) s.links.push_back(Link(hub, leaf));
    }
    Jump(&s, 4, 4 * kMs, true);
    return s;
  });
  Add(all, "two_of_a_star_migrate_one_after_the_other", [](Random* r) {
    Scenario s = Star(5, r);
    s.hosts[1].raw.steps = {{4 * kSecond, 3 * kMs}};
    s.hosts[3].raw.steps = {{8 * kSecond, 6 * kMs}};
    Breaks(&s, StepOf(s, 1, true));
    Breaks(&s, StepOf(s, 3, true));
    s.occurred = [](const World& w) {
      return Gained(w, 1, 0, 3 * kSecond, 5 * kSecond) > 2 * kMs &&
             Gained(w, 3, 0, 7 * kSecond, 9 * kSecond) > 5 * kMs;
    };
    return s;
  });
  // The coordinator's edges are much too wide to show it; what the narrow ones show must hold there
  // too.
  Add(all, "narrow_edges_show_what_wide_ones_hide", [](Random* r) {
    Scenario s = Star(3, r);
    for (LinkSpec& link : s.links) link.out = link.back = {500'000, 20'000, Jitter::kExponential};
    s.links.push_back(Link(0, 1, 500, 100));
    s.links.push_back(Link(1, 2, 500, 100));
    Jump(&s, 1, 800'000, true);
    return s;
  });
  // A leaf behind a wide edge to the node that jumps, by more than its one-way minimum and less
  // than its width: its samples, taken across the jump, fit together and exclude the truth.
  Add(all, "a_leaf_whose_only_edge_hides_the_step", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts.push_back(SomeHost("worker-1", r));
    s.hosts.push_back(SomeHost("worker-2", r));
    s.links = {Link(0, 1, 2'000, 500), Link(0, 2, 2'000, 500), Link(1, 2, 2'000, 500),
               Link(1, 3, 200'000, 5'000)};
    Jump(&s, 1, 300'000, true);
    s.bound_median_max_ns = 300'000;
    return s;
  });
}

void AddLies(std::vector<NamedScenario>* all) {
  Add(all, "false_stamps", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].false_stamp = 0.02;
    s.reported = {ClockEvent::Kind::kInfeasible};
    s.quiet = false;
    s.occurred = [](const World& w) { return RoundTrips(w, 0).front() < 0; };
    return s;
  });
}

void AddLyingEdges(std::vector<NamedScenario>* all) {
  // Of four that all probe each other one edge lies: only without it does everything agree.
  Add(all, "one_lying_edge_among_four_nodes", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts.push_back(SomeHost("worker-1", r));
    s.hosts.push_back(SomeHost("worker-2", r));
    s.links = {Link(0, 1), Link(0, 2), Link(0, 3), Link(1, 2), Link(1, 3), Link(2, 3)};
    s.links[3].remote_lie_ns = 400'000;
    s.false_edge = "worker-0--worker-1";
    s.reported = {ClockEvent::Kind::kInfeasible};
    s.quiet = false;
    s.occurred = [](const World& w) {
      const auto& first = w.edges[3].samples.front();
      const int64_t seen = first.t2_remote_ns - first.t1_local_ns;
      return seen - (w.hosts[2].Raw(0) - w.hosts[1].Raw(0)) > 400'000;
    };
    return s;
  });
  // In a triangle nothing tells which of the three it is: the truth must be inside all the same.
  Add(all, "one_lying_edge_of_a_triangle", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts.push_back(SomeHost("worker-1", r));
    s.links = {Link(0, 1), Link(0, 2), Link(1, 2)};
    const size_t lies = std::uniform_int_distribution<size_t>(0, 2)(*r);
    s.links[lies].remote_lie_ns = 300'000;
    s.bound_median_max_ns = 420'000;
    s.error_median_max_ns = 0;
    s.reported = {ClockEvent::Kind::kInfeasible};
    s.quiet = false;
    s.occurred = [lies](const World& w) {
      return w.edges[lies].samples.front().t2_remote_ns - w.hosts[lies == 0 ? 1 : 2].Raw(0) >
             300'000;
    };
    return s;
  });
  // What hangs on a contradicting pair of paths must not be narrower than they are.
  Add(all, "one_lying_edge_before_a_leaf", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts.push_back(SomeHost("worker-1", r));
    s.hosts.push_back(SomeHost("worker-2", r));
    s.links = {Link(0, 1), Link(0, 2), Link(1, 2), Link(2, 3, 90'000)};
    s.links[std::uniform_int_distribution<size_t>(0, 2)(*r)].remote_lie_ns = 110'000;
    s.bound_median_max_ns = 400'000;
    s.error_median_max_ns = 0;
    s.reported = {ClockEvent::Kind::kInfeasible};
    s.quiet = false;
    s.occurred = [](const World& w) { return w.edges.size() == 4 && SamplesIn(w, 3) > 100; };
    return s;
  });
}

void AddLimits(std::vector<NamedScenario>* all) {
  Add(all, "wander_beyond_the_limit", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 200, 40)};
    s.hosts[1].raw.ramp_ppb_per_s = 2'000;
    s.bound_median_max_ns = 60'000;
    s.error_median_max_ns = 0;
    s.reported = {ClockEvent::Kind::kInfeasible};
    s.quiet = false;
    // Violated everywhere: what is said of the time between the splits may be wrong, and is told.
    s.ask = [](int64_t) { return false; };
    s.occurred = [](const World& w) { return Bend(w, 1, 0, 0, 10 * kSecond) > 10'000; };
    return s;
  });
  Add(all, "drift_beyond_the_limit", [](Random* r) {
    Scenario s = Pair(r);
    s.hosts[1].raw.drift_ppm = 1'000;
    s.reported = {ClockEvent::Kind::kInfeasible};
    s.quiet = false;
    s.ask = [](int64_t) { return false; };
    s.occurred = [](const World& w) { return Gained(w, 1, 0, 0, kSecond) > 900'000; };
    return s;
  });
}

}  // namespace

void AddBreakScenarios(std::vector<NamedScenario>* all) {
  AddSteps(all);
  AddSleeps(all);
  AddCulprits(all);
  AddLies(all);
  AddLyingEdges(all);
  AddLimits(all);
}

}  // namespace syncline::sim
