// SPDX-License-Identifier: Apache-2.0
#include "agent/session/session_daemon.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/status.h"
#include "common/trusted_file.h"

namespace syncline::agent {
namespace {

constexpr int kStartLimitMs = 15'000;
constexpr int kEndLimitMs = 3'000;

// LTTng's daemon opens its sockets, locks and files below this directory by their paths, and
// follows links.
absl::Status CheckHome(const std::filesystem::path& home) {
  std::error_code error;
  const absl::Status good =
      CheckWay(std::filesystem::absolute(home, error) / ".lttng", ::geteuid());
  if (good.ok()) return good;
  return absl::FailedPreconditionError(absl::StrCat(
      good.message(),
      "; LTTng would write there into files of others' choice: have it removed, or "
      "set LTTNG_HOME or SYNCLINE_RUNTIME_DIR to a directory of this user, for programs and "
      "commands alike"));
}

}  // namespace

SessionDaemon::SessionDaemon(LttngControl* control, ProcessRunner* runner,
                             std::map<std::string, std::string> environment,
                             std::filesystem::path pid_file)
    : control_(control),
      runner_(runner),
      environment_(std::move(environment)),
      pid_file_(std::move(pid_file)) {}

absl::Status SessionDaemon::Ensure() {
  const auto home = environment_.find("LTTNG_HOME");
  const bool has_home = home != environment_.end();
  if (has_home) SYNCLINE_RETURN_IF_ERROR(CheckHome(home->second));
  SYNCLINE_ASSIGN_OR_RETURN(const bool alive, control_->DaemonAlive());
  if (alive) return absl::OkStatus();
  if (has_home) {
    SYNCLINE_RETURN_IF_ERROR(MakeDirectories(home->second, 0700));
    SYNCLINE_RETURN_IF_ERROR(CheckHome(home->second));  // what somebody else made meanwhile
  }
  // --background: the command returns once the daemon answers. --no-kernel: loads no kernel module.
  const auto result = runner_->Run({.arguments = {"lttng-sessiond", "--background", "--no-kernel",
                                                  "--pidfile", pid_file_.string()},
                                    .environment = environment_},
                                   kStartLimitMs);
  if (!result.ok()) {
    if (absl::IsNotFound(result.status())) {
      return absl::FailedPreconditionError(
          "LTTng is not installed on this node: install the package lttng-tools");
    }
    return absl::FailedPreconditionError(
        absl::StrCat("Cannot start lttng-sessiond: ", result.status().message()));
  }
  if (result->exit_code != 0) {
    return absl::FailedPreconditionError(absl::StrCat("lttng-sessiond ended with code ",
                                                      result->exit_code, ": ",
                                                      absl::StripAsciiWhitespace(result->output)));
  }
  SYNCLINE_ASSIGN_OR_RETURN(const bool alive_now, control_->DaemonAlive());
  if (alive_now) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "lttng-sessiond started but does not answer; check that the agent and the programs have the "
      "same LTTNG_HOME");
}

void SessionDaemon::StopIfOurs() {
  const auto text = ReadFile(pid_file_, 64);
  int pid = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &pid) || pid <= 1) return;
  const auto name = ReadFile(absl::StrCat("/proc/", pid, "/comm"), 64);
  if (name.ok() && absl::StripAsciiWhitespace(*name) == "lttng-sessiond") {
    const auto sessions = control_->Sessions();
    if (sessions.ok() && !sessions->empty()) return;
    const int pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    ::kill(pid, SIGTERM);
    pollfd ended{.fd = pid_fd, .events = POLLIN, .revents = 0};
    if (pid_fd >= 0) {
      ::poll(&ended, 1, kEndLimitMs);
      ::close(pid_fd);
    }
  }
  std::error_code ignored;
  std::filesystem::remove(pid_file_, ignored);
}

absl::Status SessionDaemon::Renew() {
  StopIfOurs();
  SYNCLINE_ASSIGN_OR_RETURN(const bool alive, control_->DaemonAlive());
  if (!alive) return Ensure();
  return absl::FailedPreconditionError(
      "restart lttng-sessiond on this node: the agent does not restart it, because it did not "
      "start it, or because another client has a session in it");
}

}  // namespace syncline::agent
