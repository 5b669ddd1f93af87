// SPDX-License-Identifier: Apache-2.0
#include "agent/node/inventory.h"

#include <google/protobuf/util/json_util.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/node/shared_ranks.h"
#include "agent/node/torch_sight.h"
#include "agent/recording/process_part.h"
#include "agent/recording/registration.h"
#include "agent/tfprofiler/profile_entry.h"
#include "common/files.h"
#include "common/process_part.h"
#include "common/utf8.h"
#include "proto/texts.h"

namespace syncline::agent {
namespace {

constexpr int kVersionLimitMs = 3'000;
constexpr double kNewbornSeconds = 1;
constexpr uint64_t kSmallShmBytes = 64 << 20;  // Docker's default
// Features that decide which kernels oneDNN picks; the rest says nothing about a training job.
constexpr std::array<const char*, 8> kCpuFeatures = {"avx2",        "avx512f",  "avx512_vnni",
                                                     "avx512_bf16", "amx_bf16", "amx_int8",
                                                     "amx_tile",    "avx_vnni"};

std::string FirstLine(const std::filesystem::path& path) {
  const auto text = ReadFile(path, 1 << 16);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
}

void Complain(v1::Complaint::Severity severity, int32_t pid, std::string what, std::string fix,
              v1::DescribeResponse* response) {
  v1::Complaint& complaint = *response->add_complaints();
  complaint.set_severity(severity);
  complaint.set_pid(pid);
  complaint.set_what(std::move(what));
  complaint.set_fix(std::move(fix));
}

void DescribeCpu(const std::filesystem::path& proc, v1::DescribeResponse* response) {
  const auto text = ReadFile(proc / "cpuinfo", 64 << 20);
  if (!text.ok()) return;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(field.first);
    if (key == "model name" && response->cpu_model().empty()) {
      response->set_cpu_model(std::string(absl::StripAsciiWhitespace(field.second)));
    }
    if (key != "flags" || response->cpu_features_size() != 0) continue;
    const std::set<absl::string_view> flags = absl::StrSplit(field.second, ' ', absl::SkipEmpty());
    for (const char* feature : kCpuFeatures) {
      if (flags.count(feature) != 0) response->add_cpu_features(feature);
    }
  }
}

// How many of the CPUs that the kernel counts share a core; 1 where it does not say.
uint32_t ThreadsPerCore(const std::filesystem::path& proc) {
  const auto text = ReadFile(proc / "cpuinfo", 64 << 20);
  uint32_t siblings = 0;
  uint32_t cores = 0;
  if (!text.ok()) return 1;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(field.first);
    const absl::string_view value = absl::StripAsciiWhitespace(field.second);
    if (key == "siblings" && !absl::SimpleAtoi(value, &siblings)) return 1;
    if (key == "cpu cores" && !absl::SimpleAtoi(value, &cores)) return 1;
    if (siblings != 0 && cores != 0) return std::max(1u, siblings / cores);
  }
  return 1;
}

uint64_t MemoryBytes(const std::filesystem::path& proc) {
  const auto text = ReadFile(proc / "meminfo", 1 << 16);
  if (!text.ok()) return 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::ConsumePrefix(&line, "MemTotal:")) continue;
    absl::ConsumeSuffix(&line, "kB");
    uint64_t kib = 0;
    return absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &kib) ? kib * 1024 : 0;
  }
  return 0;
}

// Whether what is to be said of a launcher or a loader worker is said of a rank beside it.
bool IsSaidOfItsRanks(const std::filesystem::path& proc, const ProcessEntry& entry,
                      std::string_view part, const std::vector<ProcessEntry>& entries) {
  if (part != kPartLauncher && part != kPartLoaderWorker) return false;
  return std::any_of(entries.begin(), entries.end(), [&](const ProcessEntry& other) {
    const bool beside =
        part == kPartLauncher ? other.parent_pid == entry.pid : other.pid == entry.parent_pid;
    return beside && !FrameworkOf(proc, other.pid).empty();
  });
}

// To be called when the processes are described.
void DescribeProfilers(const std::vector<FoundProfiler>& profilers,
                       v1::DescribeResponse* response) {
  for (const FoundProfiler& found : profilers) {
    for (v1::ProcessInfo& process : *response->mutable_processes()) {
      if (process.pid() != found.process.pid) continue;
      v1::TfProfiler& profiler = *process.mutable_tf_profiler();
      profiler.set_port_number(found.port);
      profiler.set_task(found.task);
      profiler.set_absence(found.absence);
      profiler.set_runs_collectives(found.runs_collectives);
    }
    if (found.port != 0 && found.runs_collectives) {
      Complain(v1::Complaint::NOTE, found.process.pid,
               absl::StrCat("Process ", found.process.pid, " (", found.process.name,
                            "): its operators are recorded only on request, because ",
                            kCollectivesAreUnsafe),
               kAskAllTheSame, response);
    }
    if (found.port != 0) continue;
    Complain(v1::Complaint::NOTE, found.process.pid,
             absl::StrCat("Process ", found.process.pid, " (", found.process.name, ") runs ",
                          found.jax ? "JAX" : "TensorFlow", " without a profiler server (",
                          found.absence, "): its operators are not recorded"),
             found.jax
                 ? "a program can call jax.profiler.start_server(PORT), which lets anyone on the "
                   "network profile it"
                 : "workers of tf.distribute start a profiler server on their own; any other "
                   "program can call "
                   "tf.profiler.experimental.server.start(PORT), which lets anyone on the network "
                   "profile it",
             response);
  }
}

}  // namespace

Inventory::Inventory(InventoryParts parts, InventoryOptions options)
    : parts_(parts), options_(std::move(options)) {}

void Inventory::DescribeMachine(v1::DescribeResponse* response) const {
  utsname names{};
  ::uname(&names);
  response->set_agent_version(options_.version);
  response->set_protocol("syncline.v1");
  response->set_hostname(names.nodename);
  response->set_kernel(names.release);
  response->set_machine(names.machine);
  response->set_boot_id(FirstLine(options_.proc / "sys/kernel/random/boot_id"));
  response->set_cpu_count(static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  DescribeCpu(options_.proc, response);
  response->set_memory_bytes(MemoryBytes(options_.proc));
  response->set_shm_free_bytes(parts_.room->ShmFreeBytes());
  response->set_shm_total_bytes(parts_.room->ShmTotalBytes());
  response->set_disk_free_bytes(parts_.room->DiskFreeBytes(options_.data_directory));
  response->set_agent_uid(::geteuid());
  response->set_pid_namespace_inode(static_cast<int64_t>(OwnPidNamespace(options_.proc)));
  response->set_monotonic_ns(parts_.clock->MonotonicNs());
  response->set_monotonic_raw_ns(parts_.clock->RawNs());
  response->set_realtime_ns(parts_.clock->RealtimeNs());
  if (response->shm_total_bytes() != 0 && response->shm_total_bytes() <= kSmallShmBytes) {
    Complain(v1::Complaint::NOTE, 0,
             absl::StrCat("/dev/shm is small (", response->shm_total_bytes() >> 20,
                          " MiB): trace buffers will be small, and busy programs may lose events"),
             "docker run --shm-size=256m, or mount -o remount,size=256m /dev/shm", response);
  }
}

std::string Inventory::LttngVersion() {
  const std::lock_guard lock(mutex_);
  if (lttng_version_.has_value() && !lttng_version_->empty()) return *lttng_version_;
  const auto result =
      parts_.runner->Run({.arguments = {"lttng-sessiond", "--version"}}, kVersionLimitMs);
  std::string version;
  if (result.ok() && result->exit_code == 0) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(result->output, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    if (!words.empty()) version = std::string(words.front());
  }
  lttng_version_ = version;
  return version;
}

void Inventory::DescribeLttng(v1::DescribeResponse* response) {
  response->set_lttng_version(LttngVersion());
  const auto alive = parts_.lttng->DaemonAlive();
  response->set_session_daemon_running(alive.ok() && *alive);
  if (!alive.ok()) {
    Complain(v1::Complaint::BLOCKER, 0,
             absl::StrCat("LTTng does not answer: ", alive.status().message()),
             "check lttng-sessiond: if it is stopped, restart it", response);
  }
  if (response->lttng_version().empty() && !response->session_daemon_running()) {
    Complain(v1::Complaint::BLOCKER, 0, "LTTng is not installed: nothing can be recorded here",
             "apt install lttng-tools (or your distribution's package)", response);
  }
}

void Inventory::ComplainOfProcess(const ProcessEntry& entry,
                                  const std::vector<ProcessEntry>& entries, bool has_block,
                                  bool has_profiler, v1::DescribeResponse* response) const {
  if (has_block) {
    if (options_.lttng_home.empty() || entry.uid == 0) return;
    const auto home = EnvironmentOf(options_.proc, entry.pid, "LTTNG_HOME");
    if (home.value_or(options_.lttng_home) == options_.lttng_home) return;
    Complain(v1::Complaint::WARNING, entry.pid,
             absl::StrCat("Process ", entry.pid, " uses LTTNG_HOME=", *home, ", the agent uses ",
                          options_.lttng_home, ": none of its events will be recorded"),
             "start both with the same LTTNG_HOME, or leave it unset for both", response);
    return;
  }
  const std::string framework = FrameworkOf(options_.proc, entry.pid);
  if (framework.empty()) return;
  // A forked child of a traced program makes its control block a moment later.
  const std::optional<double> age_seconds = AgeSeconds(options_.proc, entry);
  if (age_seconds && *age_seconds < kNewbornSeconds &&
      HasMapped(options_.proc, entry.pid, "libsyncline_torch.so").value_or(false)) {
    return;
  }
  v1::ProcessInfo& info = *response->add_processes();
  info.set_pid(entry.pid);
  info.set_own_pid(entry.own_pid);
  info.set_pid_namespace_inode(static_cast<int64_t>(entry.pid_namespace));
  info.set_start_ticks(entry.start_ticks);
  info.set_uid(entry.uid);
  info.set_command_line(entry.name);
  info.set_rank(-1);
  info.set_world_size(-1);
  info.set_stopped(entry.stopped());
  info.set_part(PartByThread(entry.name));
  if (IsSaidOfItsRanks(options_.proc, entry, info.part(), entries)) return;
  Complain(v1::Complaint::WARNING, entry.pid,
           absl::StrCat("Process ", entry.pid, " (", entry.name, ") runs ", framework,
                        " but was not started for tracing: ",
                        has_profiler ? "only its operators" : "nothing of it", " will be recorded"),
           "start it under `syncline run -- ...`, or with the lines of `syncline env`", response);
}

void Inventory::DescribeProcesses(const std::vector<FoundProfiler>& profilers, bool cpu_checked,
                                  v1::DescribeResponse* response) {
  std::set<int32_t> with_profiler;
  for (const FoundProfiler& found : profilers) {
    if (found.port != 0) with_profiler.insert(found.process.pid);
  }
  std::vector<v1::Complaint> complaints;
  std::set<int32_t> with_block;
  std::vector<v1::ProcessInfo> processes = parts_.gate->Processes(&complaints);
  const std::vector<ProcessEntry> entries =
      ListProcesses(options_.proc).value_or(std::vector<ProcessEntry>());
  for (v1::Complaint& complaint : ComplainOfSharedRanks(options_.proc, processes, entries)) {
    complaints.push_back(std::move(complaint));
  }
  std::optional<Processor> processor;
  if (!cpu_checked) {
    processor = {response->cpu_count(),
                 {response->cpu_features().begin(), response->cpu_features().end()},
                 ThreadsPerCore(options_.proc)};
  }
  for (v1::Complaint& complaint : ComplainOfTorch(options_.proc, processes, processor)) {
    complaints.push_back(std::move(complaint));
  }
  for (v1::ProcessInfo& process : processes) {
    if (process.pid() != 0) with_block.insert(process.pid());
    if (auto want = WantOfDescriptors(options_.proc, process); want.has_value()) {
      complaints.push_back(*std::move(want));
    }
    *response->add_processes() = std::move(process);
  }
  if (response->processes_size() == 0) {
    Complain(v1::Complaint::WARNING, 0, "No program on this node is ready to be traced",
             "start the program under `syncline run -- ...`; if it was, it ended before the agent "
             "looked, runs as another user, or has not yet called what is recorded (ITT, sockets)",
             response);
  }
  for (v1::Complaint& complaint : complaints) *response->add_complaints() = std::move(complaint);
  const uint32_t own_uid = response->agent_uid();
  for (const ProcessEntry& entry : entries) {
    if (own_uid != 0 && entry.uid != own_uid) continue;
    ComplainOfProcess(entry, entries, with_block.count(entry.pid) != 0,
                      with_profiler.count(entry.pid) != 0, response);
  }
}

v1::DescribeResponse Inventory::Describe(bool cpu_checked) {
  v1::DescribeResponse response;
  DescribeMachine(&response);
  DescribeLttng(&response);
  const std::vector<FoundProfiler> profilers = parts_.profilers->Find();
  DescribeProcesses(profilers, cpu_checked, &response);
  DescribeProfilers(profilers, &response);
  if (parts_.tools != nullptr) {
    for (v1::NodeTool& tool : parts_.tools()) *response.add_tools() = std::move(tool);
  }
  if (parts_.offers != nullptr) {
    for (v1::EvidenceOffer& offer : parts_.offers()) {
      *response.add_evidence() = std::move(offer);
    }
  }
  return response;
}

std::string Inventory::DescribeAsJson() {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  v1::DescribeResponse described = Describe();
  RewriteTexts(&described, &RepairedUtf8);
  if (!google::protobuf::util::MessageToJsonString(described, &text, options).ok()) text = "{}";
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) json = nlohmann::json::object();
  json["format_version"] = 1;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::agent
