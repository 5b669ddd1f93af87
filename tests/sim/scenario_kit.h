// What the scenarios are made of: plausible hosts, links, and questions about a world.
#ifndef SYNCLINE_TESTS_SIM_SCENARIO_KIT_H_
#define SYNCLINE_TESTS_SIM_SCENARIO_KIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/scenarios.h"

namespace syncline::sim {

double Between(double lo, double hi, Random* random);
HostSpec SomeHost(const std::string& name, Random* random);
LinkSpec Link(uint32_t local, uint32_t remote, int64_t min_ns = 20'000, int64_t jitter_ns = 5'000,
              Jitter jitter = Jitter::kExponential);

// Two hosts that probe each other, 20 us apart.
Scenario Pair(Random* random);
// Every node probed by the coordinator, which is no node.
Scenario Star(int nodes, Random* random);

// Of the edge's whole samples, sorted, ns.
std::vector<int64_t> RoundTrips(const World& world, size_t edge);
// Whether the edge was silent for at least that long.
bool HasGap(const World& world, size_t edge, int64_t at_least_ns);

void AddNetworkScenarios(std::vector<NamedScenario>* all);
void AddClockScenarios(std::vector<NamedScenario>* all);
void AddGraphScenarios(std::vector<NamedScenario>* all);

}  // namespace syncline::sim

#endif  // SYNCLINE_TESTS_SIM_SCENARIO_KIT_H_
