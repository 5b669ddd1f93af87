// SPDX-License-Identifier: Apache-2.0
// Scenarios of many hosts: hubs, rings, islands; and of messages seen in the traces.
#include <algorithm>

#include "tests/sim/scenario_kit.h"

namespace syncline::sim {
namespace {

using clocksync::ClockEvent;

std::function<bool(const World&)> Sampled(size_t edges) {
  return [edges](const World& w) {
    return w.edges.size() == edges &&
           std::all_of(w.edges.begin(), w.edges.end(),
                       [](const auto& e) { return e.samples.size() > 100; });
  };
}

// `nodes` that are all in the recording, with no edge yet.
Scenario Nodes(int nodes, Random* r) {
  Scenario s = Star(nodes, r);
  s.hosts.pop_back();
  s.links.clear();
  return s;
}

// The last `hubs` nodes probe everybody before them.
Scenario Hubs(uint32_t nodes, uint32_t hubs, Random* r) {
  Scenario s = Nodes(static_cast<int>(nodes), r);
  for (uint32_t hub = nodes - hubs; hub < nodes; ++hub) {
    for (uint32_t leaf = 0; leaf < hub; ++leaf) s.links.push_back(Link(hub, leaf));
  }
  s.occurred = Sampled(s.links.size());
  return s;
}

void AddShapes(std::vector<NamedScenario>* all) {
  for (int nodes : {2, 8}) {
    Add(all, nodes == 2 ? "star_of_two" : "star_of_eight", [nodes](Random* r) {
      Scenario s = Star(nodes, r);
      s.occurred = Sampled(static_cast<size_t>(nodes));
      return s;
    });
  }
  Add(all, "ring", [](Random* r) {
    Scenario s = Nodes(6, r);
    for (uint32_t i = 0; i < 6; ++i) s.links.push_back(Link(i, (i + 1) % 6));
    s.bound_median_max_ns = 80'000;
    s.occurred = Sampled(6);
    return s;
  });
  Add(all, "chain_of_five", [](Random* r) {
    Scenario s = Nodes(5, r);
    for (uint32_t i = 0; i < 4; ++i) s.links.push_back(Link(i, i + 1));
    s.bound_median_max_ns = 105'000;
    s.error_median_max_ns = 10'000;
    s.occurred = Sampled(4);
    return s;
  });
  Add(all, "everybody_probes_everybody", [](Random* r) {
    Scenario s = Nodes(5, r);
    for (uint32_t i = 0; i < 5; ++i) {
      for (uint32_t j = i + 1; j < 5; ++j) s.links.push_back(Link(i, j));
    }
    s.bound_median_max_ns = 26'000;
    s.occurred = Sampled(10);
    return s;
  });
  Add(all, "hubs_are_nodes", [](Random* r) { return Hubs(8, 2, r); });
  Add(all, "both_probe_each_other", [](Random* r) {
    Scenario s = Pair(r);
    s.links.push_back(Link(1, 0));
    s.occurred = Sampled(2);
    return s;
  });
  Add(all, "wide_and_narrow_edges", [](Random* r) {
    Scenario s = Star(3, r);
    for (LinkSpec& link : s.links) link.out = link.back = {300'000, 50'000, Jitter::kExponential};
    s.links.push_back(Link(0, 1, 600, 100));
    s.links.push_back(Link(1, 2, 600, 100));
    s.bound_median_max_ns = 1'600;
    s.error_median_max_ns = 300;
    s.occurred = [](const World& w) {
      return ShortestOut(w, 0) > 250'000 && ShortestOut(w, 3) < 1'000;
    };
    return s;
  });
}

void AddFailures(std::vector<NamedScenario>* all) {
  Add(all, "hub_dies", [](Random* r) {
    Scenario s = Hubs(6, 2, r);
    for (LinkSpec& link : s.links) {
      if (link.local == 5) link.end_ns = 6 * kSecond;
    }
    s.occurred = [](const World& w) {
      return SamplesIn(w, 4, 0, 6 * kSecond) > 100 && SamplesIn(w, 4, 7 * kSecond) == 0;
    };
    return s;
  });
  Add(all, "hub_joins_late", [](Random* r) {
    Scenario s = Hubs(6, 2, r);
    for (LinkSpec& link : s.links) {
      if (link.local == 4) link.begin_ns = 6 * kSecond;
    }
    s.occurred = [](const World& w) {
      return SamplesIn(w, 0, 0, 5 * kSecond) == 0 && SamplesIn(w, 0) > 100;
    };
    return s;
  });
  // Two halves lose sight of each other for five seconds.
  Add(all, "partition_that_heals", [](Random* r) {
    Scenario s = Nodes(4, r);
    s.links = {Link(0, 1), Link(2, 3), Link(0, 2), Link(1, 3)};
    for (size_t i : {2u, 3u}) {
      s.links[i].quiet_from_ns = 4 * kSecond;
      s.links[i].quiet_to_ns = 9 * kSecond;
    }
    s.occurred = [](const World& w) {
      return HasGap(w, 2, 4 * kSecond) && HasGap(w, 3, 4 * kSecond) && !HasGap(w, 0, kSecond);
    };
    return s;
  });
  Add(all, "partition_for_good", [](Random* r) {
    Scenario s = Nodes(4, r);
    s.links = {Link(0, 1), Link(2, 3), Link(0, 2), Link(1, 3)};
    for (size_t i : {2u, 3u}) s.links[i].end_ns = 5 * kSecond;
    s.bound_median_max_ns = 2 * kMs;
    s.error_median_max_ns = kMs;
    s.occurred = [](const World& w) {
      return SamplesIn(w, 2, 6 * kSecond) == 0 && SamplesIn(w, 1, 6 * kSecond) > 100;
    };
    return s;
  });
  Add(all, "two_islands", [](Random* r) {
    Scenario s = Nodes(4, r);
    s.links = {Link(2, 3)};
    s.bound_median_max_ns = 0;
    s.error_median_max_ns = 0;
    s.reported = {ClockEvent::Kind::kNoSamples};
    s.occurred = [](const World& w) { return w.edges.size() == 1 && SamplesIn(w, 0) > 100; };
    return s;
  });
}

// Message times are what a send before and a receive after would have read.
std::vector<CausalPair> Messages(const World& w, Random* random, int64_t every_ns, int64_t min_ns,
                                 std::vector<uint32_t> senders = {0, 1}) {
  std::vector<CausalPair> pairs;
  for (int64_t t = 0; t < 12 * kSecond; t += every_ns) {
    for (uint32_t from : senders) {
      const int64_t sent = t + static_cast<int64_t>(Between(0, 4e6, random));
      const int64_t got = sent + DrawDelay({min_ns, 20'000}, sent, random);
      pairs.push_back({{{from, ClockKind::kMonotonic}, w.hosts[from].Monotonic(sent)},
                       {{1 - from, ClockKind::kMonotonic}, w.hosts[1 - from].Monotonic(got)}});
    }
  }
  return pairs;
}

// Nobody leaves an all-reduce before everybody has entered it.
std::vector<CausalPair> Collectives(const World& w, Random* random, uint32_t ranks) {
  std::vector<CausalPair> pairs;
  for (int64_t t = 100 * kMs; t < 12 * kSecond; t += 10 * kMs) {
    std::vector<int64_t> enters, leaves;
    for (uint32_t i = 0; i < ranks; ++i) {
      enters.push_back(t + static_cast<int64_t>(Between(0, 2e6, random)));
    }
    const int64_t last = *std::max_element(enters.begin(), enters.end());
    for (uint32_t i = 0; i < ranks; ++i) {
      leaves.push_back(last + static_cast<int64_t>(Between(15'000, 60'000, random)));
    }
    for (uint32_t i = 0; i < ranks; ++i) {
      for (uint32_t j = 0; j < ranks; ++j) {
        if (i == j) continue;
        pairs.push_back({{{i, ClockKind::kMonotonic}, w.hosts[i].Monotonic(enters[i])},
                         {{j, ClockKind::kMonotonic}, w.hosts[j].Monotonic(leaves[j])}});
      }
    }
  }
  return pairs;
}

// Calls of node 0 that node 1 serves for milliseconds: a call began before it was served, and was
// served before it returned. Of each side only its own span is known.
std::vector<CausalPair> NestedCalls(const World& w, Random* random) {
  std::vector<CausalPair> pairs;
  const auto at = [&](uint32_t host, int64_t t) {
    return NodeTime{{host, ClockKind::kMonotonic}, w.hosts[host].Monotonic(t)};
  };
  for (int64_t called = kMs; called < 12 * kSecond; called += 20 * kMs) {
    const int64_t served = called + static_cast<int64_t>(Between(30'000, 90'000, random));
    const int64_t done = served + static_cast<int64_t>(Between(1'000'000, 9'000'000, random));
    const int64_t returned = done + static_cast<int64_t>(Between(30'000, 90'000, random));
    pairs.push_back({at(0, called), at(1, served)});
    pairs.push_back({at(1, done), at(0, returned)});
  }
  return pairs;
}

void AddMessages(std::vector<NamedScenario>* all) {
  const auto no_probes = [](const World& w) { return w.edges.empty(); };
  Add(all, "messages_of_the_work_only", [no_probes](Random* r) {
    Scenario s = Pair(r);
    s.links.clear();
    s.bound_median_max_ns = 90'000;
    s.error_median_max_ns = 40'000;
    s.occurred = no_probes;
    s.causal = [](const World& w, Random* random) { return Messages(w, random, 5 * kMs, 40'000); };
    return s;
  });
  Add(all, "messages_one_way_only", [no_probes](Random* r) {
    Scenario s = Pair(r);
    s.links.clear();
    s.bound_median_max_ns = 0;
    s.error_median_max_ns = 0;
    s.occurred = no_probes;
    s.causal = [](const World& w, Random* random) {
      return Messages(w, random, 5 * kMs, 40'000, {0});
    };
    return s;
  });
  Add(all, "nested_calls_of_the_work_only", [no_probes](Random* r) {
    Scenario s = Pair(r);
    s.links.clear();
    s.bound_median_max_ns = 90'000;  // the least ways out and back, not the milliseconds between
    s.error_median_max_ns = 40'000;
    s.occurred = no_probes;
    s.causal = NestedCalls;
    return s;
  });
  Add(all, "collectives_of_the_work_only", [no_probes](Random* r) {
    Scenario s = Nodes(3, r);
    s.bound_median_max_ns = 400'000;
    s.error_median_max_ns = 200'000;
    s.occurred = no_probes;
    s.causal = [](const World& w, Random* random) { return Collectives(w, random, 3); };
    return s;
  });
  Add(all, "messages_tighten_probes", [](Random* r) {
    Scenario s = Pair(r);
    s.links = {Link(0, 1, 500'000, 50'000)};
    s.bound_median_max_ns = 60'000;
    s.error_median_max_ns = 30'000;
    s.occurred = [](const World& w) { return ShortestOut(w, 0) >= 500'000; };
    s.causal = [](const World& w, Random* random) { return Messages(w, random, 10 * kMs, 20'000); };
    return s;
  });
  Add(all, "messages_while_probes_are_silent", [](Random* r) {
    Scenario s = Pair(r);
    s.links[0].quiet_from_ns = 3 * kSecond;
    s.links[0].quiet_to_ns = 10 * kSecond;
    s.bound_median_max_ns = 60'000;
    s.error_median_max_ns = 30'000;
    s.occurred = [](const World& w) { return HasGap(w, 0, 6 * kSecond); };
    s.causal = [](const World& w, Random* random) { return Messages(w, random, 10 * kMs, 20'000); };
    return s;
  });
}

}  // namespace

void AddGraphScenarios(std::vector<NamedScenario>* all) {
  AddShapes(all);
  AddFailures(all);
  AddMessages(all);
}

}  // namespace syncline::sim
