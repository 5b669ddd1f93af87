// SPDX-License-Identifier: Apache-2.0
// The seam to the node's clocks. Times are ns.
#ifndef SYNCLINE_AGENT_PROBE_CLOCK_H_
#define SYNCLINE_AGENT_PROBE_CLOCK_H_

#include <cstdint>
#include <filesystem>

#include "clocksync/samples.h"

namespace syncline::agent {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t RawNs() = 0;        // CLOCK_MONOTONIC_RAW
  virtual int64_t MonotonicNs() = 0;  // CLOCK_MONOTONIC
  virtual int64_t RealtimeNs() = 0;   // CLOCK_REALTIME: for people only
  // All clocks in one bracket, with the kernel's discipline (adjtimex).
  virtual clocksync::ClockTuple Tuple() = 0;
  virtual void SleepNs(int64_t duration_ns) = 0;
};

class SystemClock : public Clock {
 public:
  int64_t RawNs() override;
  int64_t MonotonicNs() override;
  int64_t RealtimeNs() override;
  clocksync::ClockTuple Tuple() override;
  void SleepNs(int64_t duration_ns) override;
};

// Processor time of the calling thread.
int64_t ThreadCpuNs();

// What the agent's CLOCK_MONOTONIC is ahead of the machine's (/proc/self/timens_offsets).
int64_t TimeNamespaceShiftNs(const std::filesystem::path& proc = "/proc");

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_PROBE_CLOCK_H_
