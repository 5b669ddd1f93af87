// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/probe_service.h"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/probe/udp/probe_thread.h"
#include "common/status.h"

namespace syncline::probe {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kLeaseMsMax = 600'000;
constexpr int64_t kHurryMsMax = 60'000;
constexpr size_t kPlansMax = 8;
constexpr int kEdgesMax = 20'000;
// Two hours of eight hubs' probes; 50 bytes each.
constexpr size_t kSamplesKeptMax = 500'000;
constexpr size_t kSamplesInReply = 20'000;

v1::ProbeStampSource ToMessage(clocksync::StampSource source) {
  switch (source) {
    case clocksync::StampSource::kHardware:
      return v1::HARDWARE;
    case clocksync::StampSource::kKernel:
      return v1::KERNEL;
    case clocksync::StampSource::kUserSpin:
      return v1::USER_SPIN;
    case clocksync::StampSource::kUserBlocking:
      return v1::USER_BLOCKING;
    case clocksync::StampSource::kGrpc:
      break;
  }
  return v1::PROBE_STAMP_SOURCE_UNSPECIFIED;
}

void Fill(const ProbeCounters& counters, v1::ProbeCounters* message) {
  message->set_packets_sent_count(counters.packets_sent);
  message->set_packets_received_count(counters.packets_received);
  message->set_send_failures_count(counters.send_failures);
  message->set_wrong_size_count(counters.wrong_size);
  message->set_malformed_count(counters.malformed);
  message->set_unknown_plan_count(counters.unknown_plan);
  message->set_forged_count(counters.forged);
  message->set_replayed_count(counters.replayed);
  message->set_transmit_stamps_missing_count(counters.transmit_stamps_missing);
  message->set_receive_stamps_missing_count(counters.receive_stamps_missing);
  message->set_transmit_stamps_late_count(counters.transmit_stamps_late);
  message->set_wall_steps_count(counters.wall_steps);
  message->set_wall_contradictions_count(counters.wall_contradictions);
  message->set_stamps_unbracketed_count(counters.stamps_unbracketed);
  message->set_hardware_stamps_missing_count(counters.hardware_stamps_missing);
  message->set_hardware_contradictions_count(counters.hardware_contradictions);
  message->set_hardware_unbracketed_count(counters.hardware_unbracketed);
  message->set_samples_count(counters.samples);
  message->set_samples_impossible_count(counters.samples_impossible);
}

}  // namespace

absl::StatusOr<Address> Resolve(const std::string& host_and_port, int family) {
  const size_t colon = host_and_port.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("\"", host_and_port, "\" is not HOST:PORT"));
  }
  std::string host = host_and_port.substr(0, colon);
  const std::string port = host_and_port.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "*") host.clear();
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags =
      AI_NUMERICSERV | (host.empty() ? AI_PASSIVE : 0) | (family == AF_INET6 ? AI_V4MAPPED : 0);
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat("Cannot find the address of \"", host_and_port,
                                            "\": ", ::gai_strerror(error)));
  }
  const Address address(found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address;
}

ProbeService::ProbeService()
    : state_(absl::UnavailableError("This agent does not probe clocks over UDP: it listens on no "
                                    "TCP port, or has only just started")) {}

ProbeService::~ProbeService() = default;

absl::Status ProbeService::Listen(const std::string& host_and_port) {
  auto listen = [&]() -> absl::StatusOr<std::unique_ptr<ProbeThread>> {
    SYNCLINE_ASSIGN_OR_RETURN(const Address local, Resolve(host_and_port, AF_UNSPEC));
    return ProbeThread::Start({.listen = local}, sink());
  }();
  if (!listen.ok()) {
    const std::lock_guard lock(mutex_);
    state_ = listen.status();
    return state_;
  }
  const int family = (*listen)->address().get()->sa_family;
  Use(*std::move(listen), [family](const std::string& peer) { return Resolve(peer, family); });
  return absl::OkStatus();
}

void ProbeService::Use(std::unique_ptr<ProbeRunner> runner, Resolver resolver) {
  const std::lock_guard lock(mutex_);
  runner_ = std::move(runner);
  resolver_ = std::move(resolver);
  state_ = absl::OkStatus();
}

SampleSink ProbeService::sink() {
  return [this](const EdgeSample& sample) { Keep(sample); };
}

void ProbeService::Keep(const EdgeSample& sample) {
  if (!sample.initiator) return;  // its other end keeps it
  const std::lock_guard lock(samples_mutex_);
  const auto store = stores_.find(sample.plan_id);
  if (store == stores_.end()) return;
  store->second.kept.push_back(sample);
  if (store->second.kept.size() <= kSamplesKeptMax) return;
  store->second.kept.pop_front();
  ++store->second.first_number;
  ++store->second.dropped;
}

absl::StatusOr<v1::ProbePlanReply> ProbeService::Probe(const v1::ProbePlan& plan, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  SYNCLINE_RETURN_IF_ERROR(state_);
  const uint64_t number = plan.plan_number();
  if (plan.lease_ms() <= 0) {
    v1::ProbePlanReply reply = Describe(number);
    End(number);
    return reply;
  }
  if (!leases_.contains(number)) SYNCLINE_RETURN_IF_ERROR(Begin(plan));
  leases_[number] = now_ns + std::min(plan.lease_ms(), kLeaseMsMax) * kNsPerMs;
  if (plan.hurry_ms() > 0) {
    runner_->Hurry(number, std::min(plan.hurry_ms(), kHurryMsMax) * kNsPerMs);
  }
  return Describe(number);
}

absl::Status ProbeService::Begin(const v1::ProbePlan& message) {
  if (leases_.size() >= kPlansMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("This agent already follows ", kPlansMax,
                     " probing plans; a plan ends when its recording ends or its lease expires"));
  }
  SYNCLINE_ASSIGN_OR_RETURN(const ProbePlan plan, Understand(message));
  {
    const std::lock_guard lock(samples_mutex_);
    stores_[plan.plan_id];
  }
  const absl::Status added = runner_->AddPlan(plan);
  if (!added.ok()) End(plan.plan_id);
  return added;
}

absl::StatusOr<ProbePlan> ProbeService::Understand(const v1::ProbePlan& message) const {
  if (message.key().size() != kKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("A probing plan needs a key of ", kKeyBytes,
                                                   " bytes; this one has ", message.key().size(),
                                                   " (a plan that has ended cannot be extended)"));
  }
  if (message.edges_size() > kEdgesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("At most ", kEdgesMax, " edges in a probing plan"));
  }
  ProbePlan plan;
  plan.plan_id = message.plan_number();
  std::copy(message.key().begin(), message.key().end(), plan.key.begin());
  plan.seed = plan.plan_id;
  plan.spin_allowed = message.spin_allowed();
  for (const v1::ProbeEdge& edge : message.edges()) {
    PlannedEdge planned{
        .edge_id = edge.edge_number(), .initiator = edge.initiator(), .peer = edge.peer()};
    if (edge.initiator()) {
      auto address = resolver_(edge.peer_address());
      if (!address.ok()) return WithContext(address.status(), "Node " + edge.peer());
      planned.address = *address;
    }
    plan.edges.push_back(std::move(planned));
  }
  return plan;
}

void ProbeService::End(uint64_t plan_number) {
  leases_.erase(plan_number);
  if (runner_ != nullptr) runner_->RemovePlan(plan_number);
  const std::lock_guard lock(samples_mutex_);
  stores_.erase(plan_number);
}

v1::ProbePlanReply ProbeService::Describe(uint64_t plan_number) const {
  v1::ProbePlanReply reply;
  for (const EdgeStatus& status : runner_->Status()) {
    if (status.plan_id != plan_number) continue;
    v1::ProbeEdgeState* edge = reply.add_edges();
    edge->set_edge_number(status.edge_id);
    edge->set_peer(status.peer);
    edge->set_source(ToMessage(status.rung));
    edge->set_reason(status.reason);
    edge->set_silent(status.silent);
    edge->set_silence(status.silence);
    edge->set_exchanges_count(status.exchanges);
    edge->set_answered_count(status.answered);
  }
  Fill(runner_->counters(), reply.mutable_counters());
  reply.set_cpu_ns(runner_->CpuNs());
  return reply;
}

absl::StatusOr<v1::ProbeSamplesReply> ProbeService::Samples(
    const v1::ProbeSamplesRequest& request) {
  const std::lock_guard lock(samples_mutex_);
  const auto found = stores_.find(request.plan_number());
  if (found == stores_.end()) {
    return absl::NotFoundError(
        "There is no such probing plan: it has ended, or its lease has expired");
  }
  Store& store = found->second;
  // What the coordinator has, it does not ask for again.
  while (store.first_number < request.from_sample_number() && !store.kept.empty()) {
    store.kept.pop_front();
    ++store.first_number;
  }
  v1::ProbeSamplesReply reply;
  const size_t count = std::min(store.kept.size(), kSamplesInReply);
  for (size_t i = 0; i < count; ++i) {
    const EdgeSample& sample = store.kept[i];
    reply.add_edge_number(sample.edge_id);
    reply.add_t1_local_ns(sample.sample.t1_local_ns);
    reply.add_t2_remote_ns(sample.sample.t2_remote_ns);
    reply.add_t3_remote_ns(sample.sample.t3_remote_ns);
    reply.add_t4_local_ns(sample.sample.t4_local_ns);
    reply.add_source(ToMessage(sample.sample.source));
  }
  reply.set_next_sample_number(store.first_number + count);
  reply.set_dropped_count(store.dropped);
  reply.set_more(count < store.kept.size());
  return reply;
}

void ProbeService::Tick(int64_t now_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (auto it = leases_.begin(); it != leases_.end();) {
    const auto [number, end_ns] = *it++;  // End() erases it
    if (end_ns <= now_ns) End(number);
  }
}

}  // namespace syncline::probe
