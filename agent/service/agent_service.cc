// SPDX-License-Identifier: Apache-2.0
#include "agent/service/agent_service.h"

#include <grpc/grpc_security_constants.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/cpu/read_facts.h"
#include "agent/recording/names.h"
#include "agent/service/fetch_stream.h"
#include "common/utf8.h"
#include "proto/grpc_status.h"
#include "proto/texts.h"

namespace syncline::agent {
namespace {

constexpr int64_t kTuplePeriodNs = 1'000'000'000;

grpc::Status ToGrpc(const absl::Status& status) {
  return ToGrpcStatus<grpc::Status, grpc::StatusCode>(status);
}

template <class Response>
grpc::Status Answer(absl::StatusOr<Response> result, Response* response) {
  if (!result.ok()) return ToGrpc(result.status());
  *response = *std::move(result);
  // Most of them are of processes: arguments, names of threads, of files.
  RewriteTexts(response, &RepairedUtf8);
  return grpc::Status::OK;
}

void FillTuple(const clocksync::ClockTuple& tuple, v1::ClockTuple* message) {
  message->set_raw_before_ns(tuple.raw_before_ns);
  message->set_monotonic_ns(tuple.monotonic_ns);
  message->set_realtime_ns(tuple.realtime_ns);
  message->set_boottime_ns(tuple.boottime_ns);
  message->set_raw_after_ns(tuple.raw_after_ns);
  message->set_adjtimex_freq_scaled_ppm(tuple.adjtimex_freq);
  message->set_adjtimex_tick_us(tuple.adjtimex_tick_us);
  message->set_adjtimex_status_bits(tuple.adjtimex_status);
}

const char* RoleName(PeerRole role) {
  switch (role) {
    case PeerRole::kOperator:
      return "operator";
    case PeerRole::kNode:
      return "node";
    case PeerRole::kNone:
      return "none";
  }
  return "none";
}

}  // namespace

Peer AgentService::PeerOf(const grpc::ServerContext& context) const {
  if (trust_ == Trust::kLocalUser) return {.role = PeerRole::kOperator, .name = "local"};
  const auto pems = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pems.size() != 1) return {};
  return PeerOfCertificate({pems.front().data(), pems.front().size()});
}

grpc::Status AgentService::Admit(const grpc::ServerContext& context, std::string_view call,
                                 const std::string& recording_id) {
  const Peer peer = PeerOf(context);
  const bool admitted = peer.role == PeerRole::kOperator;
  parts_.log->Line(admitted ? LogLevel::kInfo : LogLevel::kWarning, "call",
                   {{"method", std::string(call)},
                    {"peer", ForLog(peer.name)},
                    {"role", RoleName(peer.role)},
                    {"address", context.peer()},
                    {"recording", ForLog(recording_id)},
                    {"admitted", admitted ? "yes" : "no"}});
  if (admitted) return grpc::Status::OK;
  return ToGrpc(absl::PermissionDeniedError(absl::StrCat(
      "Only an operator may call ", absl::string_view(call.data(), call.size()),
      "; this certificate (", ForLog(peer.name), ") has the role ", RoleName(peer.role),
      ". Use the operator's: syncline certs issue DIR --operator NAME")));
}

grpc::Status AgentService::Describe(grpc::ServerContext* context,
                                    const v1::DescribeRequest* request,
                                    v1::DescribeResponse* response) {
  const Activity::Call call(parts_.activity);
  if (grpc::Status status = Admit(*context, "Describe", ""); !status.ok()) return status;
  v1::DescribeResponse described = parts_.inventory->Describe(request->check_cpu());
  if (request->check_cpu()) {
    *described.mutable_cpu_check() =
        CheckCpu({}, {described.processes().begin(), described.processes().end()});
  }
  for (v1::RecordingInfo& info : parts_.manager->Recordings()) {
    *described.add_recordings() = std::move(info);
  }
  return Answer(absl::StatusOr<v1::DescribeResponse>(std::move(described)), response);
}

grpc::Status AgentService::Prepare(grpc::ServerContext* context, const v1::PrepareRequest* request,
                                   v1::PrepareResponse* response) {
  const Activity::Call call(parts_.activity);
  grpc::Status status = Admit(*context, "Prepare", request->recording_id());
  return status.ok() ? Answer(parts_.manager->Prepare(*request), response) : status;
}

grpc::Status AgentService::Start(grpc::ServerContext* context, const v1::StartRequest* request,
                                 v1::StartResponse* response) {
  const Activity::Call call(parts_.activity);
  grpc::Status status = Admit(*context, "Start", request->recording_id());
  return status.ok() ? Answer(parts_.manager->Start(*request), response) : status;
}

grpc::Status AgentService::Stop(grpc::ServerContext* context, const v1::StopRequest* request,
                                v1::StopResponse* response) {
  const Activity::Call call(parts_.activity);
  grpc::Status status = Admit(*context, "Stop", request->recording_id());
  return status.ok() ? Answer(parts_.manager->Stop(*request), response) : status;
}

grpc::Status AgentService::Status(grpc::ServerContext* context, const v1::StatusRequest* request,
                                  v1::StatusResponse* response) {
  const Activity::Call call(parts_.activity);
  // Asked for every second while a recording runs: refusals are logged, the rest is not.
  if (PeerOf(*context).role != PeerRole::kOperator) {
    return Admit(*context, "Status", request->recording_id());
  }
  return Answer(parts_.manager->Status(*request), response);
}

grpc::Status AgentService::Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                                   v1::ReleaseResponse* response) {
  const Activity::Call call(parts_.activity);
  grpc::Status status = Admit(*context, "Release", request->recording_id());
  return status.ok() ? Answer(parts_.manager->Release(*request), response) : status;
}

grpc::Status AgentService::Fetch(grpc::ServerContext* context, const v1::FetchRequest* request,
                                 grpc::ServerWriter<v1::FetchChunk>* writer) {
  const Activity::Call call(parts_.activity);
  if (grpc::Status status = Admit(*context, "Fetch", request->recording_id()); !status.ok()) {
    return status;
  }
  const auto directory = parts_.manager->DirectoryForFetch(request->recording_id());
  if (!directory.ok()) return ToGrpc(directory.status());
  const absl::Status streamed = StreamRecording(
      *directory, *request,
      [&](const v1::FetchChunk& chunk) { return !context->IsCancelled() && writer->Write(chunk); });
  if (streamed.ok()) parts_.manager->MarkFetched(request->recording_id());
  parts_.log->Failure("fetch", streamed);
  return ToGrpc(streamed);
}

grpc::Status AgentService::ClockExchange(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::ClockProbeReply, v1::ClockProbe>* stream) {
  const Activity::Call call(parts_.activity);
  // Any member of the fleet may compare clocks.
  const Peer peer = PeerOf(*context);
  if (peer.role == PeerRole::kNone) return Admit(*context, "ClockExchange", "");
  const std::optional<ClockStreams::Stream> running = clock_streams_.Begin(peer);
  if (!running.has_value()) {
    return ToGrpc(
        absl::ResourceExhaustedError("Too many concurrent clock exchanges with this agent"));
  }
  v1::ClockProbe probe;
  v1::ClockProbeReply reply;
  int64_t tuple_due_ns = 0;
  while (stream->Read(&probe)) {
    const int64_t t2_ns = parts_.clock->RawNs();
    reply.set_sequence_number(probe.sequence_number());
    reply.set_t1_monotonic_raw_ns(probe.t1_monotonic_raw_ns());
    reply.set_t2_monotonic_raw_ns(static_cast<uint64_t>(t2_ns));
    reply.clear_tuple();
    if (t2_ns >= tuple_due_ns) {
      tuple_due_ns = t2_ns + kTuplePeriodNs;
      FillTuple(parts_.clock->Tuple(), reply.mutable_tuple());
    }
    reply.set_t3_monotonic_raw_ns(static_cast<uint64_t>(parts_.clock->RawNs()));
    if (!stream->Write(reply)) break;
  }
  return grpc::Status::OK;
}

grpc::Status AgentService::Probe(grpc::ServerContext* context, const v1::ProbePlan* plan,
                                 v1::ProbePlanReply* reply) {
  const Activity::Call call(parts_.activity);
  // Prolonged every second while a recording runs: only the beginning, which brings the key, the
  // end and refusals are logged.
  if (!plan->key().empty() || plan->lease_ms() <= 0 ||
      PeerOf(*context).role != PeerRole::kOperator) {
    if (grpc::Status status = Admit(*context, "Probe", ""); !status.ok()) return status;
  }
  return Answer(parts_.probes->Probe(*plan, parts_.clock->RawNs()), reply);
}

grpc::Status AgentService::ProbeSamples(grpc::ServerContext* context,
                                        const v1::ProbeSamplesRequest* request,
                                        v1::ProbeSamplesReply* reply) {
  const Activity::Call call(parts_.activity);
  if (PeerOf(*context).role != PeerRole::kOperator) return Admit(*context, "ProbeSamples", "");
  return Answer(parts_.probes->Samples(*request), reply);
}

grpc::Status AgentService::Stacks(grpc::ServerContext* context, const v1::StacksRequest* request,
                                  v1::StacksResponse* response) {
  const Activity::Call call(parts_.activity);
  grpc::Status status = Admit(*context, "Stacks", "");
  return status.ok() ? Answer(parts_.stacks->Read(*request), response) : status;
}

}  // namespace syncline::agent
