// SPDX-License-Identifier: Apache-2.0
// The scheduler's tracepoints as this kernel has them: their numbers, and where their fields are.
//
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_SCHEDULING_TRACEPOINTS_H_
#define SYNCLINE_AGENT_SCHEDULING_TRACEPOINTS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::agent {

struct TraceField {
  uint32_t offset = 0;
  uint32_t size = 0;  // bytes
};

struct Tracepoint {
  uint32_t id = 0;
  std::map<std::string, TraceField, std::less<>> fields;
};

// The text of a tracepoint's file `format`. InvalidArgument: it is none.
absl::StatusOr<Tracepoint> ParseTracepoint(std::string_view text);

struct SchedulerTracepoints {
  uint32_t switch_id = 0;
  uint32_t waking_id = 0;
  uint32_t migrate_id = 0;
  // Of all three.
  TraceField flags;
  TraceField current;  // the thread that was running, by the machine's number
  // Of a switch.
  TraceField prev_tid;
  TraceField prev_state;
  TraceField prev_name;
  TraceField next_tid;
  TraceField next_name;
  // Of a wake-up.
  TraceField woken_tid;
  TraceField woken_cpu;
  // Of a move to another CPU.
  TraceField moved_tid;
  TraceField moved_to;
};

// `mounts`: where tracefs may be, the first one that has the scheduler's tracepoints counts.
// NotFound: it is mounted nowhere; PermissionDenied: it may not be read; FailedPrecondition: this
// kernel's tracepoints are not as they are known.
absl::StatusOr<SchedulerTracepoints> FindSchedulerTracepoints(
    const std::vector<std::filesystem::path>& mounts);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SCHEDULING_TRACEPOINTS_H_
