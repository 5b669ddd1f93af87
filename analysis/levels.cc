// SPDX-License-Identifier: Apache-2.0
#include "analysis/levels.h"

namespace syncline::analysis {

bool Models::Knows(ClockId a, ClockId b) const {
  return proven != nullptr && proven->Knows(a) && proven->Knows(b);
}

LevelledDuration Difference(const Models& models, NodeTime a, NodeTime b) {
  LevelledDuration difference{models.proven->Difference(a, b), std::nullopt};
  if (models.likely != nullptr && a.clock.node != b.clock.node) {
    difference.likely = models.likely->Difference(a, b);
  }
  return difference;
}

LevelledDuration Unbounded(TimelineTime a, TimelineTime b) {
  LevelledDuration difference;
  difference.est_ns = b.ns - a.ns;
  return difference;
}

Level LevelOfOrder(const LevelledDuration& difference) {
  return LevelOf(difference, [](const DurationEstimate& interval) {
    return interval.lo_ns != kUnknownLo && interval.lo_ns >= 0;
  });
}

Level LevelOfContradiction(const LevelledDuration& difference) {
  return LevelOf(difference, [](const DurationEstimate& interval) {
    return interval.bounded() && interval.hi_ns < 0;
  });
}

void LevelCounts::Add(Level level) {
  switch (level) {
    case Level::kProven:
      ++proven;
      break;
    case Level::kLikely:
      ++likely;
      break;
    case Level::kUndecided:
      ++undecided;
      break;
  }
}

void LevelCounts::Add(const LevelCounts& more) {
  proven += more.proven;
  likely += more.likely;
  undecided += more.undecided;
}

}  // namespace syncline::analysis
