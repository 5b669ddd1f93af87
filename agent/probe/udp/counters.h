// SPDX-License-Identifier: Apache-2.0
// What a probing endpoint counts: everything that was dropped, missing or refused, each by its
// reason.
#ifndef SYNCLINE_AGENT_PROBE_UDP_COUNTERS_H_
#define SYNCLINE_AGENT_PROBE_UDP_COUNTERS_H_

#include <cstdint>

namespace syncline::probe {

struct ProbeCounters {
  uint64_t packets_sent = 0;
  uint64_t send_failures = 0;
  uint64_t packets_received = 0;
  // Received and dropped:
  uint64_t wrong_size = 0;
  uint64_t malformed = 0;     // right size, not a probe packet of this version
  uint64_t unknown_plan = 0;  // no such plan here, or no such edge in it
  uint64_t forged = 0;        // wrong MAC
  uint64_t replayed = 0;      // seen before, or an answer to nothing that was asked
  // Stamps that were not had; the exchange then goes on with the user's:
  uint64_t transmit_stamps_missing = 0;
  uint64_t transmit_stamps_late = 0;
  uint64_t receive_stamps_missing = 0;
  uint64_t wall_steps = 0;           // the kernel told of a step of CLOCK_REALTIME
  uint64_t wall_contradictions = 0;  // stamps that fit no reading of CLOCK_REALTIME
  uint64_t stamps_unbracketed = 0;   // no reading of it close before, or close after
  // Stamps of network devices that were not had or not used; the kernel's then are:
  uint64_t hardware_stamps_missing = 0;  // of packets that were sent
  uint64_t hardware_contradictions = 0;  // fit no reading of the device's clock, or the packet not
  uint64_t hardware_unbracketed = 0;     // no reading of that clock close before, or close after
  uint64_t samples = 0;
  uint64_t samples_impossible = 0;  // stamps in an order that cannot be; dropped
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_COUNTERS_H_
