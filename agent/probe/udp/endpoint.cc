// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/endpoint.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace syncline::probe {

using clocksync::StampSource;

namespace {

// How long a round trip is waited for without sleeping, and a responder for the next request of a
// burst.
constexpr int64_t kSpinForAnswerNs = 500'000;
constexpr int64_t kSpinForRequestNs = 300'000;
constexpr int64_t kReadWhileSpinningNs = 10'000;
constexpr size_t kEdgesMax = 100'000;

}  // namespace

Endpoint::Endpoint(ProbeClock* clock, ProbeSocket* socket, SampleSink sink)
    : clock_(clock), socket_(socket), sink_(std::move(sink)), stamper_(clock, &counters_) {}

absl::Status Endpoint::AddPlan(const ProbePlan& plan) {
  if (plans_.contains(plan.plan_id)) {
    return absl::AlreadyExistsError(
        absl::StrCat("Probing plan ", plan.plan_id, " is already running"));
  }
  if (edges_.size() + plan.edges.size() > kEdgesMax) {
    return absl::InvalidArgumentError(absl::StrCat("Too many edges to probe: at most ", kEdgesMax));
  }
  std::set<EdgeKey> keys;
  for (const PlannedEdge& edge : plan.edges) {
    if (!keys.insert({plan.plan_id, edge.edge_id, edge.initiator}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("Edge ", edge.edge_id, " appears twice in probing plan ", plan.plan_id));
    }
    if (edge.initiator && edge.address.length() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("Edge ", edge.edge_id, " has no address to probe"));
    }
  }
  plans_.emplace(plan.plan_id, plan.key);
  offers_.clear();  // an administrator may have switched something on or off
  const int64_t now = clock_->RawNs();
  const auto initiated = static_cast<size_t>(
      std::count_if(plan.edges.begin(), plan.edges.end(),
                    [](const PlannedEdge& planned) { return planned.initiator; }));
  std::set<std::string_view> asking;
  for (const PlannedEdge& planned : plan.edges) {
    if (!planned.initiator) asking.insert(planned.peer);
  }
  for (const PlannedEdge& planned : plan.edges) {
    const bool both_ask = asking.contains(planned.peer);
    auto edge = std::make_unique<Edge>(plan, planned, ForEdge(plan.schedule, initiated, both_ask),
                                       &stamper_, now);
    if (planned.initiator) {
      due_.emplace(edge->due_raw_ns(), edge.get());
    }
    edges_.emplace(edge->key(), std::move(edge));
  }
  return absl::OkStatus();
}

void Endpoint::RemovePlan(uint64_t plan_id) {
  plans_.erase(plan_id);
  for (auto it = edges_.begin(); it != edges_.end();) {
    if (it->first.plan_id != plan_id) {
      ++it;
      continue;
    }
    due_.erase({it->second->due_raw_ns(), it->second.get()});
    it = edges_.erase(it);
  }
}

void Endpoint::Hurry(uint64_t plan_id, int64_t duration_ns) {
  const int64_t now = clock_->RawNs();
  for (auto& [key, edge] : edges_) {
    if (key.plan_id != plan_id || !key.initiator) continue;
    due_.erase({edge->due_raw_ns(), edge.get()});
    edge->FastUntil(now + duration_ns, now);
    due_.emplace(edge->due_raw_ns(), edge.get());
  }
}

int64_t Endpoint::OnTime() {
  const int64_t now = clock_->RawNs();
  GiveUpStamps(now);
  if (now < spin_until_raw_ns_) stamper_.ReadWallIfOlderThan(kReadWhileSpinningNs, now);
  // One at a time, the longest due: what has come meanwhile must not wait for a thousand others.
  if (!due_.empty() && due_.begin()->first <= now) {
    Edge* const edge = due_.begin()->second;
    due_.erase(due_.begin());
    SendRequest(edge, now);
    due_.emplace(edge->due_raw_ns(), edge);
  }
  const int64_t next = due_.empty() ? std::numeric_limits<int64_t>::max() : due_.begin()->first;
  return std::min(next, tracker_.NextDeadlineRawNs());
}

void Endpoint::AskDevice(const Address& peer, Edge* edge) {
  const std::string device = socket_->DeviceTowards(peer);
  auto offer = offers_.find(device);
  if (offer == offers_.end()) {
    offer = offers_.emplace(device, socket_->UseHardware(device)).first;
  }
  edge->ladder().set_device(device);
  edge->ladder().set_hardware(offer->second);
}

void Endpoint::SendRequest(Edge* edge, int64_t now_raw_ns) {
  // Here, and not where the plan comes from: the socket belongs to the thread that sends.
  if (!edge->ladder().hardware_asked()) AskDevice(edge->address(), edge);
  const ProbePacket request = edge->NextRequest(now_raw_ns);
  if (!Send(request, edge->address(), edge)) return;
  if (edge->spins(now_raw_ns)) {
    Spin(edge, now_raw_ns + kSpinForAnswerNs, now_raw_ns);
  }
}

bool Endpoint::Send(const ProbePacket& packet, const Address& to, Edge* edge) {
  PacketBytes bytes = EncodePacket(packet);
  // Sealed before any clock is read for this packet.
  plans_.find(packet.plan_id)->second.Seal(&bytes);
  const int hardware_clock = edge->ladder().hardware_clock();
  if (hardware_clock >= 0) stamper_.ReadHardware(hardware_clock);
  stamper_.ReadWall();
  const auto sent = socket_->Send(to, bytes);
  if (!sent.ok()) {
    ++counters_.send_failures;
    return false;
  }
  ++counters_.packets_sent;
  if (edge->ladder().kernel_wanted()) {
    tracker_.Sent(sent->id, edge->key(), packet.sequence, sent->before_raw_ns, hardware_clock >= 0);
  }
  Deliver(edge, edge->book().Sent(packet.sequence, sent->before_raw_ns));
  // Software stamps are there at once, mostly.
  while (const auto stamp = socket_->NextTransmitStamp()) OnTransmitStamp(*stamp);
  return true;
}

void Endpoint::OnReceive(const ReceivedPacket& received) {
  ++counters_.packets_received;
  if (received.size_bytes != kPacketBytes) {
    ++counters_.wrong_size;
    return;
  }
  const auto packet = DecodePacket(received.bytes());
  if (!packet) {
    ++counters_.malformed;
    return;
  }
  const auto plan = plans_.find(packet->plan_id);
  const auto edge = edges_.find(
      EdgeKey{packet->plan_id, packet->edge_id, packet->kind == ProbePacket::Kind::kResponse});
  if (plan == plans_.end() || edge == edges_.end()) {
    ++counters_.unknown_plan;
    return;
  }
  if (!plan->second.IsGenuine(received.bytes())) {
    ++counters_.forged;
    return;
  }
  OnPacket(*packet, received, edge->second.get());
}

void Endpoint::OnPacket(const ProbePacket& packet, const ReceivedPacket& received, Edge* edge) {
  const int64_t due_before = edge->due_raw_ns();
  const bool initiator = edge->key().initiator;
  const bool accepted = initiator
                            ? edge->AcceptResponse(packet, received.after_raw_ns)
                            : edge->AcceptRequest(packet, received.from, received.after_raw_ns);
  if (!accepted) {
    ++counters_.replayed;
    return;
  }
  if (received.realtime_ns == 0 && edge->ladder().kernel_wanted()) {
    ++counters_.receive_stamps_missing;
  }
  const bool spinning = received.after_raw_ns <= spin_until_raw_ns_;
  // The first request of a burst is not waited for.
  if (initiator || spinner_ == edge) edge->ladder().OnSpinResult(spinning);
  const Arrival arrival{
      .after_raw_ns = received.after_raw_ns,
      .realtime_ns = edge->ladder().kernel_wanted() ? received.realtime_ns : 0,
      .spinning = spinning,
      .hardware = edge->ladder().hardware_clock() >= 0 ? received.hardware : HardwareStamp{}};
  Deliver(edge, edge->book().Received(packet.sequence, arrival));
  if (packet.report) Deliver(edge, edge->book().Reported(packet.report_sequence, *packet.report));
  if (!initiator) {
    Answer(packet, received, edge);
    return;
  }
  if (edge->due_raw_ns() != due_before) {
    due_.erase({due_before, edge});
    due_.emplace(edge->due_raw_ns(), edge);
  }
  if (!edge->in_burst() && spinner_ == edge) spin_until_raw_ns_ = 0;
}

void Endpoint::Answer(const ProbePacket& request, const ReceivedPacket& received, Edge* edge) {
  if (!Send(edge->ResponseTo(request), received.from, edge)) return;
  if (spinner_ == edge) {
    spin_until_raw_ns_ = 0;
    spinner_ = nullptr;
  }
  if (edge->ladder().spins() && request.spin && request.burst_remaining > 0) {
    const int64_t now = clock_->RawNs();
    Spin(edge, now + kSpinForRequestNs, now);
  }
  if (!edge->ladder().hardware_asked()) AskDevice(received.from, edge);
}

void Endpoint::Spin(Edge* edge, int64_t until_raw_ns, int64_t now_raw_ns) {
  const int64_t from = std::max(now_raw_ns, spin_until_raw_ns_);
  if (until_raw_ns <= from) return;
  if (!spin_budget_.Take(until_raw_ns - from, now_raw_ns)) {
    edge->ladder().OnSpinRefused();
    return;
  }
  spin_until_raw_ns_ = until_raw_ns;
  spinner_ = edge;
}

void Endpoint::OnTransmitStamp(const TransmitStamp& stamp) {
  using Kind = TransmitTracker::Kind;
  if (stamp.realtime_ns != 0) {
    const auto awaited = tracker_.Stamped(stamp.id, Kind::kKernel);
    counters_.transmit_stamps_late += awaited ? 0 : 1;
    if (Edge* edge = EdgeOf(awaited)) {
      Deliver(edge, edge->book().TransmitStamped(awaited->sequence, stamp.realtime_ns));
    }
  }
  if (stamp.hardware.ns != 0) {
    // Not awaited: the socket has it asked for the sake of another edge, or it is late.
    const auto awaited = tracker_.Stamped(stamp.id, Kind::kHardware);
    if (Edge* edge = EdgeOf(awaited)) {
      Deliver(edge, edge->book().HardwareStamped(awaited->sequence, stamp.hardware));
    }
  }
}

void Endpoint::GiveUpStamps(int64_t now_raw_ns) {
  while (const auto awaited = tracker_.Expired(now_raw_ns)) {
    counters_.transmit_stamps_missing += awaited->kernel ? 1 : 0;
    counters_.hardware_stamps_missing += awaited->hardware ? 1 : 0;
    Edge* const edge = EdgeOf(awaited);
    if (edge == nullptr) continue;
    if (awaited->kernel) Deliver(edge, edge->book().TransmitStampMissing(awaited->sequence));
    if (awaited->hardware) Deliver(edge, edge->book().HardwareStampMissing(awaited->sequence));
  }
}

Edge* Endpoint::EdgeOf(const std::optional<TransmitTracker::Awaited>& awaited) const {
  if (!awaited) return nullptr;
  const auto edge = edges_.find(awaited->edge);
  return edge == edges_.end() ? nullptr : edge->second.get();
}

void Endpoint::Deliver(Edge* edge, const ExchangeBook::MaybeSample& sample) {
  if (!sample) return;
  if (sample->t4_local_ns < sample->t1_local_ns || sample->t3_remote_ns < sample->t2_remote_ns) {
    ++counters_.samples_impossible;
    return;
  }
  ++counters_.samples;
  edge->CountSample(sample->source);
  sink_({.plan_id = edge->key().plan_id,
         .edge_id = edge->key().edge_id,
         .initiator = edge->key().initiator,
         .sample = *sample});
}

std::vector<EdgeStatus> Endpoint::Status() const {
  const int64_t now = clock_->RawNs();
  std::vector<EdgeStatus> result;
  result.reserve(edges_.size());
  for (const auto& [key, edge] : edges_) result.push_back(edge->Status(now));
  return result;
}

}  // namespace syncline::probe
