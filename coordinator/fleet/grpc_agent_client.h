// SPDX-License-Identifier: Apache-2.0
// AgentClient over gRPC: mutual TLS with the node's name as the name to check (addresses change),
// or a Unix socket. No proxy (clusters set http_proxy), back-off of at most 2 s, keepalive.
#ifndef SYNCLINE_COORDINATOR_FLEET_GRPC_AGENT_CLIENT_H_
#define SYNCLINE_COORDINATOR_FLEET_GRPC_AGENT_CLIENT_H_

#include <functional>
#include <memory>

#include "coordinator/certs/certs.h"
#include "coordinator/fleet/agent_client.h"
#include "coordinator/hosts/hosts.h"

namespace syncline::fleet {

// The clocks of this machine, given by main.
struct ClientClocks {
  std::function<int64_t()> monotonic_raw_ns;
  std::function<int64_t()> unix_s;
};

// Connects lazily: errors come from the calls.
std::unique_ptr<AgentClient> MakeGrpcAgentClient(const hosts::Node& node,
                                                 const certs::Credentials& credentials,
                                                 const ClientClocks& clocks);

// gRPC prints its own view of failures to stderr, which diagnosis.h says better: silences it.
void SilenceGrpcLog();

}  // namespace syncline::fleet

#endif  // SYNCLINE_COORDINATOR_FLEET_GRPC_AGENT_CLIENT_H_
