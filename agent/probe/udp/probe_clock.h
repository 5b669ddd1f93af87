// The seam to the clocks that probing needs: CLOCK_MONOTONIC_RAW, in which every sample is given,
// and CLOCK_REALTIME, in which the kernel stamps packets.
#ifndef SYNCLINE_AGENT_PROBE_UDP_PROBE_CLOCK_H_
#define SYNCLINE_AGENT_PROBE_UDP_PROBE_CLOCK_H_

#include <cstdint>

namespace syncline::probe {

// CLOCK_REALTIME, read at some RAW instant in [raw_before_ns, raw_after_ns].
struct WallReading {
  int64_t raw_before_ns = 0;
  int64_t realtime_ns = 0;
  int64_t raw_after_ns = 0;
};

class ProbeClock {
 public:
  virtual ~ProbeClock() = default;
  virtual int64_t RawNs() = 0;
  virtual WallReading ReadWall() = 0;
  // At most how fast REALTIME may run against RAW while the kernel's discipline stays as it is now.
  virtual int64_t WallRatePpbMax() = 0;
  // Whether CLOCK_REALTIME was set (stepped) since the last call.
  virtual bool WallWasSet() = 0;
};

class SystemProbeClock : public ProbeClock {
 public:
  SystemProbeClock();
  SystemProbeClock(const SystemProbeClock&) = delete;
  SystemProbeClock& operator=(const SystemProbeClock&) = delete;
  ~SystemProbeClock() override;

  int64_t RawNs() override;
  WallReading ReadWall() override;
  int64_t WallRatePpbMax() override;
  bool WallWasSet() override;

 private:
  void Arm();
  int timer_ = -1;  // a timerfd that is never due but canceled by a step
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_PROBE_CLOCK_H_
