// Scenarios of many hosts: hubs, rings, islands; and of messages seen in the traces.
#include "tests/sim/scenario_kit.h"

namespace syncline::sim {
namespace {

using clocksync::ClockEvent;

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
}

// Message times are what a send before and a receive after would have read.
std::vector<CausalPair> Messages(const World& w, Random* random, int64_t every_ns, int64_t min_ns) {
  std::vector<CausalPair> pairs;
  for (int64_t t = 0; t < 12 * kSecond; t += every_ns) {
    for (uint32_t from : {0u, 1u}) {
      const int64_t sent = t + static_cast<int64_t>(Between(0, 4e6, random));
      const int64_t got = sent + DrawDelay({min_ns, 20'000}, sent, random);
      pairs.push_back({{{from, ClockKind::kMonotonic}, w.hosts[from].Monotonic(sent)},
                       {{1 - from, ClockKind::kMonotonic}, w.hosts[1 - from].Monotonic(got)}});
    }
  }
  return pairs;
}

void AddMessages(std::vector<NamedScenario>* all) {
  all->push_back({"messages_of_the_work_only", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links.clear();
                    s.bound_median_max_ns = 90'000;
                    s.error_median_max_ns = 40'000;
                    s.causal = [](const World& w, Random* random) {
                      return Messages(w, random, 5 * kMs, 40'000);
                    };
                    return s;
                  }});
  all->push_back({"messages_tighten_probes", [](Random* r) {
                    Scenario s = Pair(r);
                    s.links = {Link(0, 1, 500'000, 50'000)};
                    s.bound_median_max_ns = 60'000;
                    s.error_median_max_ns = 30'000;
                    s.causal = [](const World& w, Random* random) {
                      return Messages(w, random, 10 * kMs, 20'000);
                    };
                    return s;
                  }});
}

}  // namespace

void AddGraphScenarios(std::vector<NamedScenario>* all) {
  AddGraphs(all);
  AddMessages(all);
}

}  // namespace syncline::sim
