// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/edge.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace syncline::probe {

using clocksync::StampSource;

namespace {

// The next request of a burst waits for the answer to the one before, so that the two sides are
// warm and alternate; but not for long.
constexpr int64_t kAnswerWaitNs = 1'000'000;
// Some bursts at the slow rate.
constexpr int64_t kSilentNs = 5'000'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

Edge::Edge(const ProbePlan& plan, const PlannedEdge& edge, const ScheduleOptions& schedule,
           Stamper* stamper, int64_t now_raw_ns)
    : key_{plan.plan_id, edge.edge_id, edge.initiator},
      address_(edge.address),
      spin_allowed_(plan.spin_allowed),
      ladder_({.kernel_wanted = plan.kernel_stamps, .spin_allowed = plan.spin_allowed}),
      book_(edge.initiator, stamper, &ladder_),
      schedule_(schedule, plan.seed ^ (uint64_t{edge.edge_id} << 20), now_raw_ns),
      last_heard_raw_ns_(now_raw_ns) {
  status_.plan_id = plan.plan_id;
  status_.edge_id = edge.edge_id;
  status_.initiator = edge.initiator;
  status_.peer = edge.peer;
  if (edge.initiator) due_raw_ns_ = schedule_.NextBurstRawNs(now_raw_ns);
}

ProbePacket Edge::NextRequest(int64_t now_raw_ns) {
  if (burst_remaining_ == 0) {
    schedule_.BurstBegan(now_raw_ns);
    burst_remaining_ = std::max<uint8_t>(schedule_.exchanges_per_burst(), 1);
  }
  --burst_remaining_;
  ProbePacket request;
  request.kind = ProbePacket::Kind::kRequest;
  request.plan_id = key_.plan_id;
  request.edge_id = key_.edge_id;
  request.sequence = next_sequence_++;
  request.nonce = schedule_.random().Next();
  request.burst_remaining = burst_remaining_;
  request.spin = spin_allowed_ && (remote_wants_spin_ || spins(now_raw_ns));
  request.report_sequence = book_.NextToAsk();
  if (request.report_sequence != ProbePacket::kNoSequence) {
    request.report = book_.Own(request.report_sequence);
  }
  open_[request.sequence % kOpenMax] = {request.sequence, request.nonce};
  last_sent_raw_ns_ = now_raw_ns;
  ++status_.exchanges;
  due_raw_ns_ =
      burst_remaining_ > 0 ? now_raw_ns + kAnswerWaitNs : schedule_.NextBurstRawNs(now_raw_ns);
  return request;
}

bool Edge::AcceptResponse(const ProbePacket& response, int64_t now_raw_ns) {
  Open& open = open_[response.sequence % kOpenMax];
  if (open.sequence != response.sequence || response.sequence == ProbePacket::kNoSequence ||
      open.nonce != response.nonce) {
    return false;
  }
  open = Open{};
  ++status_.answered;
  last_heard_raw_ns_ = now_raw_ns;
  if (response.report) remote_wants_spin_ = response.report->source > StampSource::kKernel;
  if (burst_remaining_ > 0 && response.sequence + 1 == next_sequence_) {
    due_raw_ns_ = std::max(now_raw_ns, last_sent_raw_ns_ + schedule_.SpacingNs(spins(now_raw_ns)));
  }
  return true;
}

void Edge::FastUntil(int64_t raw_ns, int64_t now_raw_ns) {
  schedule_.FastUntil(raw_ns);
  if (key_.initiator && burst_remaining_ == 0) due_raw_ns_ = schedule_.NextBurstRawNs(now_raw_ns);
}

bool Edge::AcceptRequest(const ProbePacket& request, const Address& from, int64_t now_raw_ns) {
  if (!replay_window_.Accept(request.sequence)) return false;
  ++status_.exchanges;
  last_heard_raw_ns_ = now_raw_ns;
  address_ = from;
  return true;
}

ProbePacket Edge::ResponseTo(const ProbePacket& request) const {
  ProbePacket response;
  response.kind = ProbePacket::Kind::kResponse;
  response.plan_id = request.plan_id;
  response.edge_id = request.edge_id;
  response.sequence = request.sequence;
  response.nonce = request.nonce;
  response.report_sequence = request.report_sequence;
  if (request.report_sequence != ProbePacket::kNoSequence) {
    response.report = book_.Own(request.report_sequence);
  }
  return response;
}

EdgeStatus Edge::Status(int64_t now_raw_ns) const {
  EdgeStatus status = status_;
  status.rung = ladder_.rung();
  status.reason = ladder_.reason();
  const int64_t silent_ns = now_raw_ns - last_heard_raw_ns_;
  status.silent = silent_ns > kSilentNs;
  if (status.silent) {
    status.silence =
        key_.initiator
            ? absl::StrCat("no answer from ", status_.peer, " (UDP ", address_.ToString(), ") for ",
                           silent_ns / kNsPerSecond,
                           " s: is UDP blocked between the nodes, or is the probing plan unknown "
                           "to that node?")
            : absl::StrCat("no probe from ", status_.peer, " for ", silent_ns / kNsPerSecond,
                           " s: is UDP blocked between the nodes?");
  }
  return status;
}

}  // namespace syncline::probe
