// SPDX-License-Identifier: Apache-2.0
// What `syncline why` says of a rank whose thread is blocked in the kernel. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_BLOCKED_SLEEP_H_
#define SYNCLINE_ANALYSIS_WHY_BLOCKED_SLEEP_H_

#include <cstdint>
#include <optional>

#include "analysis/full_group.h"
#include "analysis/why/part.h"

namespace syncline::analysis::why {

// Uninterruptible sleep of a driver in its own work (state D of /proc/PID/stat).
struct BlockedSleep {
  bool by_scheduler = false;  // by the scheduler's trace: all of it, exactly; else by samples
  // By samples: of its own work, how often it was found asleep, and how often blocked.
  uint64_t asleep = 0;
  uint64_t blocked = 0;
  // How long it slept in its own work, blocked or not, a step: by the trace, or by how often
  // samples find it so, without the counters. nullopt: no sample looked at its own work.
  std::optional<int64_t> slept_ns;
  // What too few samples find of it, of a step: it is left in the other parts.
  int64_t uncut_ns = 0;
  // What so many samples leave open, with 95 %: by how much less or more of a step it may be.
  int64_t less_ns = 0;
  int64_t more_ns = 0;
  // The part of the judged steps from which most of it was taken; nullopt: not half from any.
  std::optional<Part> where;
  // A step: how often the driver waited for a page of memory to come from storage, and how many
  // bytes were read from storage for its process. nullopt: not known.
  std::optional<double> faults;
  std::optional<double> read_bytes;
};

struct FullMemory {
  FullGroup group;
  double per_step = 0;  // how often
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_BLOCKED_SLEEP_H_
