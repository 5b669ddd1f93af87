// SPDX-License-Identifier: Apache-2.0
// Few steps that take far longer than the others, as the answer has them. Plain values; what they
// mean: docs/findings.md.
#ifndef SYNCLINE_ANALYSIS_WHY_STALLS_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_STALLS_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/why/part.h"
#include "analysis/why/stood_in.h"

namespace syncline::analysis::why {

// Stalls that are made alike.
struct StallGroup {
  enum class Kind : uint8_t {
    kRanks,        // the own work of these ranks, at most half of all, takes longer
    kEverybody,    // that of more than half of them
    kCollectives,  // nobody's does
    kUntold,       // neither is clear
  };
  Kind kind = Kind::kUntold;
  std::vector<size_t> ranks;  // indexes into Answer::ranks; empty: kCollectives, kUntold
  uint64_t stalls = 0;
  int64_t shortest_ns = 0;
  int64_t longest_ns = 0;
  int64_t total_longer_ns = 0;  // of all of them, what they take longer than the median step
  // Of these ranks, a stall: by how much longer their own work takes than usual; and that of the
  // other rank in whose own work it is most, of all stalls.
  int64_t longer_ns = 0;
  int64_t others_most_ns = 0;
  PartTable longer{};       // by part, likewise
  bool taken_away = false;  // whether throttled, waiting for a CPU and blocked are told apart there
  // Of these ranks' drivers, a stall; nullopt: not known, or stalls too short for the samples.
  std::optional<int64_t> on_cpu_ns;
  std::optional<int64_t> run_queue_ns;
  // Where their Python stood, of all samples in these stalls; `others` of those in other steps.
  std::optional<StoodIn> stood;
  // Of them, so many come one in `every_steps` steps of the job, but for one more or less; nullopt:
  // there is no such rhythm.
  std::optional<uint64_t> every_steps;
  uint64_t in_rhythm = 0;
};

struct Stalls {
  uint64_t steps = 0;  // that were looked at: judged ones, and others that all ranks have
  uint64_t stalls = 0;
  int64_t usual_ns = 0;            // the median step
  int64_t longer_ns = 0;           // of all stalls, what they take longer than the median step
  int64_t total_ns = 0;            // of all steps
  std::vector<size_t> judged;      // which judged steps are stalls; in order
  std::vector<StallGroup> groups;  // the one that takes most first
};

// What the group's stalls take longer is 5 % of the time of all steps or more.
bool IsLarge(const Stalls& stalls, const StallGroup& group);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STALLS_MODEL_H_
