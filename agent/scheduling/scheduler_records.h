// SPDX-License-Identifier: Apache-2.0
// The records of one CPU's ring, of the scheduler's tracepoints, as perf_event_open(2) describes
// them: of events that ask for TID, TIME and RAW with sample_id_all. Pure.
//
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_SCHEDULING_SCHEDULER_RECORDS_H_
#define SYNCLINE_AGENT_SCHEDULING_SCHEDULER_RECORDS_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/scheduling/tracepoints.h"

namespace syncline::agent {

using ThreadName = std::array<char, 16>;  // a comm, as the kernel keeps it: ends with 0

struct SchedulerEvent {
  enum class Kind : uint8_t {
    kSwitch,  // `tid` leaves the CPU, `next_tid` gets it
    kWake,    // `tid` is woken by the current thread
    kMove,    // `tid` is moved to `to_cpu`
    kFork,    // `tid` of process `seen_pid` begins; `parent_pid` made it, by the agent's numbers
    kLoss,    // `count` events of this CPU are missing, from `at_ns` to `until_ns`
  };
  Kind kind = Kind::kSwitch;
  bool interrupt = false;  // it happened in an interrupt, and not for the current thread
  int32_t cpu = 0;         // on which it happened
  int64_t at_ns = 0;
  int32_t tid = 0;  // by the machine's number; 0: the CPU was idle
  int32_t next_tid = 0;
  int32_t to_cpu = 0;  // kWake, kMove
  // Who was current, as the machine and as the agent sees it (0: it does not).
  int32_t current_tid = 0;
  int32_t seen_pid = 0;
  int32_t seen_tid = 0;
  int32_t parent_pid = 0;  // kFork
  int64_t state = 0;       // kSwitch: of `tid`, the kernel's bits
  int64_t until_ns = 0;
  uint64_t count = 0;
  ThreadName name{};  // kSwitch: of `tid`
  ThreadName next_name{};
};

struct SchedulerRecords {
  std::vector<SchedulerEvent> events;  // a loss stands where it was
  bool damaged = false;                // a record that cannot be: nothing behind it is read
};

// `bytes`: whole records, from the oldest on. `last_ns`: of the record before them, which a loss
// begins with.
SchedulerRecords ParseSchedulerRecords(std::span<const uint8_t> bytes,
                                       const SchedulerTracepoints& tracepoints, int32_t cpu,
                                       int64_t last_ns);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SCHEDULING_SCHEDULER_RECORDS_H_
