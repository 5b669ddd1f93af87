// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/dial.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/host/net_namespace.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

SocketAddress MakeAddress(const std::string& text, uint16_t port) {
  SocketAddress address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.bytes = sizeof *v4;
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.bytes = sizeof *v6;
  }
  return address;
}

absl::Status NoAnswer(int error_number) {
  return absl::UnavailableError(absl::StrCat("no answer: ", std::strerror(error_number)));
}

absl::StatusOr<int> Connect(const std::string& text, uint16_t port, int timeout_ms) {
  const SocketAddress address = MakeAddress(text, port);
  if (address.bytes == 0) return absl::InvalidArgumentError("not an address: " + text);
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "Cannot create a socket");
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  int error = 0;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.bytes) != 0) {
    error = errno;
  }
  if (error == EINPROGRESS) {
    pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
    socklen_t bytes = sizeof error;
    if (::poll(&wait, 1, timeout_ms) != 1) {
      error = ETIMEDOUT;
    } else if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) {
      error = errno;
    }
  }
  if (error == 0) return fd;
  ::close(fd);
  return NoAnswer(error);
}

// A server that listens on all addresses is dialled on loopback: that needs no route, and no
// firewall looks at it.
absl::StatusOr<int> ConnectHere(const Destination& to, int timeout_ms) {
  std::vector<std::string> addresses = {to.address};
  if (to.address == "0.0.0.0") addresses = {"127.0.0.1"};
  if (to.address == "::") addresses = {"::1", "127.0.0.1"};
  absl::StatusOr<int> fd = NoAnswer(EADDRNOTAVAIL);
  for (const std::string& address : addresses) {
    fd = Connect(address, to.port, timeout_ms);
    if (fd.ok()) break;
  }
  return fd;
}

}  // namespace

absl::StatusOr<int> Dial(const Destination& to, int timeout_ms, const std::filesystem::path& proc) {
  if (to.net_namespace == 0) return ConnectHere(to, timeout_ms);
  absl::StatusOr<int> fd = absl::UnavailableError("the process has ended");
  const absl::Status visited =
      InNetNamespace(proc, to.pid, to.net_namespace, [&] { fd = ConnectHere(to, timeout_ms); });
  if (!visited.ok()) return visited;
  return fd;
}

}  // namespace syncline::agent
