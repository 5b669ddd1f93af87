// SPDX-License-Identifier: Apache-2.0
// The seam to the clocks that probing needs: CLOCK_MONOTONIC_RAW, in which every sample is given,
// CLOCK_REALTIME, in which the kernel stamps packets, and the clocks of network devices, in which
// these do (PTP hardware clocks; clock N is /dev/ptpN).
#ifndef SYNCLINE_AGENT_PROBE_UDP_PROBE_CLOCK_H_
#define SYNCLINE_AGENT_PROBE_UDP_PROBE_CLOCK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace syncline::probe {

class PtpClock;

// Another clock, read at some RAW instant in [raw_before_ns, raw_after_ns].
struct ClockReading {
  int64_t raw_before_ns = 0;
  int64_t clock_ns = 0;
  int64_t raw_after_ns = 0;
  // At most how fast it may run against RAW as it was disciplined then; 0: asked for separately.
  int64_t rate_ppb_max = 0;
};

class ProbeClock {
 public:
  virtual ~ProbeClock() = default;
  virtual int64_t RawNs() = 0;
  virtual ClockReading ReadWall() = 0;
  // At most how fast REALTIME may run against RAW while the kernel's discipline stays as it is now.
  virtual int64_t WallRatePpbMax() = 0;
  // Whether CLOCK_REALTIME was set (stepped) since the last call.
  virtual bool WallWasSet() = 0;
  // Makes a device's clock readable. 0, or why not (errno).
  virtual int OpenHardware(int clock) = 0;
  // Nothing when it was not opened, or is gone. With the rate.
  virtual std::optional<ClockReading> ReadHardware(int clock) = 0;
};

class SystemProbeClock : public ProbeClock {
 public:
  SystemProbeClock();
  SystemProbeClock(const SystemProbeClock&) = delete;
  SystemProbeClock& operator=(const SystemProbeClock&) = delete;
  ~SystemProbeClock() override;

  int64_t RawNs() override;
  ClockReading ReadWall() override;
  int64_t WallRatePpbMax() override;
  bool WallWasSet() override;
  int OpenHardware(int clock) override;
  std::optional<ClockReading> ReadHardware(int clock) override;

 private:
  void Arm();
  int timer_ = -1;  // a timerfd that is never due but canceled by a step
  std::map<int, std::unique_ptr<PtpClock>> hardware_;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PROBE_CLOCK_H_
