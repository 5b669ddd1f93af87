// SPDX-License-Identifier: Apache-2.0
// The local socket: gRPC's own Unix sockets do not tell who is at the other end, so the agent
// accepts itself, asks the kernel for the peer's uid, and hands on only connections of its own user
// and of root.
#ifndef SYNCLINE_AGENT_SERVICE_UNIX_LISTENER_H_
#define SYNCLINE_AGENT_SERVICE_UNIX_LISTENER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::agent {

class UnixListener {
 public:
  // `accepted` owns the descriptor (non-blocking) and is called on the listener's thread; `refused`
  // is told the uid. The socket's directory is made 0700, and must be so, and ours.
  // FailedPrecondition: it is not, or the path is too long for a socket; AlreadyExists: somebody
  // listens there.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Listen(
      const std::filesystem::path& path, std::function<void(int fd)> accepted,
      std::function<void(uint32_t uid)> refused);
  // Removes the socket.
  ~UnixListener();

 private:
  UnixListener(std::filesystem::path path, int fd, int wake_fd, std::function<void(int)> accepted,
               std::function<void(uint32_t)> refused);
  void Loop(const std::stop_token& stop);

  const std::filesystem::path path_;
  const int fd_;
  const int wake_fd_;
  const std::function<void(int)> accepted_;
  const std::function<void(uint32_t)> refused_;
  std::jthread thread_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SERVICE_UNIX_LISTENER_H_
