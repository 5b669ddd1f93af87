// SPDX-License-Identifier: Apache-2.0
#include "coordinator/selftest/demo_job.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::selftest {
namespace {

constexpr int64_t kAskEveryNs = 100'000'000;
constexpr int64_t kStepsLimitNs = 180'000'000'000;  // PyTorch from a slow disk, and the steps
constexpr int kEndLimitMs = 5'000;
constexpr int kEndEveryMs = 50;
constexpr size_t kShownOfLog = 1'500;
constexpr const char* kSwitch = "switch";

// One that nobody listens at now, for the ranks to meet at.
absl::StatusOr<int> FreePort() {
  const Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (fd.get() < 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return absl::UnavailableError(
        absl::StrCat("Cannot find a free port on this machine: ", std::strerror(errno)));
  }
  return ntohs(address.sin_port);
}

std::vector<char*> Pointers(std::vector<std::string>* words) {
  std::vector<char*> pointers;
  for (std::string& word : *words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In a process group of its own: Ctrl-C is this program's, which then ends the job.
absl::StatusOr<pid_t> Spawn(std::vector<std::string> words, std::vector<std::string> environment,
                            const std::filesystem::path& log) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error_number = ::posix_spawn(&pid, words[0].c_str(), &actions, &attributes,
                                         Pointers(&words).data(), Pointers(&environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error_number == 0) return pid;
  return absl::NotFoundError(
      absl::StrCat("Cannot start \"", words[0], "\": ", std::strerror(error_number)));
}

}  // namespace

std::string SwitchText(const Delay& delay) {
  return absl::StrFormat("%d %.6f\n", delay.rank, static_cast<double>(delay.delay_ns) / 1e6);
}

uint64_t NewestStep(std::string_view log) {
  constexpr std::string_view kWord = "step ";
  for (size_t at = log.rfind(kWord); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : log.rfind(kWord, at - 1)) {
    const std::string_view rest = log.substr(at + kWord.size());
    const size_t end = rest.find(':');
    uint64_t step = 0;
    if (end != std::string_view::npos && absl::SimpleAtoi(AbslView(rest.substr(0, end)), &step)) {
      return step;
    }
  }
  return 0;
}

absl::StatusOr<DemoJob> DemoJob::Start(const DemoPlace& place) {
  SYNCLINE_ASSIGN_OR_RETURN(const int port, FreePort());
  DemoJob job(place);
  for (int32_t rank = 0; rank < kDemoRanks; ++rank) {
    std::map<std::string, std::string> variables = place.environment;
    variables["RANK"] = variables["LOCAL_RANK"] = absl::StrCat(rank);
    variables["WORLD_SIZE"] = absl::StrCat(kDemoRanks);
    variables["MASTER_ADDR"] = "127.0.0.1";
    variables["MASTER_PORT"] = absl::StrCat(port);
    variables["GLOO_SOCKET_IFNAME"] = "lo";
    variables["OMP_NUM_THREADS"] = "1";
    std::vector<std::string> environment;
    for (const auto& [name, value] : variables) {
      environment.push_back(absl::StrCat(name, "=", value));
    }
    SYNCLINE_ASSIGN_OR_RETURN(
        const pid_t child,
        Spawn({place.syncline.string(), "run", "--job", "selftest", "--", place.python,
               place.job.string(), "--parent", absl::StrCat(::getpid()), "--switch",
               (place.directory / kSwitch).string()},
              std::move(environment), job.LogOf(rank)));
    job.children_.push_back(child);
  }
  return job;
}

DemoJob::DemoJob(DemoJob&& other) noexcept
    : place_(std::move(other.place_)), children_(std::exchange(other.children_, {})) {}

DemoJob::~DemoJob() {
  const auto ended = [](pid_t& child) {
    if (child > 0 && ::waitpid(child, nullptr, WNOHANG) == child) child = 0;
    return child <= 0;
  };
  for (pid_t& child : children_) {
    if (!ended(child)) ::kill(-child, SIGTERM);
  }
  for (int waited_ms = 0; waited_ms < kEndLimitMs; waited_ms += kEndEveryMs) {
    if (std::all_of(children_.begin(), children_.end(), ended)) return;
    ::poll(nullptr, 0, kEndEveryMs);
  }
  for (pid_t& child : children_) {
    if (child <= 0) continue;
    ::kill(-child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

std::filesystem::path DemoJob::LogOf(int32_t rank) const {
  return place_.directory / absl::StrCat("rank", rank, ".log");
}

absl::Status DemoJob::CheckAlive() {
  for (int32_t rank = 0; rank < kDemoRanks; ++rank) {
    pid_t& child = children_[static_cast<size_t>(rank)];
    if (child > 0 && ::waitpid(child, nullptr, WNOHANG) != child) continue;
    child = 0;
    std::string log = ReadFile(LogOf(rank)).value_or("");
    const bool no_torch = log.find("No module named 'torch'") != std::string::npos;
    if (log.size() > kShownOfLog) log = "... " + log.substr(log.size() - kShownOfLog);
    return absl::FailedPreconditionError(
        absl::StrCat("Rank ", rank, " of the test's job ended (", LogOf(rank).string(), ")",
                     no_torch ? "; it needs a Python with PyTorch (--python)" : "", ":\n",
                     absl::StripTrailingAsciiWhitespace(log)));
  }
  return absl::OkStatus();
}

absl::Status DemoJob::AwaitSteps(uint64_t count, host::Clock* clock, const std::stop_token& stop) {
  const uint64_t wanted = NewestStep(ReadFile(LogOf(0)).value_or("")) + count;
  for (int64_t waited_ns = 0; waited_ns < kStepsLimitNs; waited_ns += kAskEveryNs) {
    SYNCLINE_RETURN_IF_ERROR(CheckAlive());
    if (NewestStep(ReadFile(LogOf(0)).value_or("")) >= wanted) return absl::OkStatus();
    clock->Wait(kAskEveryNs, stop);
    if (stop.stop_requested()) return absl::CancelledError("interrupted: the test's job was ended");
  }
  return absl::DeadlineExceededError(absl::StrCat("The test's job trained no ", count,
                                                  " steps within ", kStepsLimitNs / 1'000'000'000,
                                                  " s; its log is ", LogOf(0).string()));
}

absl::Status DemoJob::Apply(const Delay& delay) const {
  return WriteFileAtomically(place_.directory / kSwitch, SwitchText(delay));
}

}  // namespace syncline::selftest
