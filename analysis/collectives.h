// SPDX-License-Identifier: Apache-2.0
// Collectives as rows: who entered when, and how long they took. Pure.
#ifndef SYNCLINE_ANALYSIS_COLLECTIVES_H_
#define SYNCLINE_ANALYSIS_COLLECTIVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/levels.h"
#include "common/time.h"
#include "timeline/collectives.h"

namespace syncline::analysis {

// All collectives of one kind in one group. Medians are of single collectives, so that the bound is
// that collective's own; of those only in which every rank of the group was seen.
struct CollectiveKindReport {
  uint32_t group = 0;  // index into CollectiveReport::found.groups
  std::string name;    // "allreduce"
  uint64_t count = 0;
  uint64_t whole = 0;                        // of those, with every rank
  std::optional<uint64_t> bytes;             // median, where it is known of all
  std::optional<LevelledDuration> spread;    // from the first entry to the last
  std::optional<LevelledDuration> duration;  // from the first entry to the last exit
  // Of the whole ones: whether who is said to have entered first did so before who was last.
  LevelCounts order;
};

struct CollectiveReport {
  std::vector<CollectiveKindReport> kinds;  // by group and name
  timeline::Collectives found;
  // A rank had left before another entered, which cannot be: the model is wrong, or the matching.
  uint64_t contradictions = 0;
  uint64_t likely_contradictions = 0;  // more, by what is called likely: the assumption is wrong
};

// Without models nothing is known of what lies between nodes but its estimate.
CollectiveReport SummariseCollectives(const timeline::Collectives& found, const Models& models);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_COLLECTIVES_H_
