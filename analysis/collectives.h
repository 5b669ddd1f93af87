// Collectives as rows: who entered when, and how long they took. Pure.
#ifndef SYNCLINE_ANALYSIS_COLLECTIVES_H_
#define SYNCLINE_ANALYSIS_COLLECTIVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clocksync/clock_model.h"
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
  std::optional<DurationEstimate> spread;    // from the first entry to the last
  std::optional<DurationEstimate> duration;  // from the first entry to the last exit
};

struct CollectiveReport {
  std::vector<CollectiveKindReport> kinds;  // by group and name
  timeline::Collectives found;
  // A rank had left before another entered, which cannot be: the model is wrong, or the matching.
  uint64_t contradictions = 0;
};

// `model` may be nullptr: then nothing is known of what lies between nodes but its estimate.
CollectiveReport SummariseCollectives(const timeline::Collectives& found,
                                      const clocksync::ClockModel* model);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_COLLECTIVES_H_
