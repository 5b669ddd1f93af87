// SPDX-License-Identifier: Apache-2.0
#include "agent/session/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/session/output_memory.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

constexpr int kKillLimitMs = 500;  // from SIGKILL to the end
constexpr size_t kOutputBytesMax = 4096;

// Names, no values that could be a secret: places and time limits.
constexpr std::array<std::string_view, 13> kForAnybody = {"LANG",
                                                          "LC_ALL",
                                                          "LD_LIBRARY_PATH",
                                                          "LTTNG_APP_SOCKET_TIMEOUT",
                                                          "LTTNG_HOME",
                                                          "LTTNG_UST_CLOCK_PLUGIN",
                                                          "LTTNG_UST_DEBUG",
                                                          "LTTNG_UST_GETCPU_PLUGIN",
                                                          "LTTNG_UST_REGISTER_TIMEOUT",
                                                          "PATH",
                                                          "SYNCLINE_RUNTIME_DIR",
                                                          "TMPDIR",
                                                          "TZ"};

bool IsForAnybody(std::string_view name) {
  return std::find(kForAnybody.begin(), kForAnybody.end(), name) != kForAnybody.end();
}

std::vector<std::string> MergedEnvironment(const SpawnOptions& options) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (options.for_another_user && !IsForAnybody(name)) continue;
    if (options.environment.count(std::string(name)) == 0) merged.emplace_back(text);
  }
  for (const auto& [name, value] : options.environment) {
    merged.push_back(absl::StrCat(name, "=", value));
  }
  return merged;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void SetAttributes(posix_spawnattr_t* attributes) {
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setsigdefault(attributes, &defaults);
  // A session of its own: who ends the agent's session must not take its helpers away before it.
  posix_spawnattr_setflags(attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
}

void SetFileActions(const SpawnOptions& options, posix_spawn_file_actions_t* actions) {
  posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  if (options.pass_as_output >= 0) {
    posix_spawn_file_actions_adddup2(actions, options.pass_as_output, 1);
    posix_spawn_file_actions_adddup2(actions, options.pass_as_output, 2);
  }
  // dup2 onto itself keeps close-on-exec in some C libraries: callers pass descriptors above 3.
  if (options.pass_as_3 >= 0) posix_spawn_file_actions_adddup2(actions, options.pass_as_3, 3);
  posix_spawn_file_actions_addclosefrom_np(actions, options.pass_as_3 >= 0 ? 4 : 3);
}

}  // namespace

absl::StatusOr<pid_t> Spawn(const SpawnOptions& options) {
  if (options.arguments.empty()) return absl::InternalError("No program to start");
  const std::vector<std::string> environment = MergedEnvironment(options);
  const std::vector<char*> argv = Pointers(options.arguments);
  const std::vector<char*> envp = Pointers(environment);
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&actions);
  SetAttributes(&attributes);
  SetFileActions(options, &actions);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("Cannot start ", options.arguments[0]));
  return pid;
}

absl::StatusOr<int> WaitForExit(pid_t pid, int limit_ms) {
  const int pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) return ErrnoStatus(errno, "Cannot watch a child process");
  pollfd wait{.fd = pid_fd, .events = POLLIN, .revents = 0};
  int ready;
  do {
    ready = ::poll(&wait, 1, limit_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    ::kill(-pid, SIGKILL);
    // One that waits for its user's file system (FUSE) may never end.
    if (::poll(&wait, 1, kKillLimitMs) <= 0) {
      ::close(pid_fd);
      std::thread([pid] { ::waitpid(pid, nullptr, 0); }).detach();
      return absl::DeadlineExceededError(absl::StrCat("Process ", pid, " cannot be ended"));
    }
  }
  ::close(pid_fd);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (ready <= 0) {
    return absl::DeadlineExceededError(
        absl::StrCat("Process ", pid, " was killed after ", limit_ms, " ms"));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

absl::StatusOr<RunResult> SystemProcessRunner::Run(const SpawnOptions& options, int limit_ms) {
  // A file, not a pipe: a daemon that keeps its output open must not keep us waiting.
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor output, MakeOutputMemory("output", kOutputBytesMax));
  SpawnOptions with_output = options;
  with_output.pass_as_output = output.get();
  with_output.arguments.insert(with_output.arguments.begin(), launcher_.begin(), launcher_.end());
  RunResult result;
  auto pid = Spawn(with_output);
  absl::StatusOr<int> exit_code =
      pid.ok() ? WaitForExit(*pid, limit_ms) : absl::StatusOr<int>(pid.status());
  result.output = ReadOutputMemory(output.get(), kOutputBytesMax);
  if (!exit_code.ok()) {
    return WithContext(exit_code.status(), absl::StrCat("Running ", options.arguments[0]).c_str());
  }
  if (!launcher_.empty() && *exit_code == kNoSuchProgram) {
    return absl::NotFoundError(absl::StripAsciiWhitespace(result.output));
  }
  result.exit_code = *exit_code;
  return result;
}

int BecomeWithDescriptors(rlim_t soft, char** argv) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = std::min(soft, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ::execvp(argv[0], argv);
  const int error_number = errno;
  std::fprintf(stderr, "Cannot start %s: %s\n", argv[0], std::strerror(error_number));
  return error_number == ENOENT ? kNoSuchProgram : kNoSuchProgram - 1;
}

}  // namespace syncline::agent
