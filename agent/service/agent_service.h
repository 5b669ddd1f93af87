// SPDX-License-Identifier: Apache-2.0
// The gRPC shell: authorises, logs, maps RPCs to RecordingManager and Inventory, streams bytes and
// clock readings. No decisions of its own.
#ifndef SYNCLINE_AGENT_SERVICE_AGENT_SERVICE_H_
#define SYNCLINE_AGENT_SERVICE_AGENT_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <string>
#include <string_view>

#include "agent/host/log.h"
#include "agent/node/inventory.h"
#include "agent/probe/clock.h"
#include "agent/probe/udp/probe_service.h"
#include "agent/recording/recording_manager.h"
#include "agent/service/activity.h"
#include "agent/service/clock_streams.h"
#include "agent/service/peer_role.h"
#include "agent/stacks/stack_reader.h"
#include "syncline/v1/agent.grpc.pb.h"

namespace syncline::agent {

// How peers of one server are known.
enum class Trust {
  kLocalUser,    // the Unix socket: the kernel told the uid, the listener let it in
  kCertificate,  // mutual TLS: the role is in the certificate
};

struct ServiceParts {
  RecordingManager* manager = nullptr;
  Inventory* inventory = nullptr;
  Clock* clock = nullptr;
  probe::ProbeService* probes = nullptr;
  StackReader* stacks = nullptr;
  Activity* activity = nullptr;
  Log* log = nullptr;
};

// Thread-safe: gRPC calls it from many threads.
class AgentService final : public v1::Agent::Service {
 public:
  // The parts are not owned.
  AgentService(ServiceParts parts, Trust trust) : parts_(parts), trust_(trust) {}

  grpc::Status Describe(grpc::ServerContext* context, const v1::DescribeRequest* request,
                        v1::DescribeResponse* response) override;
  grpc::Status Prepare(grpc::ServerContext* context, const v1::PrepareRequest* request,
                       v1::PrepareResponse* response) override;
  grpc::Status Start(grpc::ServerContext* context, const v1::StartRequest* request,
                     v1::StartResponse* response) override;
  grpc::Status Stop(grpc::ServerContext* context, const v1::StopRequest* request,
                    v1::StopResponse* response) override;
  grpc::Status Status(grpc::ServerContext* context, const v1::StatusRequest* request,
                      v1::StatusResponse* response) override;
  grpc::Status Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                       v1::ReleaseResponse* response) override;
  grpc::Status Fetch(grpc::ServerContext* context, const v1::FetchRequest* request,
                     grpc::ServerWriter<v1::FetchChunk>* writer) override;
  grpc::Status ClockExchange(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ClockProbeReply, v1::ClockProbe>* stream) override;
  grpc::Status Probe(grpc::ServerContext* context, const v1::ProbePlan* plan,
                     v1::ProbePlanReply* reply) override;
  grpc::Status ProbeSamples(grpc::ServerContext* context, const v1::ProbeSamplesRequest* request,
                            v1::ProbeSamplesReply* reply) override;
  grpc::Status Stacks(grpc::ServerContext* context, const v1::StacksRequest* request,
                      v1::StacksResponse* response) override;

 private:
  Peer PeerOf(const grpc::ServerContext& context) const;
  // OK for an operator; the audit line is written in any case.
  grpc::Status Admit(const grpc::ServerContext& context, std::string_view call,
                     const std::string& recording_id);

  const ServiceParts parts_;
  const Trust trust_;
  ClockStreams clock_streams_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SERVICE_AGENT_SERVICE_H_
