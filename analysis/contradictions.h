// SPDX-License-Identifier: Apache-2.0
// What was recorded and cannot have happened when the clock model says: received before it was
// sent. One of these is enough to show that bounds do not hold which were proven from samples: some
// stamps are false, and nothing tells which.
//
// Pure. Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_CONTRADICTIONS_H_
#define SYNCLINE_ANALYSIS_CONTRADICTIONS_H_

#include <cstdint>
#include <string>

#include "analysis/levels.h"
#include "analysis/report.h"
#include "timeline/builder.h"

namespace syncline::analysis {

struct Contradictions {
  // Of the bounds: messages, tensors and transfers. Of collectives it is partly inferred which work
  // is whose, by the same bounds: they show what is likely, and nothing against what is proven.
  uint64_t proven = 0;
  uint64_t likely = 0;  // more, of what is called likely: its assumption is wrong
};
Contradictions ContradictionsOf(const Report& report);
Contradictions ContradictionsOf(const timeline::BuiltTimeline& built, const Models& models);

// What contradicts the bounds, into a report of the same recording that was made without them.
void KeepContradictions(const Report& contradicted, Report* report);

// For people: that so much of what was recorded contradicts the bounds, and what follows.
std::string BoundsDoNotHoldText(uint64_t count);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_CONTRADICTIONS_H_
