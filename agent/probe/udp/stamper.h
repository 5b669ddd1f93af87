// Turns the kernel's stamps of packets into RAW stamps that keep the soundness rule: a send stamp
// is never late, a receive stamp never early.
#ifndef SYNCLINE_AGENT_PROBE_UDP_STAMPER_H_
#define SYNCLINE_AGENT_PROBE_UDP_STAMPER_H_

#include <cstdint>
#include <optional>

#include "agent/probe/udp/counters.h"
#include "agent/probe/udp/probe_clock.h"
#include "agent/probe/udp/wall_map.h"

namespace syncline::probe {

class Stamper {
 public:
  // Neither is owned.
  Stamper(ProbeClock* clock, ProbeCounters* counters);

  // Reads the wall clock once more. Called just before and just after packets go and come: the
  // closer to the stamp, the narrower the mapping.
  void ReadWall() { map_.Add(clock_->ReadWall()); }

  // The latest RAW instant at which the packet had certainly not left yet, the earliest at which it
  // had certainly come. `before_raw_ns` and `after_raw_ns` are what the user read before and after
  // the call. Nothing when the stamp cannot be trusted (a step of the wall clock, a contradiction):
  // the user's reading, which is RAW, then has to do.
  std::optional<int64_t> SentRawNs(int64_t realtime_ns, int64_t before_raw_ns);
  std::optional<int64_t> ReceivedRawNs(int64_t realtime_ns, int64_t after_raw_ns);

 private:
  std::optional<WallMap::Interval> Map(int64_t realtime_ns);
  void Contradicted();

  ProbeClock* const clock_;
  ProbeCounters* const counters_;
  WallMap map_;
  int64_t rate_ppb_max_;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_STAMPER_H_
