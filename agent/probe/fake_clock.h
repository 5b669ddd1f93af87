// SPDX-License-Identifier: Apache-2.0
// A clock for tests.
#ifndef SYNCLINE_AGENT_PROBE_FAKE_CLOCK_H_
#define SYNCLINE_AGENT_PROBE_FAKE_CLOCK_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "agent/probe/clock.h"

namespace syncline::agent {

// Time goes on only when somebody sleeps, and by 100 ns a reading so that spinning ends.
class FakeClock : public Clock {
 public:
  int64_t RawNs() override { return now_ns += 100; }
  int64_t MonotonicNs() override { return RawNs() + 1'000'000; }
  int64_t RealtimeNs() override { return RawNs() + realtime_offset_ns; }
  clocksync::ClockTuple Tuple() override { return {}; }
  void SleepNs(int64_t duration_ns) override {
    now_ns += duration_ns;
    if (on_sleep) on_sleep();
  }
  std::atomic<int64_t> now_ns = 1'000'000'000;
  std::atomic<int64_t> realtime_offset_ns = 0;
  std::function<void()> on_sleep;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_PROBE_FAKE_CLOCK_H_
