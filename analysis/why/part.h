// SPDX-License-Identifier: Apache-2.0
// The parts of a step, and a time by part. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_PART_H_
#define SYNCLINE_ANALYSIS_WHY_PART_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace syncline::analysis::why {

// Where a rank's time goes. They add up to the step exactly.
enum class Part : uint8_t {
  kCompute,
  kThrottled,      // taken away by the quota of a control group
  kWaitingForCpu,  // runnable, but not running: somebody else was
  kBlocked,        // in uninterruptible sleep: mostly for storage
  kInput,
  kHostCode,
  kGarbageCollection,
  kWaitAndTransfer,
  kNotCovered,
};
inline constexpr size_t kParts = 9;
using PartTable = std::array<int64_t, kParts>;  // ns, by Part
// "throttled": as JSON and the table name it.
const char* PartName(Part part);      // "waiting for a CPU"
const char* PartJsonName(Part part);  // "waiting_for_cpu"
// Whether a part is known, where what was taken away is, and how long ranks were blocked.
constexpr bool PartKnown(Part part, bool taken_away_known, bool blocked_known) {
  if (part == Part::kBlocked) return blocked_known;
  return taken_away_known || (part != Part::kThrottled && part != Part::kWaitingForCpu);
}

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_PART_H_
