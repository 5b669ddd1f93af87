// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/canary.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

constexpr int kLimitMs = 10'000;
constexpr int kNobodyListens = 3;  // agent/canary/main.c

}  // namespace

SystemCanary::SystemCanary(ProcessRunner* runner, SystemCanaryOptions options)
    : runner_(runner), options_(std::move(options)) {}

absl::Status SystemCanary::Sing(uint32_t uid, uint64_t nonce) {
  SpawnOptions spawn{.environment = options_.environment};
  if (uid == options_.own_uid) {
    spawn.arguments = {options_.canary_program, absl::StrCat(nonce)};
  } else {
    spawn.arguments = {options_.agent_program, "--run-as", absl::StrCat(uid),
                       options_.canary_program, absl::StrCat(nonce)};
  }
  const auto result = runner_->Run(spawn, kLimitMs);
  if (!result.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Cannot run the canary as user ", uid, ": ", result.status().message()));
  }
  if (result->exit_code == kNobodyListens) {
    return absl::FailedPreconditionError(absl::StrCat(
        "LTTng's session does not reach programs of user ", uid,
        ". Possible causes: /dev/shm is full, or the cgroup is (the buffers cannot be created); "
        "the session daemon belongs to another user or uses another LTTNG_HOME; or the session "
        "daemon refused the program (the daemon's log says why)"));
  }
  if (result->exit_code != 0) {
    return absl::FailedPreconditionError(absl::StrCat("The canary of user ", uid,
                                                      " ended with code ", result->exit_code, ": ",
                                                      absl::StripAsciiWhitespace(result->output)));
  }
  return absl::OkStatus();
}

int RunAs(uint32_t uid, const std::string& program, const std::string& argument) {
  // Opened before the identity changes: the user need not be able to enter our installation.
  const int fd = ::open(program.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    std::fprintf(stderr, "Cannot open %s: %s\n", program.c_str(), std::strerror(errno));
    return 1;
  }
  const passwd* user = ::getpwuid(uid);
  const gid_t gid = user != nullptr ? user->pw_gid : static_cast<gid_t>(uid);
  if (::setgroups(0, nullptr) != 0 || ::setgid(gid) != 0 || ::setuid(uid) != 0) {
    std::fprintf(stderr, "Cannot become user %u: %s\n", uid, std::strerror(errno));
    return 1;
  }
  char* argv[] = {const_cast<char*>(program.c_str()), const_cast<char*>(argument.c_str()), nullptr};
  ::fexecve(fd, argv, environ);
  std::fprintf(stderr, "Cannot execute %s: %s\n", program.c_str(), std::strerror(errno));
  return 1;
}

}  // namespace syncline::agent
