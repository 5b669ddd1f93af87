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
#include "agent/recording/trace_result.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

constexpr int kLimitMs = 10'000;
constexpr int kOthersLimitMs = 5'000;  // they can stop it, and everybody waits
constexpr int kNobodyListens = 3;      // agent/canary/main.c

}  // namespace

SystemCanary::SystemCanary(ProcessRunner* runner, SystemCanaryOptions options)
    : runner_(runner), options_(std::move(options)) {}

absl::Status SystemCanary::Sing(uint32_t uid, uint64_t nonce) {
  SpawnOptions spawn{.environment = options_.environment};
  if (uid == options_.own_uid) {
    spawn.arguments = {options_.canary_program, absl::StrCat(nonce)};
  } else {
    spawn.for_another_user = true;
    spawn.arguments = {options_.agent_program, "--run-as", absl::StrCat(uid),
                       options_.canary_program, absl::StrCat(nonce)};
  }
  const auto result = runner_->Run(spawn, uid == options_.own_uid ? kLimitMs : kOthersLimitMs);
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

absl::StatusOr<std::vector<v1::Complaint>> RunCanaries(const CanaryRound& round) {
  std::map<uint32_t, absl::Status> failed;
  for (const auto& [uid, nonce] : round.nonces) {
    const absl::Status sung = round.canary->Sing(uid, nonce);
    if (!sung.ok()) failed[uid] = sung;
  }
  // Stopping flushes: only then is the event sure to be in the files.
  SYNCLINE_RETURN_IF_ERROR(round.lttng->Stop(round.session->name));
  for (const auto& [uid, nonce] : round.nonces) {
    if (failed.count(uid) != 0) continue;
    const absl::Status found = FindCanary(round.session->trace_directory, nonce);
    if (found.ok()) continue;
    if (!absl::IsFailedPrecondition(found)) return found;
    failed[uid] = absl::FailedPreconditionError(absl::StrCat(
        found.message(), ". ", round.room, "; is /dev/shm full, or limited by a cgroup?"));
  }
  if (failed.empty()) return std::vector<v1::Complaint>();
  const size_t others = round.nonces.size() - round.nonces.count(round.own_uid);
  if (failed.count(round.own_uid) != 0) return failed.at(round.own_uid);
  if (failed.size() == others && !round.own_has_processes) return failed.begin()->second;
  std::vector<v1::Complaint> complaints;
  for (const auto& [uid, why] : failed) {
    v1::Complaint& complaint = complaints.emplace_back();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_what(
        absl::StrCat("Programs of user ", uid, " may not be recorded: ", why.message()));
    complaint.set_fix(absl::StrCat("record again; if it stays so, look at what user ", uid,
                                   " runs here; other users are not affected"));
  }
  return complaints;
}

int RunAs(uint32_t uid, const std::string& program, const std::string& argument) {
  // Opened before the identity changes: the user need not be able to enter our installation.
  const int fd = ::open(program.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    std::fprintf(stderr, "Cannot open %s: %s\n", program.c_str(), std::strerror(errno));
    return 1;
  }
  [[maybe_unused]] const int moved = ::chdir("/");  // the user may look at where it runs
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
