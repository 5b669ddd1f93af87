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

  // Reads the wall clock. Called before packets go, and now and then while packets are waited for
  // without sleeping: the closer to a stamp, the narrower its mapping.
  void ReadWall();
  void ReadWallIfOlderThan(int64_t age_ns, int64_t now_raw_ns);

  // The latest RAW instant at which the packet had certainly not left yet, the earliest at which it
  // had certainly come, from a stamp that was fetched just now. `before_raw_ns` is what the user
  // read before the packet was sent (of a received packet: before that to which it is the answer,
  // if to any), `after_raw_ns` after it was got; the stamp lies between them. Nothing when the
  // stamp cannot be trusted: the user's readings, which are RAW, then have to do.
  std::optional<int64_t> SentRawNs(int64_t realtime_ns, int64_t before_raw_ns);
  std::optional<int64_t> ReceivedRawNs(int64_t realtime_ns, std::optional<int64_t> before_raw_ns,
                                       int64_t after_raw_ns);

 private:
  // Nothing, too, when the stamp does not lie after `before_raw_ns`.
  std::optional<WallMap::Interval> Map(WallMap::Stamp stamp, std::optional<int64_t> before_raw_ns);

  ProbeClock* const clock_;
  ProbeCounters* const counters_;
  WallMap map_;
  int64_t rate_ppb_max_;
  int64_t last_read_raw_ns_ = 0;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_STAMPER_H_
