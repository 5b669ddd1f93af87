// SPDX-License-Identifier: Apache-2.0
// The clock model's answers as the tests see them, and the ways in which they can be made wrong on
// purpose: with SYNCLINE_MUTANT set the tests must fail. What a test cannot notice, it does not
// check.
#ifndef SYNCLINE_TESTS_SIM_ANSWERS_H_
#define SYNCLINE_TESTS_SIM_ANSWERS_H_

#include "clocksync/builder.h"
#include "common/time.h"

namespace syncline::sim {

enum class Mutant {
  kNone,
  kSignFlipped,     // sign: offset = local - remote
  kBoundHalved,     // half: intervals half as wide around the estimate
  kZeroOffset,      // zero: every clock taken for the reference's
  kOneSecondBound,  // second: sound and useless
  kWallClock,       // wall: aligned by REALTIME, as other tools do
  kSwappedNodes,    // swapped: what is asked of one node is answered for another
  kNoWander,        // nowander: clocks taken to run straight
  kOneHop,          // hop: two nodes' interval is as wide as one of them is known
};

// From SYNCLINE_MUTANT; kNone when unset. Aborts on an unknown name, so that a typo is noticed.
Mutant MutantFromEnvironment();

// Builds a model of `input`, as the mutant would.
absl::StatusOr<clocksync::BuildResult> Build(clocksync::BuildInput input,
                                             clocksync::BuildOptions options, Mutant mutant);

// Forwards to a model, as the mutant would.
class Answers {
 public:
  Answers(const clocksync::ClockModel& model, Mutant mutant) : model_(model), mutant_(mutant) {}
  TimelineEstimate Locate(NodeTime time) const;
  DurationEstimate Difference(NodeTime a, NodeTime b) const;
  Ordering Order(NodeTime a, NodeTime b) const;

 private:
  NodeTime Asked(NodeTime time) const;
  const clocksync::ClockModel& model_;
  Mutant mutant_;
};

}  // namespace syncline::sim

#endif  // SYNCLINE_TESTS_SIM_ANSWERS_H_
