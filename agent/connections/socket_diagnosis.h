// SPDX-License-Identifier: Apache-2.0
// The TCP connections of a network namespace, as the kernel's socket diagnosis (sock_diag(7)) tells
// them: addresses, and what struct tcp_info says.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_CONNECTIONS_SOCKET_DIAGNOSIS_H_
#define SYNCLINE_AGENT_CONNECTIONS_SOCKET_DIAGNOSIS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "evidence/connection_samples.h"

namespace syncline::agent {

struct SocketState {
  uint64_t inode = 0;  // as links in /proc/PID/fd have it
  std::string local;   // "10.0.0.1:2222", "[fd00::1]:2222"
  std::string remote;
  evidence::ConnectionValues values;
};

// By inode. A node may have a million sockets, of which a job has some.
using WantedSockets = std::function<bool(uint64_t inode)>;

// The seam to the kernel.
class SocketSource {
 public:
  virtual ~SocketSource() = default;
  // The `wanted` connections that are established or about to end.
  virtual absl::StatusOr<std::vector<SocketState>> Read(const WantedSockets& wanted) = 0;
};

// Of the network namespace `inode`, in which process `pid` is. PermissionDenied: the agent may not
// enter it.
absl::StatusOr<std::unique_ptr<SocketSource>> OpenSocketDiagnosis(const std::filesystem::path& proc,
                                                                  int32_t pid, uint64_t inode);

// The `wanted` answers in one datagram of the kernel's, appended to `found`. true: there are more
// to come. An error is the kernel's own, or bytes that are no answer.
absl::StatusOr<bool> ParseDiagnosis(std::span<const uint8_t> bytes, const WantedSockets& wanted,
                                    std::vector<SocketState>* found);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CONNECTIONS_SOCKET_DIAGNOSIS_H_
