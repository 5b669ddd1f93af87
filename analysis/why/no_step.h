// SPDX-License-Identifier: Apache-2.0
// What is known of a job of which no step ended in the recorded window: docs/findings.md.
//
// Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_NO_STEP_H_
#define SYNCLINE_ANALYSIS_WHY_NO_STEP_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace syncline::analysis::why {

// What a rank's process did in the window, as far as it was recorded.
struct RankActivity {
  std::string node;
  int32_t pid = 0;    // as the process sees itself
  int32_t rank = -1;  // -1: its environment does not say
  std::string job;
  uint64_t calls = 0;        // tasks that ended
  uint64_t collectives = 0;  // launched
  uint64_t lost = 0;         // calls that it made, and that were not recorded
  int64_t quiet_ns = 0;  // from the end of its last call to the window's; without one: all of it
  bool ended = false;    // the process, before the window's end
};

// A window in which no step ended, or none in its last half, in which no rank made a call either.
struct NoStep {
  int64_t window_ns = 0;
  uint64_t steps = 0;               // ends of optimizers' steps, of all processes
  bool certain = true;              // false: of the window something is missing
  std::vector<RankActivity> ranks;  // with Syncline's hook for PyTorch; not empty
  // How long before its end no rank made a call; the whole window where none did.
  int64_t quiet_ns() const {
    int64_t least_ns = window_ns;
    for (const RankActivity& rank : ranks) least_ns = std::min(least_ns, rank.quiet_ns);
    return least_ns;
  }
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_NO_STEP_H_
