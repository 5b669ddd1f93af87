// SPDX-License-Identifier: Apache-2.0
// syncline: the command line. The only place of the coordinator that touches argv, the environment,
// signals and real clocks.
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "common/descriptors.h"
#include "coordinator/cli/command_line.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/environment.h"
#include "coordinator/cli/local_agent.h"
#include "coordinator/fleet/grpc_agent_client.h"
#include "syncline_commit.h"

namespace syncline::cli {
namespace {

int64_t Read(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class RealClock : public host::Clock {
 public:
  int64_t RawNs() const override { return Read(CLOCK_MONOTONIC_RAW); }
  int64_t UnixNs() const override { return Read(CLOCK_REALTIME); }
  void Wait(int64_t ns, const std::stop_token& stop) override {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock<std::mutex> lock(mutex);
    wake.wait_for(lock, stop, std::chrono::nanoseconds(ns), [] { return false; });
  }
};

// SIGINT, SIGTERM and a terminal that hangs up count as presses of Ctrl-C, in a thread that waits
// for them: nothing is done in signal handlers. Blocked in all threads, so this comes before the
// first other thread. What was ignored stays so (nohup; a script's background job).
class Signals {
 public:
  explicit Signals(record::Interrupts* interrupts) {
    // Progress that nobody reads any more must not end a recording.
    ::signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction before {};
      const bool known = ::sigaction(number, nullptr, &before) == 0;
      if (!known || before.sa_handler != SIG_IGN) sigaddset(&set_, number);
    }
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::thread([set = set_, interrupts] {
      constexpr int kImpatient = 3;
      for (int presses = 1;; ++presses) {
        int number = 0;
        if (sigwait(&set, &number) != 0) continue;
        interrupts->Press();
        // Somebody who presses a third time wants out, whatever waits.
        if (presses >= kImpatient) ::_exit(128 + number);
      }
    }).detach();
  }

 private:
  sigset_t set_{};
};

// Inputs are mapped into memory: one that gets shorter while it is read, or whose disk fails, ends
// the command.
void EndWithoutInput(int /*number*/) {
  constexpr std::string_view kWhat =
      "\nsyncline: an input file was truncated while it was read, or its disk failed: traces that "
      "are still being overwritten cannot be read\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWhat.data(), kWhat.size());
  ::_exit(kFailed);
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UserName() {
  passwd entry{};
  passwd* found = nullptr;
  char text[4096];
  if (::getpwuid_r(::getuid(), &entry, text, sizeof text, &found) == 0 && found != nullptr) {
    return entry.pw_name;
  }
  return std::to_string(::getuid());
}

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// This user's own agent. Its node is called as the machine is, because recordings are looked at
// elsewhere too; a hostname that cannot be a node's name is replaced.
// It is started with `child_descriptors` as its soft limit of open files.
void SetLocalAgent(const rlim_t* child_descriptors, Context* context) {
  std::error_code error;
  const LocalAgentPlace place = PlaceOfLocalAgent(
      std::filesystem::read_symlink("/proc/self/exe", error), ::geteuid(), CurrentEnvironment());
  hosts::Node node;
  node.name = recording::CheckNodeName(HostName()).ok() ? HostName() : "local";
  node.socket_path = place.socket.string();
  context->local_node = node;
  context->ensure_local_agent = [place, child_descriptors] {
    const DescriptorLimit as_before(*child_descriptors);  // nothing is connected yet
    return EnsureLocalAgent(place, CurrentEnvironment());
  };
}

int Main(int argc, char** argv) {
  ::signal(SIGBUS, &EndWithoutInput);
  // Leaked: the signal thread lives as long as the process.
  auto* const interrupts = new record::Interrupts;

  RealClock clock;
  Context context;
  context.environment = &Variable;
  context.clock = &clock;
  context.interrupts = interrupts;
  context.out = &std::cout;
  context.err = &std::cerr;
  context.out_is_terminal = ::isatty(STDOUT_FILENO) != 0;
  context.err_is_terminal = ::isatty(STDERR_FILENO) != 0;
  if (!Variable("NO_COLOR").empty()) context.color = "never";
  context.created_by = {UserName(), HostName(), SYNCLINE_VERSION,
                        std::vector<std::string>(argv, argv + argc)};
  context.commit_text = SYNCLINE_COMMIT_TEXT;
  context.connect = [&](const hosts::Node& node, const certs::Credentials& credentials) {
    return fleet::MakeGrpcAgentClient(
        node, credentials,
        {.monotonic_raw_ns = [&clock] { return clock.RawNs(); },
         .unix_s = [&clock] { return clock.UnixNs() / 1'000'000'000; }});
  };

  rlim_t child_descriptors = 0;  // known before any command runs
  SetLocalAgent(&child_descriptors, &context);

  if (const std::optional<int> code = ParseCommandLine({argv + 1, argv + argc}, &context)) {
    return *code;
  }
  // Other commands leave nothing behind: a signal may end them where they are.
  if (context.ends_in_good_order) const Signals signals(interrupts);
  if (!context.becomes_program) {
    fleet::SilenceGrpcLog();
    // Each node of a recording costs two or three.
    child_descriptors = RaiseDescriptorLimit();
  }
  const int code = context.action();
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "syncline: cannot write the output\n";
    return kFailed;
  }
  return code;
}

}  // namespace
}  // namespace syncline::cli

int main(int argc, char** argv) { return syncline::cli::Main(argc, argv); }
