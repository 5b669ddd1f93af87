// SPDX-License-Identifier: Apache-2.0
// One side of one edge: what to send next, what to accept, and how it goes.
#ifndef SYNCLINE_AGENT_PROBE_UDP_EDGE_H_
#define SYNCLINE_AGENT_PROBE_UDP_EDGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "agent/probe/udp/exchange_book.h"
#include "agent/probe/udp/packet.h"
#include "agent/probe/udp/probe_plan.h"
#include "agent/probe/udp/replay_window.h"
#include "agent/probe/udp/schedule.h"
#include "agent/probe/udp/stamp_ladder.h"
#include "agent/probe/udp/stamper.h"
#include "agent/probe/udp/transmit_tracker.h"

namespace syncline::probe {

class Edge {
 public:
  // `schedule`: the plan's, for this edge. `stamper` is not owned.
  Edge(const ProbePlan& plan, const PlannedEdge& edge, const ScheduleOptions& schedule,
       Stamper* stamper, int64_t now_raw_ns);

  const EdgeKey& key() const { return key_; }
  const Address& address() const { return address_; }
  ExchangeBook& book() { return book_; }
  StampLadder& ladder() { return ladder_; }

  // ---- Initiator ----
  // When it wants to send, RAW ns; never for a responder.
  int64_t due_raw_ns() const { return due_raw_ns_; }
  ProbePacket NextRequest(int64_t now_raw_ns);
  // False for an answer to nothing that is open: replayed, or later than a burst and a half.
  bool AcceptResponse(const ProbePacket& response, int64_t now_raw_ns);
  void FastUntil(int64_t raw_ns, int64_t now_raw_ns);
  bool in_burst() const { return burst_remaining_ > 0; }
  // Whether to wait for answers without sleeping. With kernel stamps only while bursts come
  // quickly: at the beginning of a recording, and when told to hurry. It narrows the bound by a
  // tenth and takes three times the processor time.
  bool spins(int64_t now_raw_ns) const {
    return ladder_.spins() &&
           (ladder_.rung() > clocksync::StampSource::kKernel || schedule_.is_fast(now_raw_ns));
  }

  // ---- Responder ----
  // False for a request that came before.
  bool AcceptRequest(const ProbePacket& request, const Address& from, int64_t now_raw_ns);
  ProbePacket ResponseTo(const ProbePacket& request) const;

  void CountSample(clocksync::StampSource source) {
    ++status_.samples_by_source[static_cast<size_t>(source)];
  }
  EdgeStatus Status(int64_t now_raw_ns) const;

 private:
  // An exchange that was begun and not answered yet.
  struct Open {
    uint64_t sequence = ProbePacket::kNoSequence;
    uint64_t nonce = 0;
  };
  static constexpr size_t kOpenMax = 32;  // as many as the book remembers

  const EdgeKey key_;
  Address address_;
  const bool spin_allowed_;
  StampLadder ladder_;
  ExchangeBook book_;
  BurstSchedule schedule_;
  std::array<Open, kOpenMax> open_;
  uint64_t next_sequence_ = 0;
  uint8_t burst_remaining_ = 0;
  int64_t last_sent_raw_ns_ = 0;
  int64_t due_raw_ns_ = std::numeric_limits<int64_t>::max();
  bool remote_wants_spin_ = false;
  ReplayWindow replay_window_;
  int64_t last_heard_raw_ns_;
  EdgeStatus status_;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_EDGE_H_
