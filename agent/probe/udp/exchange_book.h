// SPDX-License-Identifier: Apache-2.0
// One side's memory of an edge's recent exchanges: its own stamps as they become known, the other
// side's as they are reported, and a sample as soon as all four are there. The same for both roles.
#ifndef SYNCLINE_AGENT_PROBE_UDP_EXCHANGE_BOOK_H_
#define SYNCLINE_AGENT_PROBE_UDP_EXCHANGE_BOOK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "agent/probe/udp/packet.h"
#include "agent/probe/udp/stamp_ladder.h"
#include "agent/probe/udp/stamper.h"
#include "clocksync/samples.h"

namespace syncline::probe {

// A packet got by this side.
struct Arrival {
  int64_t after_raw_ns = 0;  // read by the user
  int64_t realtime_ns = 0;   // the kernel's stamp; 0: none
  bool spinning = false;     // got without sleeping
  HardwareStamp hardware;    // the device's stamp
};

class ExchangeBook {
 public:
  // `initiator`: this side sends the requests. The pointers are not owned.
  ExchangeBook(bool initiator, Stamper* stamper, StampLadder* ladder);

  // Each of these may complete a sample, which is then returned.
  using MaybeSample = std::optional<clocksync::ProbeSample>;
  MaybeSample Sent(uint64_t sequence, int64_t before_raw_ns);
  MaybeSample Received(uint64_t sequence, const Arrival& arrival);
  MaybeSample TransmitStamped(uint64_t sequence, int64_t realtime_ns);
  MaybeSample TransmitStampMissing(uint64_t sequence);
  MaybeSample HardwareStamped(uint64_t sequence, const HardwareStamp& stamp);
  MaybeSample HardwareStampMissing(uint64_t sequence);
  MaybeSample Reported(uint64_t sequence, const HostStamps& remote);

  // This side's stamps of an exchange, once they are final.
  std::optional<HostStamps> Own(uint64_t sequence) const;
  // The exchange of which the other side's stamps are to be asked next; kNoSequence: none.
  uint64_t NextToAsk();

 private:
  struct Entry {
    uint64_t sequence = ProbePacket::kNoSequence;
    // Read by the user; always there first.
    std::optional<int64_t> before_raw_ns;
    std::optional<Arrival> arrival;
    // The kernel's, mapped to RAW at once, while close readings of the wall clock are at hand.
    std::optional<int64_t> sent_raw_ns;
    std::optional<int64_t> received_raw_ns;
    bool transmit_known = false;  // the stamp came, or was given up
    // The device's, likewise; never wider than the kernel's.
    std::optional<int64_t> hardware_sent_raw_ns;
    std::optional<int64_t> hardware_received_raw_ns;
    bool hardware_known = false;
    std::optional<HostStamps> own;
    std::optional<HostStamps> remote;
    uint8_t asked = 0;
    bool done = false;
  };
  // Twice what may be open: a burst, while the stamps of the one before are still on their way.
  static constexpr size_t kCapacity = 32;

  Entry& At(uint64_t sequence);
  const Entry* Find(uint64_t sequence) const;
  Entry* Find(uint64_t sequence);
  // The device's stamps if both are there, else the kernel's if both are, else the user's for both:
  // one kind per exchange, so that the estimate is not pulled to one side.
  HostStamps OwnStamps(const Entry& entry) const;
  // Whether nothing better can come.
  bool IsFinal(const Entry& entry) const;
  MaybeSample Advance(Entry* entry);

  const bool initiator_;
  Stamper* const stamper_;
  StampLadder* const ladder_;
  std::array<Entry, kCapacity> entries_;  // at sequence % kCapacity
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_EXCHANGE_BOOK_H_
