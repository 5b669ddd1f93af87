// SPDX-License-Identifier: Apache-2.0
// A recording made by dice, as a scenario: two ranks on two nodes, whose threads do everything that
// our events can say, go from CPU to CPU, and leave tasks open for as long as they like; a few
// events are lost. For properties that must hold whatever was recorded.
#ifndef SYNCLINE_TIMELINE_TESTING_RANDOM_JOB_H_
#define SYNCLINE_TIMELINE_TESTING_RANDOM_JOB_H_

#include <cstdint>
#include <string>

namespace syncline::timeline::testing {

struct RandomJobOptions {
  unsigned seed = 1;
  int64_t length_ns = 1'000'000;  // from 0 on
  // Of a thousand events, and whether the tracer knows of it (else they are lost in silence).
  int lost_per_mille = 0;
  bool loss_is_declared = false;
};

// Text for ParseScenario.
std::string RandomJob(const RandomJobOptions& options);

}  // namespace syncline::timeline::testing

#endif  // SYNCLINE_TIMELINE_TESTING_RANDOM_JOB_H_
