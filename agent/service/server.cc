// SPDX-License-Identifier: Apache-2.0
#include "agent/service/server.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

constexpr int kRequestBytesMax = 1 << 20;
constexpr int kThreadsMax = 96;
constexpr uint64_t kPemBytesMax = 1 << 20;
// A coordinator that vanished (cable, suspend) must not hold its streams for ever.
constexpr int kKeepaliveTimeMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kClientPingPeriodMsMin = 5'000;
// A connection without a certificate holds a descriptor no longer (gRPC's own limit is two
// minutes). Coordinators give up after as long themselves.
constexpr int kHandshakeTimeoutMs = 5'000;

void SetLimits(const std::string& name, grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota(name);
  quota.SetMaxThreads(kThreadsMax);
  builder->SetResourceQuota(quota);
  builder->SetMaxReceiveMessageSize(kRequestBytesMax);
  builder->SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 4);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kClientPingPeriodMsMin);
  // Two agents on one port would each get half of the calls.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

absl::StatusOr<std::string> ReadPem(const std::filesystem::path& directory, const char* name) {
  auto pem = ReadFile(directory / name, kPemBytesMax);
  if (pem.ok()) return pem;
  return absl::FailedPreconditionError(
      absl::StrCat(pem.status().message(),
                   "; --tls-dir needs ca.pem, node.pem and node.key:"
                   " create them with `syncline certs init`"));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(
    const std::filesystem::path& directory) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  SYNCLINE_ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem(directory, "ca.pem"));
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  SYNCLINE_ASSIGN_OR_RETURN(pair.cert_chain, ReadPem(directory, "node.pem"));
  SYNCLINE_ASSIGN_OR_RETURN(pair.private_key, ReadPem(directory, "node.key"));
  options.pem_key_cert_pairs.push_back(std::move(pair));
  return grpc::SslServerCredentials(options);
}

}  // namespace

AgentServer::AgentServer(const ServiceParts& parts)
    : local_service_(parts, Trust::kLocalUser), fleet_service_(parts, Trust::kCertificate) {}

absl::StatusOr<std::unique_ptr<AgentServer>> AgentServer::Start(const ServiceParts& parts,
                                                                const ServerOptions& options) {
  // Never undone: the last grpc_shutdown() joins gRPC's backup poller, which may sleep for 10 s.
  // That is longer than those wait who end an agent.
  static const bool kept = (grpc_init(), true);
  (void)kept;
  std::unique_ptr<AgentServer> server(new AgentServer(parts));
  if (!options.listen_address.empty()) {
    SYNCLINE_ASSIGN_OR_RETURN(const auto credentials, Credentials(options.tls_directory));
    grpc::ServerBuilder builder;
    SetLimits("fleet", &builder);
    builder.AddListeningPort(options.listen_address, credentials, &server->port_);
    builder.RegisterService(&server->fleet_service_);
    server->fleet_server_ = builder.BuildAndStart();
    if (server->fleet_server_ == nullptr || server->port_ == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("Cannot listen on ", options.listen_address,
                       ": the port is taken, the address is not this node's, or node.pem and "
                       "node.key do not match"));
    }
  }
  if (!options.socket_path.empty()) {
    grpc::ServerBuilder builder;
    SetLimits("local", &builder);
    builder.RegisterService(&server->local_service_);
    server->local_server_ = builder.BuildAndStart();
    if (server->local_server_ == nullptr) return absl::InternalError("gRPC does not start");
    grpc::Server* const local = server->local_server_.get();
    Log* const log = parts.log;
    SYNCLINE_ASSIGN_OR_RETURN(
        server->listener_,
        UnixListener::Listen(
            options.socket_path, [local](int fd) { grpc::AddInsecureChannelFromFd(local, fd); },
            [log](uint32_t uid) {
              log->Warning("peer_refused", {{"uid", absl::StrCat(uid)}});
            }));
  }
  return server;
}

void AgentServer::Shutdown(int limit_ms) {
  listener_.reset();
  const gpr_timespec deadline =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(limit_ms, GPR_TIMESPAN));
  if (fleet_server_ != nullptr) fleet_server_->Shutdown(deadline);
  if (local_server_ != nullptr) local_server_->Shutdown(deadline);
  fleet_server_.reset();
  local_server_.reset();
}

}  // namespace syncline::agent
