// SPDX-License-Identifier: Apache-2.0
// What can be said across nodes, at three levels that are never mixed: proven, by the samples
// alone; likely, under an assumption that is named wherever it is used (clock_model.h); undecided.
//
// Pure. Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_LEVELS_H_
#define SYNCLINE_ANALYSIS_LEVELS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

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

// At which level `holds(interval)` is decided.
template <class Holds>
Level LevelOf(const LevelledDuration& difference, Holds holds) {
  if (holds(difference)) return Level::kProven;
  return difference.likely.has_value() && holds(*difference.likely) ? Level::kLikely
                                                                    : Level::kUndecided;
}
// That it is not negative: that a came before b.
Level LevelOfOrder(const LevelledDuration& difference);
// That it is negative: that b came before a, which is false of what a caused.
Level LevelOfContradiction(const LevelledDuration& difference);

// One of them, so that its interval is its own; nullopt: there is none.
template <class T, class Less = std::less<>>
std::optional<T> Median(std::vector<T> values, Less less = {}) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end(), less);
  return *middle;
}
// The order of Median: by estimate, then by the proven ends.
struct ByEstimate {
  bool operator()(const DurationEstimate& a, const DurationEstimate& b) const {
    return std::tuple(a.est_ns, a.lo_ns, a.hi_ns) < std::tuple(b.est_ns, b.lo_ns, b.hi_ns);
  }
};

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
