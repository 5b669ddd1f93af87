// SPDX-License-Identifier: Apache-2.0
// The agent's two doors: a Unix socket for its own user, and mutual TLS on TCP for the fleet. There
// is no third: nothing listens in plain text.
#ifndef SYNCLINE_AGENT_SERVICE_SERVER_H_
#define SYNCLINE_AGENT_SERVICE_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/service/agent_service.h"
#include "agent/service/unix_listener.h"

namespace syncline::agent {

struct ServerOptions {
  std::filesystem::path socket_path;    // empty: no Unix socket
  std::string listen_address;           // HOST:PORT; empty: no TCP
  std::filesystem::path tls_directory;  // ca.pem, node.pem, node.key
};

class AgentServer {
 public:
  // Listens. FailedPrecondition says which file, address or permission is wrong.
  static absl::StatusOr<std::unique_ptr<AgentServer>> Start(const ServiceParts& parts,
                                                            const ServerOptions& options);
  // Closes the Unix socket to newcomers.
  void StopListening() { listener_.reset(); }
  // Ends open calls and streams after `limit_ms` at the latest.
  void Shutdown(int limit_ms);

  // The TCP port listened on; 0: none.
  int port() const { return port_; }

 private:
  explicit AgentServer(const ServiceParts& parts);

  AgentService local_service_;
  AgentService fleet_service_;
  std::unique_ptr<grpc::Server> local_server_;
  std::unique_ptr<grpc::Server> fleet_server_;
  std::unique_ptr<UnixListener> listener_;
  int port_ = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SERVICE_SERVER_H_
