// SPDX-License-Identifier: Apache-2.0
// Turns stamps of packets, the kernel's and those of network devices, into RAW stamps that keep the
// soundness rule: a send stamp is never late, a receive stamp never early.
//
// A packet that leaves meets the user's reading u, the kernel's stamp k, the device's stamp d and
// the wire, in this order; u <= k <= d <= departure. Each that is known to lie in an interval
// bounds the departure from below by the interval's lower end, so the latest of these ends is
// sound, and the closest to the truth. Coming packets meet them in the reverse order, and there the
// earliest of the upper ends is sound. So a device's stamp is given what is known already as the
// limit that it cannot be beyond: it never makes a stamp wider, and one that lies wholly beyond is
// false.
#ifndef SYNCLINE_AGENT_PROBE_UDP_STAMPER_H_
#define SYNCLINE_AGENT_PROBE_UDP_STAMPER_H_

#include <cstdint>
#include <map>
#include <optional>

#include "agent/probe/udp/counters.h"
#include "agent/probe/udp/probe_clock.h"
#include "agent/probe/udp/probe_socket.h"
#include "agent/probe/udp/stamp_map.h"

namespace syncline::probe {

class Stamper {
 public:
  // Neither is owned.
  Stamper(ProbeClock* clock, ProbeCounters* counters);

  // Reads the wall clock. Called before packets go, and now and then while packets are waited for
  // without sleeping: the closer to a stamp, the narrower its mapping.
  void ReadWall();
  void ReadWallIfOlderThan(int64_t age_ns, int64_t now_raw_ns);
  // Reads a device's clock, which takes a microsecond. Called before packets go.
  void ReadHardware(int clock);

  // The latest RAW instant at which the packet had certainly not left yet, the earliest at which it
  // had certainly come, from a stamp that was fetched just now. `before_raw_ns` is what the user
  // read before the packet was sent (of a received packet: before that to which it is the answer,
  // if to any), `after_raw_ns` after it was got; the stamp lies between them. Nothing when the
  // stamp cannot be trusted: the user's readings, which are RAW, then have to do.
  std::optional<int64_t> SentRawNs(int64_t realtime_ns, int64_t before_raw_ns);
  std::optional<int64_t> ReceivedRawNs(int64_t realtime_ns, std::optional<int64_t> before_raw_ns,
                                       int64_t after_raw_ns);
  // Of a device's stamp. `before_raw_ns` and `after_raw_ns` may also be what the functions above
  // said of the kernel's stamp of the same packet.
  std::optional<int64_t> SentRawNs(const HardwareStamp& stamp, int64_t before_raw_ns);
  std::optional<int64_t> ReceivedRawNs(const HardwareStamp& stamp,
                                       std::optional<int64_t> before_raw_ns, int64_t after_raw_ns);

 private:
  // Nothing, too, when the stamp does not lie after `before_raw_ns`.
  std::optional<StampMap::Interval> Map(StampMap::Stamp stamp,
                                        std::optional<int64_t> before_raw_ns);

  std::optional<StampMap::Interval> MapHardware(const HardwareStamp& stamp,
                                                std::optional<int64_t> departed_after_raw_ns,
                                                std::optional<int64_t> before_raw_ns,
                                                int64_t after_raw_ns);

  ProbeClock* const clock_;
  ProbeCounters* const counters_;
  StampMap map_;
  std::map<int, StampMap> hardware_maps_;  // by clock
  int64_t rate_ppb_max_;
  int64_t last_read_raw_ns_ = 0;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_STAMPER_H_
