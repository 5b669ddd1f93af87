// SPDX-License-Identifier: Apache-2.0
#include "agent/service/unix_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

constexpr int kBacklog = 16;

absl::Status CheckDirectory(const std::filesystem::path& directory) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(directory, 0700));
  struct stat info;
  if (::lstat(directory.c_str(), &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot access \"", directory.string(), "\""));
  }
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("The socket's directory \"", directory.string(),
                   "\" must be a directory of this user with mode 0700"));
}

// Whether somebody answers at the address, or only a file is left of a killed agent.
bool SomebodyListens(const sockaddr_un& address) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected =
      fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) ::close(fd);
  return connected;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Listen(
    const std::filesystem::path& path, std::function<void(int)> accepted,
    std::function<void(uint32_t)> refused) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = std::filesystem::absolute(path).string();
  if (name.size() >= sizeof address.sun_path) {
    return absl::FailedPreconditionError(absl::StrCat(
        "The socket's path is too long (", name.size(), " of at most ", sizeof address.sun_path - 1,
        " bytes): \"", name, "\"; give a shorter --socket"));
  }
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  SYNCLINE_RETURN_IF_ERROR(CheckDirectory(std::filesystem::path(name).parent_path()));
  if (SomebodyListens(address)) {
    return absl::AlreadyExistsError(absl::StrCat("Another agent listens at \"", name, "\""));
  }
  ::unlink(name.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus(errno, "Cannot create a socket");
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(name.c_str(), 0600) != 0 || ::listen(fd, kBacklog) != 0) {
    const int error_number = errno;
    ::close(fd);
    return ErrnoStatus(error_number, absl::StrCat("Cannot listen at \"", name, "\""));
  }
  const int wake_fd = ::eventfd(0, EFD_CLOEXEC);
  return std::unique_ptr<UnixListener>(
      new UnixListener(name, fd, wake_fd, std::move(accepted), std::move(refused)));
}

UnixListener::UnixListener(std::filesystem::path path, int fd, int wake_fd,
                           std::function<void(int)> accepted, std::function<void(uint32_t)> refused)
    : path_(std::move(path)),
      fd_(fd),
      wake_fd_(wake_fd),
      accepted_(std::move(accepted)),
      refused_(std::move(refused)),
      thread_([this](const std::stop_token& stop) { Loop(stop); }) {}

UnixListener::~UnixListener() {
  thread_.request_stop();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
  thread_.join();
  ::close(fd_);
  ::close(wake_fd_);
  ::unlink(path_.c_str());
}

void UnixListener::Loop(const std::stop_token& stop) {
  pollfd waits[2] = {{.fd = fd_, .events = POLLIN}, {.fd = wake_fd_, .events = POLLIN}};
  while (!stop.stop_requested()) {
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) return;
    if ((waits[0].revents & POLLIN) == 0) continue;
    const int peer_fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (peer_fd < 0) continue;
    ucred peer{};
    socklen_t length = sizeof peer;
    const bool known = ::getsockopt(peer_fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
    if (known && (peer.uid == ::geteuid() || peer.uid == 0)) {
      accepted_(peer_fd);
    } else {
      ::close(peer_fd);
      refused_(peer.uid);
    }
  }
}

}  // namespace syncline::agent
