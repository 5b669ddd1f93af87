// syncline: the command line. The only place of the coordinator that touches argv, the environment,
// signals and real clocks.
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>

#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/fleet/grpc_agent_client.h"

namespace syncline::cli {
namespace {

int64_t Read(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class RealClock : public clocks::Clock {
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

void AddGlobalOptions(CLI::App* app, Context* context) {
  app->set_version_flag("--version", std::string("syncline ") + SYNCLINE_VERSION);
  app->add_option("--hosts", context->hosts_file,
                  "File with a node a line: name address[:port] [role=...]");
  app->add_option("-H,--host", context->host_list,
                  "Nodes a,b,node[01-16]; with --hosts: only these of the file");
  app->add_option("--tls-dir", context->tls_directory,
                  "Certificates made by `syncline certs` (default: $SYNCLINE_TLS_DIR)");
  app->add_flag("-q,--quiet", context->quiet, "Only results, warnings and errors");
  const auto choice = CLI::IsMember({"auto", "always", "never"});
  app->add_option("--color", context->color, "auto, always or never")->check(choice);
  app->add_option("--progress", context->progress, "auto, always or never")->check(choice);
  app->footer(
      "Nodes may also come from $SYNCLINE_HOSTS: the path of a hosts file, or a list.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but incomplete.\n\n"
      "A first recording:\n"
      "  syncline certs init tls --hosts hosts.txt      # then start syncline-agent on each node\n"
      "  syncline nodes --hosts hosts.txt --tls-dir tls\n"
      "  syncline record --for 10s --hosts hosts.txt --tls-dir tls");
}

// Takes the words after "--" away when the command is `run`: they are a program with options of its
// own, which CLI11 would look at.
std::vector<std::string> TakeProgram(const CLI::App& app, std::vector<std::string>* words) {
  const auto dashes = std::find(words->begin(), words->end(), "--");
  const auto command = std::find_if(words->begin(), dashes, [&](const std::string& word) {
    const auto commands =
        app.get_subcommands([&](const CLI::App* one) { return one->check_name(word); });
    return !commands.empty();
  });
  if (dashes == words->end() || command == dashes || *command != "run") return {};
  std::vector<std::string> program(dashes + 1, words->end());
  words->erase(dashes, words->end());
  return program;
}

int Main(int argc, char** argv) {
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
  context.connect = [&](const hosts::Node& node, const certs::Credentials& credentials) {
    return fleet::MakeGrpcAgentClient(
        node, credentials,
        {.monotonic_raw_ns = [&clock] { return clock.RawNs(); },
         .unix_s = [&clock] { return clock.UnixNs() / 1'000'000'000; }});
  };

  CLI::App app("One timeline across machines, with an honest error bar", "syncline");
  app.require_subcommand(1);
  app.fallthrough();
  app.get_formatter()->column_width(28);
  AddGlobalOptions(&app, &context);
  RegisterCerts(&app, &context);
  RegisterNodes(&app, &context);
  RegisterRecord(&app, &context);
  RegisterFetch(&app, &context);
  RegisterStatus(&app, &context);
  RegisterStop(&app, &context);
  RegisterRelease(&app, &context);
  RegisterClocks(&app, &context);
  RegisterRun(&app, &context);
  RegisterEnv(&app, &context);
  RegisterMerge(&app, &context);
  RegisterEvents(&app, &context);
  RegisterReport(&app, &context);
  RegisterCompletion(&app, &context);
  std::vector<std::string> words(argv + 1, argv + argc);
  context.program = TakeProgram(app, &words);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    // --help and --version end here too, with 0.
    return app.exit(error) == 0 ? kDone : kWrongUsage;
  }
  // Other commands leave nothing behind: a signal may end them where they are.
  if (context.ends_in_good_order) const Signals signals(interrupts);
  if (!context.becomes_program) fleet::SilenceGrpcLog();
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
