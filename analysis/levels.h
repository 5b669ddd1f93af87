// What can be said across nodes, at three levels that are never mixed: proven, by the samples
// alone; likely, under an assumption that is named wherever it is used (clock_model.h); undecided.
//
// Pure. Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_LEVELS_H_
#define SYNCLINE_ANALYSIS_LEVELS_H_

#include <cstdint>
#include <optional>

#include "clocksync/clock_model.h"
#include "common/time.h"

namespace syncline::analysis {

// What statements across nodes rest on. Both may be nullptr: then nothing can be said, or nothing
// is likely that is not proven. Neither is owned.
struct Models {
  const clocksync::ClockModel* proven = nullptr;
  const clocksync::ClockModel* likely = nullptr;  // `proven` under an assumption

  bool Knows(ClockId a, ClockId b) const;
};

enum class Level : uint8_t { kProven, kLikely, kUndecided };

// The difference of two instants: what is proven of it, and beside that what is likely.
struct LevelledDuration : DurationEstimate {
  std::optional<DurationEstimate> likely;
};

// b - a. By the models, which must know both clocks.
LevelledDuration Difference(const Models& models, NodeTime a, NodeTime b);
// That of two instants whose clocks nobody knows: unbounded.
LevelledDuration Unbounded(TimelineTime a, TimelineTime b);

// At which level it is decided that it is not negative: that a came before b.
Level LevelOfOrder(const LevelledDuration& difference);

// How often which.
struct LevelCounts {
  uint64_t proven = 0;
  uint64_t likely = 0;
  uint64_t undecided = 0;

  void Add(Level level);
  void Add(const LevelCounts& more);
  uint64_t all() const { return proven + likely + undecided; }
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_LEVELS_H_
