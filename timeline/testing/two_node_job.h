// SPDX-License-Identifier: Apache-2.0
// A training job on two nodes whose clocks are known exactly, as a scenario: "master-0" marks its
// steps, "worker-0" runs three operations within each of them. Shared by the tests of analysis,
// reports and merge.
#ifndef SYNCLINE_TIMELINE_TESTING_TWO_NODE_JOB_H_
#define SYNCLINE_TIMELINE_TESTING_TWO_NODE_JOB_H_

#include <cstdint>
#include <string>

#include "clocksync/clock_model.h"

namespace syncline::timeline::testing {

inline constexpr int64_t kJobSteps = 20;
inline constexpr int64_t kJobStepNs = 10'000'000;
inline constexpr int64_t kJobZeroNs = 1'000'000'000;      // timeline zero in master-0's clock
inline constexpr int64_t kJobOffsetNs = 777'000'000'000;  // worker-0's clock - master-0's
inline constexpr int64_t kJobDelayNs = 40'000;            // of a probe, one way

// Text for ParseScenario; shifts place both nodes right.
std::string TwoNodeJob();

// A model from probes of the two nodes with symmetric delays: its bound is about kJobDelayNs.
clocksync::ClockModel TwoNodeModel(int64_t delay_ns = kJobDelayNs);

}  // namespace syncline::timeline::testing

#endif  // SYNCLINE_TIMELINE_TESTING_TWO_NODE_JOB_H_
