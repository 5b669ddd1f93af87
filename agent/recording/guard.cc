// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/recording/trace_files.h"
#include "agent/session/spawn.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

constexpr int kLookPeriodMs = 100;
// A guard that is just ending a recording may be in LTTng's hands.
constexpr int kEndLimitMs = 15'000;
constexpr size_t kOrdersBytesMax = 16 << 10;
constexpr const char* kResultFile = "guard.json";

volatile sig_atomic_t told_to_end = 0;
volatile sig_atomic_t taken_over = 0;  // another agent adopts the recording

void OnSignal(int number) { (number == SIGUSR1 ? taken_over : told_to_end) = 1; }

// A service manager that ends everything at once asks the guard as well. It goes when the agent
// has.
void WatchSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaction(number, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

// Until the next look: not past the recording's end, which is kept to the millisecond.
int LookPeriodMs(const journal::GuardOrders& orders, int64_t now_raw_ns) {
  constexpr int64_t kNsPerMs = 1'000'000;
  const int64_t left_ms = (orders.end_raw_ns() - now_raw_ns + kNsPerMs - 1) / kNsPerMs;
  return left_ms > 0 && left_ms < kLookPeriodMs ? static_cast<int>(left_ms) : kLookPeriodMs;
}

enum class Heard { kNothing, kOrders, kGone };

Heard Listen(int socket, int limit_ms, journal::GuardOrders* orders) {
  pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, limit_ms) <= 0) return Heard::kNothing;
  Heard heard = Heard::kNothing;
  std::string packet;
  for (;;) {
    packet.resize(kOrdersBytesMax);
    const ssize_t length = ::recv(socket, packet.data(), packet.size(), MSG_DONTWAIT);
    if (length == 0 || (length < 0 && errno == ECONNRESET)) return Heard::kGone;
    if (length < 0) return heard;
    journal::GuardOrders newer;
    if (!newer.ParseFromArray(packet.data(), static_cast<int>(length))) continue;
    *orders = std::move(newer);
    heard = Heard::kOrders;
  }
}

void Send(int socket, const journal::GuardOrders& orders) {
  const std::string packet = orders.SerializeAsString();
  [[maybe_unused]] const ssize_t sent =
      ::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

std::optional<std::string> WhyGuardEnds(const journal::GuardOrders& orders,
                                        const GuardSight& sight) {
  const bool silent = sight.silent_ns >= kSilentAgentNs;
  if (!sight.agent_gone && !silent) return std::nullopt;
  const char* agent = sight.agent_gone ? "the agent was dead" : "the agent did not respond";
  // An agent that is only slow still gets its chance.
  const int64_t patience_ns = sight.agent_gone ? 0 : kSilentAgentNs;
  const auto because = [&](absl::string_view why) { return absl::StrCat("guard: ", agent, why); };
  if (sight.agent_gone && !orders.opened()) return because(" before the recording started");
  if (sight.agent_gone && sight.told_to_end) return because(" and its service was stopped");
  if (orders.end_raw_ns() != 0 && sight.now_raw_ns >= orders.end_raw_ns() + patience_ns) {
    return because(" at the end of the recording");
  }
  if (orders.lease_end_monotonic_ns() != 0 &&
      sight.now_monotonic_ns >= orders.lease_end_monotonic_ns() + patience_ns) {
    return because(", and the lease expired: no contact with the coordinator");
  }
  if (orders.size_limit_bytes() != 0 && sight.bytes >= orders.size_limit_bytes()) {
    return because(absl::StrFormat(", and the size limit was reached (%d KiB, --limit is %d KiB)",
                                   sight.bytes >> 10, orders.size_limit_bytes() >> 10));
  }
  if (sight.disk_free_bytes < orders.keep_free_bytes()) {
    return because(absl::StrFormat(
        ", and the disk was nearly full (%d MiB left, %d MiB must stay free: --keep-free)",
        sight.disk_free_bytes >> 20, orders.keep_free_bytes() >> 20));
  }
  return std::nullopt;
}

int RunGuard(int socket, const GuardParts& parts) {
  ::prctl(PR_SET_NAME, "syncline-guard", 0, 0, 0);
  WatchSignals();
  journal::GuardOrders orders;
  GuardSight sight;
  int64_t heard_ns = parts.clock->MonotonicNs();
  for (;;) {
    const int period_ms = LookPeriodMs(orders, parts.clock->RawNs());
    if (sight.agent_gone) {
      ::poll(nullptr, 0, period_ms);
    } else {
      const Heard heard = Listen(socket, period_ms, &orders);
      if (heard == Heard::kOrders) heard_ns = parts.clock->MonotonicNs();
      sight.agent_gone = heard == Heard::kGone;
    }
    if (orders.done() || taken_over != 0) return 0;
    if (orders.directory().empty()) {
      if (sight.agent_gone) return 0;  // it never said what to guard
      continue;
    }
    sight.now_raw_ns = parts.clock->RawNs();
    sight.now_monotonic_ns = parts.clock->MonotonicNs();
    sight.silent_ns = sight.now_monotonic_ns - heard_ns;
    sight.told_to_end = told_to_end != 0;
    if (!sight.agent_gone && sight.silent_ns < kSilentAgentNs) continue;
    sight.bytes = DirectoryBytes(orders.directory()).value_or(sight.bytes);
    sight.disk_free_bytes = parts.room->DiskFreeBytes(orders.directory());
    const auto why = WhyGuardEnds(orders, sight);
    if (!why.has_value()) continue;
    orders.set_agent_lives(!sight.agent_gone);
    v1::StopResponse response = parts.end(orders);
    response.set_stop_reason(*why);
    journal::Entry entry;
    *entry.mutable_stopped() = std::move(response);
    const std::filesystem::path directory = orders.directory();
    return Journal(directory / kResultFile).Append(entry).ok() ? 0 : 1;
  }
}

GuardProcess::~GuardProcess() { End(); }

absl::StatusOr<pid_t> GuardProcess::Begin(const journal::GuardOrders& orders) {
  End();
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return ErrnoStatus(errno, "Cannot create a socket pair");
  }
  // Above 3, so that becoming descriptor 3 of the child is a real copy.
  const int theirs = ::fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
  ::close(pair[1]);
  std::vector<std::string> arguments = command_;
  arguments.push_back(orders.recording_id());
  const auto pid =
      Spawn({.arguments = std::move(arguments), .environment = {}, .pass_as_3 = theirs});
  ::close(theirs);
  if (!pid.ok()) {
    ::close(pair[0]);
    return pid.status();
  }
  Send(pair[0], orders);
  const std::lock_guard lock(mutex_);
  pid_ = *pid;
  socket_ = pair[0];
  return *pid;
}

void GuardProcess::Tell(const journal::GuardOrders& orders) {
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) Send(socket_, orders);
}

void GuardProcess::End() {
  pid_t pid = -1;
  int socket = -1;
  {
    const std::lock_guard lock(mutex_);
    pid = std::exchange(pid_, -1);
    socket = std::exchange(socket_, -1);
  }
  if (pid < 0) return;
  journal::GuardOrders done;
  done.set_done(true);
  Send(socket, done);
  WaitForExit(pid, kEndLimitMs).IgnoreError();
  ::close(socket);
}

void EndLeftoverGuard(const std::filesystem::path& proc, pid_t pid,
                      const std::string& recording_id) {
  if (pid <= 0) return;
  const int pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) return;
  const auto command = ReadFile(proc / absl::StrCat(pid) / "cmdline");
  std::string ending = kGuardFlag;
  ending.push_back('\0');
  ending += recording_id;
  ending.push_back('\0');
  const bool ours = command.ok() && command->size() >= ending.size() &&
                    command->compare(command->size() - ending.size(), ending.size(), ending) == 0;
  // It may be ending the recording right now: that is left to its end.
  pollfd wait{.fd = pid_fd, .events = POLLIN, .revents = 0};
  if (ours && ::poll(&wait, 1, 0) == 0) {
    ::syscall(SYS_pidfd_send_signal, pid_fd, SIGUSR1, nullptr, 0);
    if (::poll(&wait, 1, kEndLimitMs) == 0) {
      ::syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, nullptr, 0);
      ::poll(&wait, 1, 1000);
    }
  }
  ::close(pid_fd);
}

std::optional<v1::StopResponse> GuardResult(const std::filesystem::path& directory) {
  const auto entry = Journal(directory / kResultFile).Read();
  if (!entry.ok() || !entry->has_stopped()) return std::nullopt;
  return entry->stopped();
}

}  // namespace syncline::agent
