// SPDX-License-Identifier: Apache-2.0
// Why a thread does not run, by what the kernel says of its state.
//
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_SCHEDULING_THREAD_PAUSE_H_
#define SYNCLINE_AGENT_SCHEDULING_THREAD_PAUSE_H_

#include <cstdint>

#include "evidence/scheduling.h"

namespace syncline::agent {

// `state`: the bits of sched_switch (its print format), when the thread leaves a CPU. None of
// these, or one above them: it was preempted.
inline evidence::Pause PauseOf(int64_t state) {
  constexpr int64_t kInterruptible = 0x01;
  constexpr int64_t kUninterruptible = 0x02;
  constexpr int64_t kStopped = 0x04 | 0x08;
  constexpr int64_t kParked = 0x40 | 0x80;
  if ((state & (kInterruptible | kParked)) != 0) return evidence::Pause::kSlept;
  if ((state & kUninterruptible) != 0) return evidence::Pause::kUninterruptible;
  if ((state & kStopped) != 0) return evidence::Pause::kStopped;
  return evidence::Pause::kPreempted;
}

// The same bits: it has ended.
inline bool IsDead(int64_t state) { return (state & (0x10 | 0x20)) != 0; }

// As /proc/PID/stat calls it.
inline evidence::Pause PauseOf(char state) {
  switch (state) {
    case 'S':
      return evidence::Pause::kSlept;
    case 'D':
      return evidence::Pause::kUninterruptible;
    case 'T':
    case 't':
      return evidence::Pause::kStopped;
    default:
      return evidence::Pause::kUnknown;
  }
}

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SCHEDULING_THREAD_PAUSE_H_
