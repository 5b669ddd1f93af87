// SPDX-License-Identifier: Apache-2.0
// The clock of a network device (a PTP hardware clock, /dev/ptpN), which is only ever read: whoever
// steers it (ptp4l, phc2sys, chrony) owns it.
//
// Its readings. PTP_SYS_OFFSET_EXTENDED lets the driver read RAW right before and right after the
// device's register (Linux 6.12 and later; before, it knew CLOCK_REALTIME only); else
// clock_gettime is put between two readings of RAW. PTP_SYS_OFFSET_PRECISE is not used: it says one
// number, without how wrong that may be.
//
// Its rate against RAW. The kernel remembers what frequency was dialed last, and tells
// (clock_adjtime that changes nothing). To that comes kUndialedPpbMax: an Ethernet oscillator is
// within 100 ppm of its nominal rate (IEEE 802.3), RAW is taken to be so too, and the rest is for
// who steers the clock out of the kernel's sight (firmware, or the host of a virtual machine).
// Where the frequency is not told, because the device could be opened for reading only and Linux is
// older than 6.15, the device's own limit counts (PTP_CLOCK_GETCAPS: often several percent), which
// is sound and wide. Steps are the business of stamp_map.h.
#ifndef SYNCLINE_AGENT_PROBE_UDP_PTP_CLOCK_H_
#define SYNCLINE_AGENT_PROBE_UDP_PTP_CLOCK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/probe/udp/probe_clock.h"

namespace syncline::probe {

// The file of clock N.
std::string PtpClockPath(int clock);

class PtpClock {
 public:
  static constexpr int64_t kUndialedPpbMax = 300'000;

  // Nothing, and why not (errno) in `error_number`, when it cannot be read.
  static std::unique_ptr<PtpClock> Open(const std::string& path, int* error_number);
  PtpClock(const PtpClock&) = delete;
  PtpClock& operator=(const PtpClock&) = delete;
  ~PtpClock();

  std::optional<ClockReading> Read();

  // Whether the RAW that a driver read is the RAW that this process read around it. It is not in a
  // time namespace, nor where the driver left its part out.
  static bool IsOurs(const ClockReading& by_driver, int64_t before_raw_ns, int64_t after_raw_ns) {
    return before_raw_ns <= by_driver.raw_before_ns &&
           by_driver.raw_before_ns <= by_driver.raw_after_ns &&
           by_driver.raw_after_ns <= after_raw_ns;
  }

 private:
  explicit PtpClock(int fd);
  std::optional<ClockReading> ReadBracketed();
  std::optional<ClockReading> ReadByDriver();
  int64_t RatePpbMax() const;

  const int fd_;
  bool driver_reads_raw_ = true;  // until it refuses
  int64_t dialed_ppb_max_ = 0;    // the device's limit
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PTP_CLOCK_H_
