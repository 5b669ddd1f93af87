// SPDX-License-Identifier: Apache-2.0
// A small text that holds the nodes, clocks, control blocks and events of a recording, for tests:
//
//   window 0 1000
//   node a shift -5000                     timeline = trace clock + shift
//   node b shift 300 unflushed             its tracer ended too early
//   env tracer_buffering_scheme uid        a fact of the node's trace
//   process key=1 uid=0 pid=10 pidns=5 ticks=7 rank=0 events=9 command="python train.py"
//   name 2 step                            of the process above, as its control block has it
//   thread 7 10 main                       key, tid and name, likewise
//   stream cpu0
//   5100 syncline_itt:task_begin thread=7 name=2 depth=0
//   loss discarded 5200 5300 12            of the stream above; the count may be left out
#ifndef SYNCLINE_TIMELINE_TESTING_SCENARIO_H_
#define SYNCLINE_TIMELINE_TESTING_SCENARIO_H_

#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "timeline/builder.h"
#include "timeline/testing/fake_trace.h"

namespace syncline::timeline::testing {

// Owns what the inputs point to. Movable.
struct Scenario {
  BuildOptions options;
  std::vector<NodeInput> nodes;
  std::deque<FakeTrace> traces;  // one per node
  std::vector<std::unique_ptr<Placement>> placements;
};

// InvalidArgument names the line.
absl::StatusOr<Scenario> ParseScenario(std::string_view text);

}  // namespace syncline::timeline::testing

#endif  // SYNCLINE_TIMELINE_TESTING_SCENARIO_H_
