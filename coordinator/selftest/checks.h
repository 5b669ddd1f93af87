// SPDX-License-Identifier: Apache-2.0
// What `syncline selftest` holds against what it did itself: a rank that it made late by a known
// time, a clock that it made wrong by a known time. The labels are its own, never the verdict's.
//
// Pure. Thread-safety: plain values.
#ifndef SYNCLINE_COORDINATOR_SELFTEST_CHECKS_H_
#define SYNCLINE_COORDINATOR_SELFTEST_CHECKS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "analysis/why/model.h"

namespace syncline::selftest {

enum class State : uint8_t {
  kPassed,
  kFailed,
  kUndecided,  // something that is not the test's own may be the reason, or there is too little
  kNotTested,  // this recording cannot show it
};
const char* StateJsonName(State state);  // "not_tested"

struct Check {
  std::string name;  // "amount": part of the JSON
  State state = State::kNotTested;
  std::string text;  // what was found, and what was expected: one sentence or two
};

// Of all checks, in their order.
inline constexpr std::array<const char*, 8> kCheckNames = {
    "nobody", "who",           "cause",       "amount",
    "cost",   "clock_noticed", "clock_bound", "verdict_without_clocks"};

// Adds the checks that are missing, not tested for this reason.
void Complete(const std::string& reason, std::vector<Check>* checks);

// The worst of them: failed, undecided, passed; not tested where none was.
State Overall(const std::vector<Check>& checks);

// What was done to the job in the second recording.
struct Delay {
  int32_t rank = 0;
  int64_t delay_ns = 0;  // its loader took so much longer for a batch, once a step
};

// Of the job's answers without and with the delay: nobody is named without it; the delayed rank is
// named, and no other; for its input; with the time that it was delayed by; and the cost is what
// the step became longer by.
std::vector<Check> CheckDelay(const analysis::why::Answer& healthy,
                              const analysis::why::Answer& delayed, const Delay& delay);

// What a report says of one node's clock, and what can be seen of it.
struct ClockSight {
  std::string node;
  std::optional<int64_t> bound_ns;              // proven, in the middle of the window
  std::optional<DurationEstimate> start, stop;  // skews of the node: instants of the timeline
  std::vector<std::string> events;              // clock events of all nodes: "gap of a--b"
  uint64_t contradictions = 0;  // messages and the like that the model cannot explain
  // The longest of the median times from send to receipt of messages from or to the node.
  std::optional<int64_t> flight_ns;
};
ClockSight SightOf(const analysis::Report& report, const std::string& node);

// `before` and `original` are of a recording, `after` and `shifted` of the same with all clock
// samples of one node shifted by `shift_ns`: that is noticed; what is then called proven of the
// node's clock holds the truth, or is said not to hold; and who is late, and why, stays the same.
std::vector<Check> CheckShift(const ClockSight& before, const ClockSight& after, int64_t shift_ns,
                              const analysis::why::Answer& original,
                              const analysis::why::Answer& shifted);

}  // namespace syncline::selftest

#endif  // SYNCLINE_COORDINATOR_SELFTEST_CHECKS_H_
