// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/ptp_clock.h"

#include <fcntl.h>
#include <linux/ptp_clock.h>
#include <sys/ioctl.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "agent/probe/udp/stamp_map.h"

namespace syncline::probe {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t RawNs() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

int64_t ToNs(const ptp_clock_time& time) { return int64_t{time.sec} * kNsPerSecond + time.nsec; }

// How the kernel numbers clocks that are files: the inverted descriptor, shifted by 3 for the kind.
clockid_t ClockOfFile(int fd) {
  return static_cast<clockid_t>((~static_cast<unsigned>(fd) << 3) | 3);
}

}  // namespace

std::string PtpClockPath(int clock) { return absl::StrCat("/dev/ptp", clock); }

std::unique_ptr<PtpClock> PtpClock::Open(const std::string& path, int* error_number) {
  *error_number = 0;
  // Older kernels tell the dialed frequency only to who could also change it.
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    *error_number = errno;
    return nullptr;
  }
  std::unique_ptr<PtpClock> opened(new PtpClock(fd));
  if (!opened->Read()) {
    *error_number = errno != 0 ? errno : ENODEV;
    return nullptr;
  }
  return opened;
}

PtpClock::PtpClock(int fd) : fd_(fd), dialed_ppb_max_(StampMap::kRatePpbMax) {
  ptp_clock_caps caps{};
  if (::ioctl(fd_, PTP_CLOCK_GETCAPS, &caps) == 0)
    dialed_ppb_max_ = std::abs(int64_t{caps.max_adj});
}

PtpClock::~PtpClock() { ::close(fd_); }

std::optional<ClockReading> PtpClock::Read() {
  // The rate first: were it changed between the two, the next reading would tell, and a stamp has
  // readings on both sides.
  const int64_t rate_ppb_max = RatePpbMax();
  std::optional<ClockReading> reading;
  if (driver_reads_raw_) reading = ReadByDriver();
  if (!reading) reading = ReadBracketed();
  if (reading) reading->rate_ppb_max = rate_ppb_max;
  return reading;
}

std::optional<ClockReading> PtpClock::ReadByDriver() {
  ptp_sys_offset_extended request{};
  request.n_samples = 1;
  // Which clock is read beside it. Kernels that do not know the field refuse what is not 0 there.
  request.rsv[0] = CLOCK_MONOTONIC_RAW;
  const int64_t before = RawNs();
  const bool read = ::ioctl(fd_, PTP_SYS_OFFSET_EXTENDED, &request) == 0;
  const int64_t after = RawNs();
  const ClockReading reading{.raw_before_ns = ToNs(request.ts[0][0]),
                             .clock_ns = ToNs(request.ts[0][1]),
                             .raw_after_ns = ToNs(request.ts[0][2])};
  if (read && IsOurs(reading, before, after)) return reading;
  driver_reads_raw_ = false;
  return std::nullopt;
}

std::optional<ClockReading> PtpClock::ReadBracketed() {
  ClockReading reading;
  timespec now;
  reading.raw_before_ns = RawNs();
  if (::clock_gettime(ClockOfFile(fd_), &now) != 0) return std::nullopt;
  reading.raw_after_ns = RawNs();
  reading.clock_ns = int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
  return reading;
}

int64_t PtpClock::RatePpbMax() const {
  timex discipline{};  // no modes: nothing is changed
  if (::clock_adjtime(ClockOfFile(fd_), &discipline) < 0) return dialed_ppb_max_ + kUndialedPpbMax;
  return std::abs(int64_t{discipline.freq}) * 1000 / 65536 + 1 + kUndialedPpbMax;
}

}  // namespace syncline::probe
