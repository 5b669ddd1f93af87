// SPDX-License-Identifier: Apache-2.0
// syncline-agent. The only place of the agent that touches argv, the environment, signals and real
// clocks.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/code/code_recorder.h"
#include "agent/connections/connection_recorder.h"
#include "agent/devices/device_child.h"
#include "agent/devices/device_finder.h"
#include "agent/devices/device_recorder.h"
#include "agent/evidence/evidence_recorder.h"
#include "agent/host/log.h"
#include "agent/kineto/kineto_profiles.h"
#include "agent/node/inventory.h"
#include "agent/options.h"
#include "agent/probe/clock_sampler.h"
#include "agent/probe/udp/probe_service.h"
#include "agent/recording/block_gate.h"
#include "agent/recording/canary.h"
#include "agent/recording/guard.h"
#include "agent/recording/recording_manager.h"
#include "agent/scheduling/scheduling_recorder.h"
#include "agent/service/server.h"
#include "agent/session/lttng_library.h"
#include "agent/session/session_child.h"
#include "agent/session/session_daemon.h"
#include "agent/session/session_process.h"
#include "agent/session/spawn.h"
#include "agent/stacks/stack_reader.h"
#include "agent/tfprofiler/port_prober.h"
#include "agent/tfprofiler/tf_profiles.h"
#include "agent/vtune/vtune_child.h"
#include "agent/vtune/vtune_collector.h"
#include "agent/vtune/vtune_finder.h"
#include "common/descriptors.h"
#include "common/files.h"
#include "common/status.h"
#include "syncline_commit.h"

namespace syncline::agent {
namespace {

constexpr const char* kSessionChildFlag = "--session-child";
constexpr const char* kRunAsFlag = "--run-as";
constexpr const char* kLimitFilesFlag = "--limit-files";
constexpr int kSessionChildSocket = 3;
constexpr int64_t kTickPeriodNs = 250'000'000;
constexpr int kShutdownLimitMs = 3'000;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Where this user's session daemon lives. Root uses LTTng's own places. Others often have a $HOME
// that many nodes share, where a second node's daemon refuses to start: so a node-local directory,
// the same that `syncline run` gives to programs.
std::string LttngHome(uint32_t uid) {
  if (uid == 0) return "";
  const std::string given = Variable("LTTNG_HOME");
  if (!given.empty()) return given;
  return (control_block::RuntimeDirectory(uid, Variable("SYNCLINE_RUNTIME_DIR")) / "lttng")
      .string();
}

// Sees to it that nobody else can enter the data directory. An empty one, or one of an agent, is
// closed; a directory that holds other things is left as it is and refused.
absl::Status CloseDataDirectory(const std::string& directory) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(directory, 0700));
  struct stat info;
  // A link is followed if it is this user's or root's, not a neighbour's.
  if (::lstat(directory.c_str(), &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid != 0 &&
      info.st_uid != ::geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("The data directory \"", directory, "\" is somebody else's link"));
  }
  if (::stat(directory.c_str(), &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot access \"", directory, "\""));
  }
  if (info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0) return absl::OkStatus();
  std::error_code error;
  const bool ours =
      info.st_uid == ::geteuid() && (std::filesystem::is_empty(directory, error) ||
                                     std::filesystem::exists(directory + "/agent.lock", error));
  if (ours && ::chmod(directory.c_str(), 0700) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("The data directory \"", directory,
                   "\" must belong to this user with mode 0700: run chmod 700 on it, or choose "
                   "another --data-dir"));
}

// Makes the data directory and takes it; the descriptor holds the lock until the process ends.
absl::Status TakeDataDirectory(const std::string& directory) {
  SYNCLINE_RETURN_IF_ERROR(CloseDataDirectory(directory));
  const std::string path = directory + "/agent.lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("Cannot open \"", path, "\""));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("Another agent uses the data directory \"", directory, "\""));
  }
  return absl::OkStatus();
}

// The canary stands beside the agent, or where a distribution puts it.
std::string CanaryProgram(const std::filesystem::path& self) {
  for (const char* relative : {"syncline-canary", "../libexec/syncline/syncline-canary"}) {
    const std::filesystem::path candidate = self.parent_path() / relative;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal().string();
  }
  return (self.parent_path() / "syncline-canary").string();  // named when it cannot be run
}

int OpenLog(const std::string& path) {
  if (path.empty()) return STDERR_FILENO;
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

sigset_t EndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

std::string HostName() {
  char name[256] = "node";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// Everything the agent is made of, in the order in which it must be taken down again.
class Agent {
 public:
  // `child_descriptors`: the soft limit of open files that programs are started with.
  Agent(Options options, int log_fd, rlim_t child_descriptors)
      : options_(std::move(options)),
        uid_(::geteuid()),
        self_(std::filesystem::read_symlink("/proc/self/exe")),
        launcher_({self_.string(), kLimitFilesFlag, absl::StrCat(child_descriptors)}),
        runner_(launcher_),
        log_(log_fd, &clock_),
        lttng_(Launched({self_.string(), kSessionChildFlag}), environment()),
        daemon_(&lttng_, &runner_, environment(), options_.data_dir + "/lttng-sessiond.pid"),
        gate_(&clock_, {.own_uid = uid_, .configured_directory = Variable("SYNCLINE_RUNTIME_DIR")}),
        canary_(&runner_, {.own_uid = uid_,
                           .canary_program = CanaryProgram(self_),
                           .agent_program = self_.string(),
                           .environment = environment()}),
        guard_({self_.string(), kGuardFlag}),
        sampler_(&clock_, options_.node_name.empty() ? HostName() : options_.node_name),
        profilers_(&clock_, {.only_uid = uid_}),
        profiles_(&profilers_, &clock_, &log_),
        kineto_([this] { return gate_.RuntimeDirectories(); }, &clock_, &log_),
        evidence_([this] { return gate_.RuntimeDirectories(); }, &clock_, &log_),
        connections_([this] { return gate_.RuntimeDirectories(); }, &clock_, &log_),
        code_([this] { return gate_.RuntimeDirectories(); }, &clock_, &log_,
              {.sampler = {.time_shift_ns = TimeNamespaceShiftNs()},
               .symbols = {.command = {self_.string(), kSymbolChildFlag}}}),
        scheduling_([this] { return gate_.RuntimeDirectories(); }, &clock_, &log_),
        vtune_finder_(&runner_, {.profiler_directory = Variable("VTUNE_PROFILER_DIR"),
                                 .path = Variable("PATH"),
                                 .only_roots = uid_ == 0}),
        vtune_(
            [this](std::vector<v1::Complaint>* complaints) { return gate_.Processes(complaints); },
            &vtune_finder_, &log_,
            {.tools = {.runner = &runner_,
                       .clock = &clock_,
                       .child = {self_.string(), kVtuneChildFlag}}}),
        device_finder_(&runner_, &clock_, DevicesBy(kDescribeDevicesFlag)),
        devices_(&log_, DevicesBy(kDeviceChildFlag)),
        ranks_([this] { return gate_.RuntimeDirectories(); }, &clock_, {}),
        stacks_(
            [this](std::vector<v1::Complaint>* complaints) { return gate_.Processes(complaints); },
            [this] { return gate_.RuntimeDirectories(); }, &clock_, &ranks_, {.own_uid = uid_}),
        inventory_({.gate = &gate_,
                    .lttng = &lttng_,
                    .runner = &runner_,
                    .room = &room_,
                    .clock = &clock_,
                    .profilers = &profilers_,
                    .tools = [this] { return Tools(); },
                    .offers =
                        [this] {
                          return std::vector{code_.Offer(), scheduling_.Offer()};
                        }},
                   {.data_directory = options_.data_dir,
                    .version = SYNCLINE_VERSION,
                    .lttng_home = LttngHome(uid_)}),
        manager_({.lttng = &lttng_,
                  .daemon = &daemon_,
                  .gate = &gate_,
                  .canary = &canary_,
                  .room = &room_,
                  .clock = &clock_,
                  .clock_recorder = &sampler_,
                  .guard = &guard_,
                  .sources = {&profiles_, &kineto_, &evidence_, &connections_, &code_, &scheduling_,
                              &vtune_, &devices_},
                  .log = &log_,
                  .node_json = [this] { return inventory_.DescribeAsJson(); }},
                 {.data_directory = options_.data_dir,
                  .retention_ns = static_cast<int64_t>(options_.retention_hours * 3600e9),
                  .seed = (uint64_t{std::random_device()()} << 32) | std::random_device()()}) {}

  absl::Status Run() {
    SYNCLINE_RETURN_IF_ERROR(CheckLttngHome());
    SYNCLINE_RETURN_IF_ERROR(manager_.Recover());
    ranks_.Tick();  // before a recording clears away what those have left that were killed
    // LTTng knows at once what starts after its session daemon, other programs up to 5 s later.
    // Each recording asks again, and says what is wrong.
    log_.Failure("session daemon", daemon_.Ensure());
    auto started = AgentServer::Start({.manager = &manager_,
                                       .inventory = &inventory_,
                                       .clock = &clock_,
                                       .probes = &probes_,
                                       .stacks = &stacks_,
                                       .activity = &activity_,
                                       .log = &log_},
                                      {.socket_path = options_.socket,
                                       .listen_address = options_.listen,
                                       .tls_directory = options_.tls_dir});
    if (!started.ok()) {
      daemon_.StopIfOurs();
      return started.status();
    }
    const std::unique_ptr<AgentServer> server = *std::move(started);
    log_.Info("serving", {{"version", SYNCLINE_VERSION},
                          {"pid", absl::StrCat(::getpid())},
                          {"uid", absl::StrCat(uid_)},
                          {"socket", options_.socket},
                          {"listen", options_.listen},
                          {"port", absl::StrCat(server->port())},
                          {"data_dir", options_.data_dir}});
    ListenForProbes(server->port());
    const int signal_number = ServeUntilTold();
    server->StopListening();  // who comes now starts the next one
    manager_.Shutdown();
    server->Shutdown(kShutdownLimitMs);
    // Programs find their way to another session daemon only after seconds: an agent that only
    // makes room for the next one leaves it the one that runs.
    if (signal_number != SIGUSR1) daemon_.StopIfOurs();
    log_.Info("ended");
    return absl::OkStatus();
  }

 private:
  // The session daemon is not started, nor asked, in a directory that somebody else has put into
  // shared memory under this user's name.
  absl::Status CheckLttngHome() const {
    const std::filesystem::path runtime =
        control_block::RuntimeDirectory(uid_, Variable("SYNCLINE_RUNTIME_DIR"));
    if (std::filesystem::path(LttngHome(uid_)).parent_path() != runtime) return absl::OkStatus();
    ::mkdir(runtime.c_str(), 0700);
    return control_block::OpenRuntimeDirectory(runtime, uid_).status();
  }

  // The signal that ends it; 0: nobody wants it any more.
  int ServeUntilTold() {
    const sigset_t signals = EndingSignals();
    const timespec period{.tv_sec = 0, .tv_nsec = kTickPeriodNs};
    int signal_number = -1;
    while ((signal_number = ::sigtimedwait(&signals, nullptr, &period)) < 0) {
      manager_.Tick();
      ranks_.Tick();
      probes_.Tick(clock_.RawNs());
      if (IsIdle()) signal_number = 0;
      if (signal_number == 0) break;
    }
    // A second signal ends at once; what is left then is adopted by the next agent.
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    log_.Info("ending", {{"signal", absl::StrCat(signal_number)},
                         {"reason", signal_number == 0 ? "idle" : "signal"}});
    return signal_number;
  }

  bool IsIdle() {
    constexpr double kNsPerMinute = 60e9;
    return options_.idle_minutes > 0 && !manager_.IsBusy() &&
           static_cast<double>(activity_.IdleNs()) > options_.idle_minutes * kNsPerMinute;
  }

  // UDP on the same port as TCP. An agent that cannot is one without these probes, not a broken
  // one.
  void ListenForProbes(int tcp_port) {
    if (tcp_port == 0) return;
    const std::string host = options_.listen.substr(0, options_.listen.rfind(':'));
    log_.Failure("probes", probes_.Listen(absl::StrCat(host, ":", tcp_port)));
  }

  std::vector<std::string> Launched(const std::vector<std::string>& command) const {
    std::vector<std::string> launched = launcher_;
    launched.insert(launched.end(), command.begin(), command.end());
    return launched;
  }

  std::vector<v1::NodeTool> Tools() {
    std::vector<v1::NodeTool> tools;
    if (auto vtune = vtune_finder_.Find()) tools.push_back(*std::move(vtune));
    if (auto nvml = device_finder_.Find()) tools.push_back(*std::move(nvml));
    return tools;
  }

  DeviceOptions DevicesBy(const char* flag) const {
    return {.command = {self_.string(), flag}, .library = Variable("SYNCLINE_NVML_LIBRARY")};
  }

  std::map<std::string, std::string> environment() const {
    const std::string home = LttngHome(uid_);
    if (home.empty()) return {};
    return {{"LTTNG_HOME", home}};
  }

  const Options options_;
  const uint32_t uid_;
  const std::filesystem::path self_;
  const std::vector<std::string> launcher_;
  SystemClock clock_;
  SystemRoom room_;
  SystemProcessRunner runner_;
  Log log_;
  SessionProcess lttng_;
  SessionDaemon daemon_;
  BlockGate gate_;
  SystemCanary canary_;
  GuardProcess guard_;
  ClockSampler sampler_;
  PortProber profilers_;
  TfProfiles profiles_;
  KinetoProfiles kineto_;
  EvidenceRecorder evidence_;
  ConnectionRecorder connections_;
  CodeRecorder code_;
  SchedulingRecorder scheduling_;
  VtuneFinder vtune_finder_;
  VtuneCollector vtune_;
  DeviceFinder device_finder_;
  DeviceRecorder devices_;
  RankWatch ranks_;
  StackReader stacks_;
  Inventory inventory_;
  RecordingManager manager_;
  probe::ProbeService probes_;
  Activity activity_{&clock_};
};

// What remains of an agent that must only end a recording of another one.
int GuardRecording() {
  const uint32_t uid = ::geteuid();
  const std::string home = LttngHome(uid);
  std::map<std::string, std::string> environment;
  if (!home.empty()) environment["LTTNG_HOME"] = home;
  ::umask(0077);
  SystemClock clock;
  SystemRoom room;
  Log log(STDERR_FILENO, &clock);
  SessionProcess lttng(
      {std::filesystem::read_symlink("/proc/self/exe").string(), kSessionChildFlag}, environment);
  BlockGate gate(&clock,
                 {.own_uid = uid, .configured_directory = Variable("SYNCLINE_RUNTIME_DIR")});
  RecordingManager manager({.lttng = &lttng, .gate = &gate, .clock = &clock, .log = &log}, {});
  return RunGuard(kSessionChildSocket,
                  {.clock = &clock, .room = &room, .end = [&](const journal::GuardOrders& orders) {
                     return manager.EndForAgent(orders);
                   }});
}

int RunAgent(int argc, char** argv) {
  ParsedOptions parsed = ParseOptions(argc, argv, SYNCLINE_VERSION SYNCLINE_COMMIT_TEXT);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  auto options = CompleteOptions(std::move(parsed.options));
  if (!options.ok()) {
    std::fprintf(stderr, "syncline-agent: %s\n", std::string(options.status().message()).c_str());
    return 2;
  }
  ::umask(0077);
  // Blocked before any thread exists, so that only sigtimedwait sees them.
  const sigset_t signals = EndingSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  // A job that forks workers costs two for each process at a time, a peer one.
  const rlim_t child_descriptors = RaiseDescriptorLimit();
  absl::Status status = TakeDataDirectory(options->data_dir);
  if (status.ok()) {
    const int log_fd = OpenLog(options->log_file);
    if (log_fd < 0)
      status = ErrnoStatus(errno, "Cannot open the log \"" + options->log_file + "\"");
    if (status.ok()) status = std::make_unique<Agent>(*options, log_fd, child_descriptors)->Run();
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "syncline-agent: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace syncline::agent

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == syncline::agent::kSessionChildFlag) {
    ::signal(SIGPIPE, SIG_IGN);  // a session daemon that ends in mid-call is an error, not the end
    syncline::agent::LttngLibrary lttng;
    return syncline::agent::RunSessionChild(syncline::agent::kSessionChildSocket, lttng);
  }
  if (mode == syncline::agent::kRunAsFlag && argc == 5) {
    uint32_t uid = 0;
    if (!absl::SimpleAtoi(argv[2], &uid)) return 2;
    return syncline::agent::RunAs(uid, argv[3], argv[4]);
  }
  if (mode == syncline::agent::kSymbolChildFlag && argc == 3) {
    uint32_t uid = 0;
    if (!absl::SimpleAtoi(argv[2], &uid)) return 2;
    return syncline::agent::RunSymbolChild(uid, 3, STDOUT_FILENO);
  }
  if (mode == syncline::agent::kVtuneChildFlag && argc > 3) {
    uint32_t uid = 0;
    if (!absl::SimpleAtoi(argv[2], &uid)) return 2;
    return syncline::agent::RunVtuneChild(uid, argv + 3);
  }
  if (mode == syncline::agent::kDeviceChildFlag && argc == 3) {
    syncline::agent::SystemClock clock;
    return syncline::agent::RunDeviceChild({.library = argv[2]}, &clock);
  }
  if (mode == syncline::agent::kDescribeDevicesFlag && argc == 3) {
    syncline::agent::SystemClock clock;
    return syncline::agent::DescribeDevices({.library = argv[2]}, &clock);
  }
  if (mode == syncline::agent::kGuardFlag) return syncline::agent::GuardRecording();
  if (mode == syncline::agent::kLimitFilesFlag && argc > 3) {
    uint64_t soft = 0;
    if (!absl::SimpleAtoi(argv[2], &soft)) return 2;
    return syncline::agent::BecomeWithDescriptors(soft, argv + 3);
  }
  return syncline::agent::RunAgent(argc, argv);
}
