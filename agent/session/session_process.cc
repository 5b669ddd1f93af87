// SPDX-License-Identifier: Apache-2.0
#include "agent/session/session_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/session/spawn.h"
#include "common/status.h"

namespace syncline::agent {

SessionProcess::SessionProcess(std::vector<std::string> command,
                               std::map<std::string, std::string> environment, SessionLimits limits)
    : command_(std::move(command)), environment_(std::move(environment)), limits_(limits) {}

SessionProcess::~SessionProcess() {
  const std::lock_guard lock(mutex_);
  KillChild();
}

absl::Status SessionProcess::EnsureChild() {
  if (child_ > 0) return absl::OkStatus();
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return ErrnoStatus(errno, "Cannot create a socket pair");
  }
  // Above 3, so that becoming descriptor 3 of the child is a real copy.
  const int theirs = ::fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
  ::close(pair[1]);
  auto pid = Spawn({.arguments = command_, .environment = environment_, .pass_as_3 = theirs});
  ::close(theirs);
  if (!pid.ok()) {
    ::close(pair[0]);
    return pid.status();
  }
  child_ = *pid;
  socket_ = pair[0];
  return absl::OkStatus();
}

void SessionProcess::KillChild() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (socket_ >= 0) ::close(socket_);
  child_ = -1;
  socket_ = -1;
}

absl::StatusOr<SessionReply> SessionProcess::Call(const SessionCall& call, int limit_ms) {
  const std::lock_guard lock(mutex_);
  auto reply = Exchange(call, limit_ms);
  if (!reply.ok()) {
    KillChild();
    return reply;
  }
  SYNCLINE_RETURN_IF_ERROR(reply->status);
  return reply;
}

absl::StatusOr<SessionReply> SessionProcess::Exchange(const SessionCall& call, int limit_ms) {
  SYNCLINE_RETURN_IF_ERROR(EnsureChild());
  std::string packet = EncodeCall(call);
  if (packet.size() > kSessionPacketBytesMax) {
    return absl::InvalidArgumentError("Too many or too long event patterns");
  }
  if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    // The child may have died while idle: once more with a new one.
    KillChild();
    SYNCLINE_RETURN_IF_ERROR(EnsureChild());
    if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
      return ErrnoStatus(errno, "Cannot reach the session child");
    }
  }
  pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
  int ready;
  do {
    ready = ::poll(&wait, 1, limit_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    return absl::DeadlineExceededError(absl::StrCat(
        "LTTng did not answer \"", call.method, "\" within ", limit_ms,
        " ms; the process that asked was replaced. lttng-sessiond, or the lttng-consumerd that it "
        "waits for, is stopped or overloaded: `ps -C lttng-sessiond,lttng-consumerd -o "
        "pid,stat,args` shows state T for one that is stopped (`kill -CONT PID`)"));
  }
  packet.resize(kSessionPacketBytesMax);
  const ssize_t length = ::recv(socket_, packet.data(), packet.size(), 0);
  if (length <= 0) {
    return absl::UnavailableError(
        absl::StrCat("The process that controls LTTng ended during \"", call.method, "\""));
  }
  packet.resize(static_cast<size_t>(length));
  return DecodeReply(packet);
}

absl::StatusOr<bool> SessionProcess::DaemonAlive() {
  SYNCLINE_ASSIGN_OR_RETURN(const SessionReply reply, Call({.method = "alive"}, limits_.alive_ms));
  return reply.alive;
}

absl::Status SessionProcess::Create(const SessionSpec& spec) {
  return Call({.method = "create", .spec = spec}, limits_.create_ms).status();
}

absl::Status SessionProcess::Start(const std::string& session) {
  return Call({.method = "start", .session = session}, limits_.start_ms).status();
}

absl::Status SessionProcess::Stop(const std::string& session) {
  return Call({.method = "stop", .session = session}, limits_.stop_ms).status();
}

absl::StatusOr<std::vector<ChannelCounters>> SessionProcess::Counters(const std::string& session) {
  SYNCLINE_ASSIGN_OR_RETURN(SessionReply reply,
                            Call({.method = "counters", .session = session}, limits_.counters_ms));
  return std::move(reply.counters);
}

absl::Status SessionProcess::Destroy(const std::string& session, int wait_ms) {
  return Call({.method = "destroy", .session = session, .wait_ms = wait_ms},
              wait_ms + limits_.destroy_beyond_wait_ms)
      .status();
}

absl::StatusOr<std::vector<std::string>> SessionProcess::Sessions() {
  SYNCLINE_ASSIGN_OR_RETURN(SessionReply reply, Call({.method = "sessions"}, limits_.counters_ms));
  return std::move(reply.sessions);
}

absl::StatusOr<std::vector<int32_t>> SessionProcess::Programs() {
  SYNCLINE_ASSIGN_OR_RETURN(SessionReply reply, Call({.method = "programs"}, limits_.programs_ms));
  return std::move(reply.programs);
}

}  // namespace syncline::agent
