// SPDX-License-Identifier: Apache-2.0
// What `syncline why` says of a rank whose thread is blocked in the kernel. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_BLOCKED_SLEEP_H_
#define SYNCLINE_ANALYSIS_WHY_BLOCKED_SLEEP_H_

#include <cstdint>
#include <optional>

namespace syncline::analysis::why {

// Sleep of a driver in its own work that no signal ends (state D of /proc/PID/stat).
struct BlockedSleep {
  bool by_scheduler = false;  // by the scheduler's trace: all of it, exactly; else by samples
  // By samples: of its own work, how often it was found asleep, and how often blocked.
  uint64_t asleep = 0;
  uint64_t blocked = 0;
  // So many samples leave so much open, with 95 %: the least and the most, in parts of the
  // estimate.
  double least = 1;
  double most = 1;
  // A step: how often the driver waited for a page of memory to come from storage, and how many
  // bytes were read from storage for its process. nullopt: not known.
  std::optional<double> faults;
  std::optional<double> read_bytes;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_BLOCKED_SLEEP_H_
