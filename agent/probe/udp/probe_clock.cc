// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/probe_clock.h"

#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <utility>

#include "agent/probe/udp/ptp_clock.h"

namespace syncline::probe {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kPpbPerTickUs = 100'000;  // a tick is 10 ms
constexpr int64_t kTickUs = 10'000;
// What adjtime() may add, invisibly to adjtimex: 500 us a second.
constexpr int64_t kAdjtimePpbMax = 500'000;

int64_t Read(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

}  // namespace

SystemProbeClock::SystemProbeClock() {
  timer_ = ::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  Arm();
}

SystemProbeClock::~SystemProbeClock() {
  if (timer_ >= 0) ::close(timer_);
}

void SystemProbeClock::Arm() {
  // As far ahead as a 64-bit count of nanoseconds reaches.
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<int64_t>::max() / kNsPerSecond - 1;
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr);
}

int64_t SystemProbeClock::RawNs() { return Read(CLOCK_MONOTONIC_RAW); }

ClockReading SystemProbeClock::ReadWall() {
  ClockReading reading;
  reading.raw_before_ns = Read(CLOCK_MONOTONIC_RAW);
  reading.clock_ns = Read(CLOCK_REALTIME);
  reading.raw_after_ns = Read(CLOCK_MONOTONIC_RAW);
  return reading;
}

int64_t SystemProbeClock::WallRatePpbMax() {
  timex discipline{};
  // A container may forbid the call; then the fastest slew that Linux knows.
  if (::adjtimex(&discipline) < 0) return 100 * 1000 * 1000;
  const int64_t freq_ppb = std::abs(int64_t{discipline.freq}) * 1000 / 65536 + 1;
  const int64_t tick_ppb = std::abs(int64_t{discipline.tick} - kTickUs) * kPpbPerTickUs;
  // The kernel's own loop works off at most a quarter of what is left each second.
  const int64_t offset_ns =
      std::abs(int64_t{discipline.offset}) * ((discipline.status & STA_NANO) != 0 ? 1 : 1000);
  return freq_ppb + tick_ppb + kAdjtimePpbMax + offset_ns / 4;
}

bool SystemProbeClock::WallWasSet() {
  uint64_t expirations = 0;
  if (::read(timer_, &expirations, sizeof expirations) >= 0 || errno != ECANCELED) return false;
  Arm();
  return true;
}

int SystemProbeClock::OpenHardware(int clock) {
  if (hardware_.contains(clock)) return 0;
  int error_number = 0;
  auto opened = PtpClock::Open(PtpClockPath(clock), &error_number);
  if (opened != nullptr) hardware_.emplace(clock, std::move(opened));
  return error_number;
}

std::optional<ClockReading> SystemProbeClock::ReadHardware(int clock) {
  const auto found = hardware_.find(clock);
  return found == hardware_.end() ? std::nullopt : found->second->Read();
}

}  // namespace syncline::probe
