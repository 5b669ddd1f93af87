// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/local_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "control_block/live_block.h"

namespace syncline::cli {
namespace {

// The agent starts lttng-sessiond first, which takes up to seconds on a busy machine.
constexpr int kStartLimitMs = 20'000;
constexpr int kAskEveryMs = 50;

constexpr std::array<std::string_view, 14> kPassedOn = {"HOME",
                                                        "LANG",
                                                        "LC_ALL",
                                                        "LD_LIBRARY_PATH",
                                                        "LOGNAME",
                                                        "PATH",
                                                        "SYNCLINE_RUNTIME_DIR",
                                                        "TMPDIR",
                                                        "TZ",
                                                        "USER",
                                                        "LTTNG_HOME",
                                                        "XDG_RUNTIME_DIR",
                                                        "LTTNG_APP_SOCKET_TIMEOUT",
                                                        "LTTNG_CONSUMERD64_BIN"};

// OK: it is this user's and closed to others, or is not there yet. What somebody else has put into
// shared memory under this user's name must not be taken for an agent.
absl::Status CheckOwner(const std::filesystem::path& directory) {
  const auto opened = control_block::OpenRuntimeDirectory(directory, ::geteuid());
  if (opened.ok() || absl::IsNotFound(opened.status())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(opened.status().message(), "; \"", directory.string(),
                   "\" must be a directory of this user with mode 0700: have it removed, or set "
                   "SYNCLINE_RUNTIME_DIR for programs and commands alike"));
}

bool SomebodyListens(const std::filesystem::path& socket) {
  if (!CheckOwner(socket.parent_path()).ok()) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = socket.string();
  if (name.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  // Does not wait for an agent that is stopped; that is said by whoever calls it.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool connected =
      fd >= 0 && (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
                  errno == EAGAIN);
  if (fd >= 0) ::close(fd);
  return connected;
}

// A file without a name: what a program says on its way out. Unlike a pipe it harms nobody who
// writes to it later.
class Said {
 public:
  Said() : fd_(::memfd_create("syncline-agent-says", MFD_CLOEXEC)) {}
  ~Said() {
    if (fd_ >= 0) ::close(fd_);
  }
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;

  int fd() const { return fd_; }
  std::string Text() const {
    std::array<char, 2048> text{};
    const ssize_t size = ::pread(fd_, text.data(), text.size(), 0);
    const absl::string_view said(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
    return std::string(absl::StripPrefix(absl::StripAsciiWhitespace(said), "syncline-agent: "));
  }

 private:
  const int fd_;
};

std::vector<char*> Pointers(std::vector<std::string>* words) {
  std::vector<char*> pointers;
  for (std::string& word : *words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In a session of its own, with "/" as its directory and no signal blocked or ignored: it outlives
// this command and its terminal.
absl::StatusOr<pid_t> Start(const LocalAgentPlace& place, const Environment& environment,
                            int said_fd) {
  std::vector<std::string> words = {place.program.string(),
                                    "--data-dir",
                                    place.data_directory.string(),
                                    "--socket",
                                    place.socket.string(),
                                    "--log-file",
                                    (place.data_directory / "agent.log").string(),
                                    "--idle-minutes",
                                    absl::StrCat(kLocalAgentIdleMinutes)};
  std::vector<std::string> lines;
  for (const auto& [name, value] : EnvironmentOfLocalAgent(environment)) {
    lines.push_back(absl::StrCat(name, "=", value));
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, said_fd, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  ::posix_spawn_file_actions_addchdir_np(&actions, "/");
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error_number = ::posix_spawn(&pid, place.program.c_str(), &actions, &attributes,
                                         Pointers(&words).data(), Pointers(&lines).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error_number == 0) return pid;
  return absl::FailedPreconditionError(absl::StrCat("Cannot start \"", place.program.string(),
                                                    "\": ", std::strerror(error_number),
                                                    "; syncline-agent must stand beside syncline"));
}

void PauseMs(int ms) { ::poll(nullptr, 0, ms); }

absl::Status DoesNotStart(const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("This machine's own agent does not start: ", why));
}

// The agent starts in "/": a path that is relative for this command must not be one for the agent.
std::filesystem::path Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? std::filesystem::path(path) : absolute;
}

}  // namespace

LocalAgentPlace PlaceOfLocalAgent(const std::filesystem::path& executable, uint32_t uid,
                                  const Environment& environment) {
  return {.program = executable.parent_path() / "syncline-agent",
          .data_directory = IsSet(environment, "SYNCLINE_DATA_DIR")
                                ? Absolute(environment.at("SYNCLINE_DATA_DIR"))
                                : std::filesystem::path(absl::StrCat("/var/tmp/syncline-", uid)),
          .socket = Absolute(RuntimeDirectoryOf(environment, uid).string()) / "agent.sock"};
}

Environment EnvironmentOfLocalAgent(const Environment& environment) {
  Environment passed;
  for (const std::string_view name : kPassedOn) {
    const auto found = environment.find(std::string(name));
    if (found != environment.end()) passed.insert(*found);
  }
  return passed;
}

absl::StatusOr<bool> EnsureLocalAgent(const LocalAgentPlace& place,
                                      const Environment& environment) {
  SYNCLINE_RETURN_IF_ERROR(CheckOwner(place.socket.parent_path()));
  if (SomebodyListens(place.socket)) return false;
  std::optional<pid_t> child;
  std::string failure;
  const Said said;
  for (int waited_ms = 0; waited_ms < kStartLimitMs; waited_ms += kAskEveryMs) {
    if (!child.has_value()) {
      SYNCLINE_ASSIGN_OR_RETURN(child, Start(place, environment, said.fd()));
    }
    PauseMs(kAskEveryMs);
    if (SomebodyListens(place.socket)) return true;
    int code = 0;
    if (::waitpid(*child, &code, WNOHANG) != *child) continue;
    // Another command may have started one at the same time: that one has the data directory.
    constexpr int kOthersMs = 2'000;
    for (int other_ms = 0; other_ms < kOthersMs; other_ms += kAskEveryMs) {
      if (SomebodyListens(place.socket)) return false;
      PauseMs(kAskEveryMs);
    }
    // Or one is about to end, and has the directory still: that lasts some seconds.
    waited_ms += kOthersMs;
    child.reset();
    failure = said.Text();
    if (failure.find("Another agent uses the data directory") != std::string::npos) continue;
    return DoesNotStart(failure);
  }
  if (!failure.empty()) return DoesNotStart(failure);
  return absl::DeadlineExceededError(absl::StrCat("This machine's own agent is not ready after ",
                                                  kStartLimitMs / 1000, " s; its log is ",
                                                  (place.data_directory / "agent.log").string()));
}

}  // namespace syncline::cli
