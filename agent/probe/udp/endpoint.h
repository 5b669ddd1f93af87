// SPDX-License-Identifier: Apache-2.0
// The probing of one host: both roles of all edges on one socket, as a state machine without
// threads, waits or real clocks. probe_thread.h runs it.
//
// Each edge has an initiator, which asks in bursts, and a responder, which answers at once and
// never with more bytes than it got. What comes is checked in this order and dropped and counted at
// the first that fails: size, form, plan and edge known, MAC, replay (responder: sequence window;
// initiator: an open exchange with this nonce).
//
// Thread-compatible: one thread at a time.
#ifndef SYNCLINE_AGENT_PROBE_UDP_ENDPOINT_H_
#define SYNCLINE_AGENT_PROBE_UDP_ENDPOINT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/probe/udp/counters.h"
#include "agent/probe/udp/edge.h"
#include "agent/probe/udp/packet.h"
#include "agent/probe/udp/probe_clock.h"
#include "agent/probe/udp/probe_plan.h"
#include "agent/probe/udp/probe_socket.h"
#include "agent/probe/udp/spin_budget.h"
#include "agent/probe/udp/stamper.h"
#include "agent/probe/udp/transmit_tracker.h"

namespace syncline::probe {

class Endpoint {
 public:
  // Nothing is owned.
  Endpoint(ProbeClock* clock, ProbeSocket* socket, SampleSink sink);

  // Begins at once. AlreadyExists for a plan that is running, InvalidArgument for one that
  // contradicts itself.
  absl::Status AddPlan(const ProbePlan& plan);
  void RemovePlan(uint64_t plan_id);
  // The plan's edges are probed at the fast rate for so long from now.
  void Hurry(uint64_t plan_id, int64_t duration_ns);

  // Sends what is due. When to come again at the latest, RAW ns.
  int64_t OnTime();
  void OnReceive(const ReceivedPacket& received);
  void OnTransmitStamp(const TransmitStamp& stamp);
  // Until then whoever runs the endpoint polls without sleeping.
  int64_t spin_until_raw_ns() const { return spin_until_raw_ns_; }

  const ProbeCounters& counters() const { return counters_; }
  std::vector<EdgeStatus> Status() const;

 private:
  void OnPacket(const ProbePacket& packet, const ReceivedPacket& received, Edge* edge);
  void Answer(const ProbePacket& request, const ReceivedPacket& received, Edge* edge);
  void SendRequest(Edge* edge, int64_t now_raw_ns);
  bool Send(const ProbePacket& packet, const Address& to, Edge* edge);
  void Deliver(Edge* edge, const ExchangeBook::MaybeSample& sample);
  // What the device towards `peer` offers; asked once per device and plan.
  void AskDevice(const Address& peer, Edge* edge);
  void Spin(Edge* edge, int64_t until_raw_ns, int64_t now_raw_ns);
  void GiveUpStamps(int64_t now_raw_ns);
  // Nothing when nothing was awaited, or the edge is gone.
  Edge* EdgeOf(const std::optional<TransmitTracker::Awaited>& awaited) const;

  ProbeClock* const clock_;
  ProbeSocket* const socket_;
  const SampleSink sink_;
  ProbeCounters counters_;
  Stamper stamper_;
  TransmitTracker tracker_;
  std::map<uint64_t, PacketSealer> plans_;  // by plan id
  std::map<EdgeKey, std::unique_ptr<Edge>> edges_;
  std::map<std::string, HardwareOffer> offers_;  // by device
  std::set<std::pair<int64_t, Edge*>> due_;      // initiators, by when they want to act
  int64_t spin_until_raw_ns_ = 0;
  const Edge* spinner_ = nullptr;  // who last asked to spin; only compared
  SpinBudget spin_budget_;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_ENDPOINT_H_
