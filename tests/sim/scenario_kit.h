// SPDX-License-Identifier: Apache-2.0
// What the scenarios are made of: plausible hosts, links, and questions about a world.
#ifndef SYNCLINE_TESTS_SIM_SCENARIO_KIT_H_
#define SYNCLINE_TESTS_SIM_SCENARIO_KIT_H_

#include <cstdint>
#include <functional>
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

void Add(std::vector<NamedScenario>* all, std::string name, std::function<Scenario(Random*)> make);

// Shortest true delay of the edge's exchanges that were sent in [from, to).
int64_t ShortestOut(const World& w, size_t edge, int64_t from_ns = 0, int64_t to_ns = kUnknownHi);
int64_t ShortestBack(const World& w, size_t edge, int64_t from_ns = 0, int64_t to_ns = kUnknownHi);
// How much the host's RAW clock gained on another's from one true instant to another.
int64_t Gained(const World& w, uint32_t host, uint32_t on, int64_t from_ns, int64_t to_ns);
// How far the offset of two RAW clocks bends away from a straight line over [from, to], at most.
int64_t Bend(const World& w, uint32_t a, uint32_t b, int64_t from_ns, int64_t to_ns);
// Samples of the edge whose request was sent in [from, to).
size_t SamplesIn(const World& w, size_t edge, int64_t from_ns = 0, int64_t to_ns = kUnknownHi);

// `broken` as its clock's own specification says.
Broken StepOf(const Scenario& s, uint32_t host, bool named);
// Says that this clock breaks: it is reported, and the estimate next to it is not asked.
void Breaks(Scenario* s, const Broken& broken);

void AddBreakScenarios(std::vector<NamedScenario>* all);
void AddNetworkScenarios(std::vector<NamedScenario>* all);
void AddClockScenarios(std::vector<NamedScenario>* all);
void AddGraphScenarios(std::vector<NamedScenario>* all);

}  // namespace syncline::sim

#endif  // SYNCLINE_TESTS_SIM_SCENARIO_KIT_H_
