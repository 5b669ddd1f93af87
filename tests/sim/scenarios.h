// SPDX-License-Identifier: Apache-2.0
// Named situations for the clock model. Each says what must be true of the answers and proves that
// the situation really occurred.
#ifndef SYNCLINE_TESTS_SIM_SCENARIOS_H_
#define SYNCLINE_TESTS_SIM_SCENARIOS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "clocksync/builder.h"
#include "tests/sim/simulator.h"

namespace syncline::sim {

// A RAW clock that breaks the model's assumptions. It must be told, with its name, the instant
// inside the interval and the size inside the limits.
struct Broken {
  uint32_t host = 0;
  int64_t at_ns = 0;  // true time
  int64_t by_ns = 0;  // what its clock gains
  bool named = true;  // false: the samples cannot tell which end of an edge it was
  int64_t lasts_ns = 0;
};

struct Scenario {
  std::vector<HostSpec> hosts;  // the first is the reference unless `reference` says otherwise
  std::vector<LinkSpec> links;
  int64_t length_ns = 12 * kSecond;
  uint32_t reference = 0;
  // ---- what must be true ---------------------------------------------------------------------
  // Of Locate() on any node but the reference, while probing: median distance of the ends from the
  // estimate. 0: the interval must be unknown.
  int64_t bound_median_max_ns = 0;
  // Largest error of the estimate, median; 0: not asked.
  int64_t error_median_max_ns = 0;
  std::vector<clocksync::ClockEvent::Kind> reported;  // kinds that must be among the events
  bool quiet = false;                                 // nothing may be reported as infeasible
  std::vector<Broken> broken;  // clocks that must be blamed; nobody else may be
  std::string false_edge;      // must be named as the one that lies, "a--b"
  // Proof that the situation occurred; every scenario has one.
  std::function<bool(const World&)> occurred;
  // Messages seen in the traces: (before, after) as nodes and true instants, made from the world.
  std::function<std::vector<CausalPair>(const World&, Random*)> causal;
  // Instants that are asked of; default: all while the host is awake.
  std::function<bool(int64_t)> ask = [](int64_t) { return true; };
};

struct NamedScenario {
  std::string name;
  std::function<Scenario(Random*)> make;
};

const std::vector<NamedScenario>& Scenarios();

}  // namespace syncline::sim

#endif  // SYNCLINE_TESTS_SIM_SCENARIOS_H_
