// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/clock.h"

#include <sys/timex.h>
#include <time.h>

#include <cerrno>
#include <sstream>
#include <string>

#include "common/files.h"

namespace syncline::agent {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
// The narrowest of a few brackets: a reading that was interrupted says little.
constexpr int kTupleTries = 3;

int64_t ReadClock(clockid_t id) {
  timespec now;
  ::clock_gettime(id, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

}  // namespace

int64_t SystemClock::RawNs() { return ReadClock(CLOCK_MONOTONIC_RAW); }
int64_t SystemClock::MonotonicNs() { return ReadClock(CLOCK_MONOTONIC); }
int64_t SystemClock::RealtimeNs() { return ReadClock(CLOCK_REALTIME); }

clocksync::ClockTuple SystemClock::Tuple() {
  clocksync::ClockTuple best;
  for (int i = 0; i < kTupleTries; ++i) {
    clocksync::ClockTuple tuple;
    tuple.raw_before_ns = ReadClock(CLOCK_MONOTONIC_RAW);
    tuple.monotonic_ns = ReadClock(CLOCK_MONOTONIC);
    tuple.realtime_ns = ReadClock(CLOCK_REALTIME);
    tuple.boottime_ns = ReadClock(CLOCK_BOOTTIME);
    tuple.raw_after_ns = ReadClock(CLOCK_MONOTONIC_RAW);
    const int64_t width = tuple.raw_after_ns - tuple.raw_before_ns;
    if (i == 0 || width < best.raw_after_ns - best.raw_before_ns) best = tuple;
  }
  timex discipline{};
  if (::adjtimex(&discipline) >= 0) {
    best.adjtimex_freq = discipline.freq;
    best.adjtimex_tick_us = static_cast<int32_t>(discipline.tick);
    best.adjtimex_status = discipline.status;
  }
  return best;
}

void SystemClock::SleepNs(int64_t duration_ns) {
  if (duration_ns <= 0) return;
  timespec rest{.tv_sec = duration_ns / kNsPerSecond, .tv_nsec = duration_ns % kNsPerSecond};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) {
  }
}

int64_t ThreadCpuNs() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

int64_t TimeNamespaceShiftNs(const std::filesystem::path& proc) {
  auto text = ReadFile(proc / "self" / "timens_offsets");
  if (!text.ok()) return 0;
  std::istringstream lines(*text);
  for (std::string clock; lines >> clock;) {
    int64_t seconds = 0;
    int64_t ns = 0;
    if (!(lines >> seconds >> ns)) return 0;
    if (clock == "monotonic") return seconds * kNsPerSecond + ns;
  }
  return 0;
}

}  // namespace syncline::agent
