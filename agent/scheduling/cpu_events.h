// SPDX-License-Identifier: Apache-2.0
// The scheduler's events of all CPUs, as the kernel's tracepoints give them through rings of perf
// events: one ring for each CPU. It sees every thread of the machine, which takes CAP_PERFMON.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_SCHEDULING_CPU_EVENTS_H_
#define SYNCLINE_AGENT_SCHEDULING_CPU_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/scheduling/scheduler_records.h"

namespace syncline::agent {

struct CpuDrain {
  std::vector<SchedulerEvent> events;  // unordered between CPUs
  // Everything before that is in this or an earlier Drain, or in a loss; perf's clock.
  int64_t complete_ns = 0;
  double fullest = 0;  // how full the fullest ring was, 0 to 1
  bool damaged = false;
};

class CpuEvents {
 public:
  virtual ~CpuEvents() = default;
  virtual void Enable() = 0;
  virtual void Disable() = 0;
  virtual std::set<int32_t> Cpus() const = 0;
  // What came since the last call. `now_ns` reads perf's clock. A ring without room has a loss from
  // its last record until it was emptied, of a number of events that only its next record tells.
  virtual CpuDrain Drain(const std::function<int64_t()>& now_ns) = 0;
};

struct CpuEventsOptions {
  std::vector<std::filesystem::path> tracefs = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
  std::filesystem::path online = "/sys/devices/system/cpu/online";
};

// Disabled at first. PermissionDenied: the kernel refuses; NotFound: tracefs is not mounted;
// FailedPrecondition: its tracepoints are others; ResourceExhausted: no descriptors or memory.
using OpenCpuEvents =
    std::function<absl::StatusOr<std::unique_ptr<CpuEvents>>(const CpuEventsOptions&)>;
absl::StatusOr<std::unique_ptr<CpuEvents>> OpenSchedulerEvents(const CpuEventsOptions& options);

// Whether that is allowed, by one event of one CPU: the rings of all take memory.
absl::Status ProbeSchedulerEvents(const CpuEventsOptions& options);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SCHEDULING_CPU_EVENTS_H_
