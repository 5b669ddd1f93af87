// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/block_gate.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/status.h"
#include "control_block/cost.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::agent {
namespace {

using control_block::Block;
using control_block::BlockId;
using control_block::LiveBlock;

constexpr std::chrono::milliseconds kWatchPeriod(20);
// A program that has just begun may hand events to LTTng before the session daemon has started the
// session in it (usually within 20 ms): they would be lost unseen. Its coverage begins a little
// later.
constexpr int64_t kNewcomerDelayNs = 100'000'000;
// A process notices the closed gate at its next call; one that makes none keeps nobody waiting.
constexpr int64_t kAnswerLimitNs = 100'000'000;
constexpr int64_t kPromptAnswerNs = 10'000'000;  // most have come by then
constexpr int64_t kAnswerPollNs = 2'000'000;
constexpr const char* kLockFile = "agent.lock";

v1::Complaint MakeComplaint(v1::Complaint::Severity severity, int32_t pid, std::string what,
                            std::string fix) {
  v1::Complaint complaint;
  complaint.set_severity(severity);
  complaint.set_pid(pid);
  complaint.set_what(std::move(what));
  complaint.set_fix(std::move(fix));
  return complaint;
}

v1::Complaint StoppedComplaint(const ProcessEntry& entry) {
  return MakeComplaint(
      v1::Complaint::WARNING, entry.pid,
      absl::StrCat("Process ", entry.pid, " (", entry.name,
                   ") is stopped: none of its events is recorded until it continues, and LTTng may "
                   "omit it from this recording"),
      absl::StrCat("kill -CONT ", entry.pid, ", or detach the debugger that holds the process"));
}

v1::Complaint UnreachableComplaint(const BlockId& id) {
  return MakeComplaint(
      v1::Complaint::WARNING, 0,
      absl::StrCat("Process ", id.pid, " of pid namespace ", id.pid_namespace,
                   " has a control block here but is not visible: it was killed, or it runs in a "
                   "sibling pid namespace of the agent's, from which LTTng refuses programs"),
      "run the agent in the host's pid namespace (hostPID: true, docker run --pid=host) or in the"
      " job's own container");
}

v1::Complaint LeftComplaint(const ProcessEntry& entry) {
  return MakeComplaint(v1::Complaint::WARNING, entry.pid,
                       absl::StrCat("Process ", entry.pid, " (", entry.name,
                                    ") became another program (exec) while it was recorded: the "
                                    "events of the new program are not in this recording"),
                       "record again: the new program will be recorded");
}

// A process that became another program (exec) keeps its pid and its start: its block stays behind,
// mapped by nobody.
bool LeftByExec(const std::filesystem::path& proc, const ProcessEntry& entry, const BlockId& id) {
  return !HasMapped(proc, entry.pid, control_block::BlockFileName(id)).value_or(true);
}

// Takes the lock file of one runtime directory. The descriptor, which holds the lock.
absl::StatusOr<int> LockDirectory(const std::filesystem::path& directory, uint32_t uid,
                                  const std::string& holder) {
  const std::filesystem::path path = directory / kLockFile;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("Cannot open \"", path.string(), "\""));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char text[256];
    const ssize_t length = ::pread(fd, text, sizeof text, 0);
    ::close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat("The processes of user ", uid, " are being recorded by another agent for ",
                     absl::string_view(text, length > 0 ? static_cast<size_t>(length) : 0),
                     "; wait until that recording has ended, or stop it"));
  }
  // Root may make it, the user's own agent must be able to use it.
  [[maybe_unused]] const int owned = ::fchown(fd, uid, static_cast<gid_t>(-1));
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, holder.data(), holder.size(), 0) < 0) {
    const int error_number = errno;
    ::close(fd);
    return ErrnoStatus(error_number, absl::StrCat("Cannot write \"", path.string(), "\""));
  }
  return fd;
}

}  // namespace

const ProcessEntry* FindProcess(const std::vector<ProcessEntry>& processes, const BlockId& id) {
  for (const ProcessEntry& entry : processes) {
    if (entry.own_pid == id.pid && entry.pid_namespace == id.pid_namespace &&
        entry.start_ticks == id.start_ticks) {
      return &entry;
    }
  }
  return nullptr;
}

v1::ProcessInfo DescribeProcess(const Block& block, const ProcessEntry* entry) {
  const control_block::ProcessFacts& facts = block.facts;
  v1::ProcessInfo info;
  info.set_pid(entry != nullptr ? entry->pid : 0);
  info.set_own_pid(facts.id.pid);
  info.set_pid_namespace_inode(static_cast<int64_t>(facts.id.pid_namespace));
  info.set_start_ticks(facts.id.start_ticks);
  info.set_uid(facts.uid);
  info.set_command_line(facts.command_line);
  info.set_job(facts.job);
  info.set_incarnation(facts.incarnation);
  info.set_rank(facts.rank);
  info.set_world_size(facts.world_size);
  info.set_role(facts.role);
  info.set_has_control_block(true);
  info.set_stopped(entry != nullptr && entry->stopped());
  info.set_names_count(block.names_count);
  info.set_events_count(block.events());
  if ((facts.sources & SYNCLINE_SOURCE_ITT) != 0) info.add_sources("itt");
  if ((facts.sources & SYNCLINE_SOURCE_NET) != 0) info.add_sources("net");
  if ((facts.sources & SYNCLINE_SOURCE_PYTHON) != 0) info.add_sources("python");
  return info;
}

BlockGate::BlockGate(Clock* clock, BlockGateOptions options)
    : clock_(clock),
      options_(std::move(options)),
      own_pid_namespace_(OwnPidNamespace(options_.proc)) {}

BlockGate::~BlockGate() {
  watcher_ = {};
  Unlock();
}

std::filesystem::path BlockGate::DirectoryOf(uint32_t uid) const {
  if (uid == options_.own_uid && !options_.configured_directory.empty()) {
    return options_.configured_directory;
  }
  return options_.shared_memory / absl::StrCat("syncline-", uid);
}

std::vector<uint32_t> BlockGate::Users() {
  std::vector<uint32_t> users = {options_.own_uid};
  if (options_.own_uid != 0) return users;
  std::error_code error;
  for (std::filesystem::directory_iterator it(options_.shared_memory, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    absl::string_view number = name;
    uint32_t uid = 0;
    if (!absl::ConsumePrefix(&number, "syncline-") || !absl::SimpleAtoi(number, &uid)) continue;
    if (uid != options_.own_uid) users.push_back(uid);
  }
  std::sort(users.begin() + 1, users.end());
  return users;
}

std::vector<std::pair<uint32_t, std::filesystem::path>> BlockGate::RuntimeDirectories() {
  std::vector<std::pair<uint32_t, std::filesystem::path>> directories;
  for (const uint32_t uid : Users()) directories.emplace_back(uid, DirectoryOf(uid));
  return directories;
}

absl::Status BlockGate::Lock(const std::string& holder) {
  const std::vector<uint32_t> users = Users();
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(options_.own_uid), 0700));
  const std::lock_guard lock(mutex_);
  for (const uint32_t uid : users) {
    auto fd = LockDirectory(DirectoryOf(uid), uid, holder);
    if (!fd.ok()) {
      for (const int held : locks_) ::close(held);
      locks_.clear();
      return fd.status();
    }
    locks_.push_back(*fd);
  }
  return absl::OkStatus();
}

void BlockGate::Unlock() {
  const std::lock_guard lock(mutex_);
  for (const int held : locks_) ::close(held);
  locks_.clear();
}

std::vector<BlockGate::MemberKey> BlockGate::TakeNewBlocks() {
  std::vector<MemberKey> taken;
  for (const uint32_t uid : Users()) {
    const std::filesystem::path directory = DirectoryOf(uid);
    const auto ids = control_block::ListBlocks(directory, uid);
    if (!ids.ok()) continue;  // said by Processes(), once, not fifty times a second
    for (const BlockId& id : *ids) {
      const MemberKey key(uid, id);
      if (members_.count(key) != 0) continue;
      auto block = LiveBlock::Open(directory, id, uid);
      if (!block.ok()) continue;  // half made: next time
      members_.emplace(key, *std::move(block));
      taken.push_back(key);
    }
  }
  return taken;
}

void BlockGate::OpenNewcomers(uint32_t generation) {
  const int64_t now_ns = clock_->MonotonicNs();
  for (auto it = newcomers_.begin(); it != newcomers_.end();) {
    const auto member = members_.find(it->first);
    const bool due = now_ns >= it->second;
    if (due && member != members_.end()) member->second.SetGeneration(generation).IgnoreError();
    it = due ? newcomers_.erase(it) : std::next(it);
  }
}

// One that is not in /proc may live in a namespace that the agent does not see into.
bool BlockGate::HasEnded(const ProcessEntry* entry, const BlockId& id) const {
  if (entry == nullptr) return id.pid_namespace == own_pid_namespace_;
  return entry->ended() || LeftByExec(options_.proc, *entry, id);
}

void BlockGate::RemoveDead(const std::vector<ProcessEntry>& processes) {
  for (auto it = members_.begin(); it != members_.end();) {
    const BlockId& id = it->first.second;
    const auto block = it->second.Read();
    // An earlier recording of these processes is over (we hold the lock) and has kept their names.
    const bool gone = (block.ok() && block->facts.state == control_block::ProcessState::kExited) ||
                      HasEnded(FindProcess(processes, id), id);
    if (gone) it->second.Remove().IgnoreError();
    it = gone ? members_.erase(it) : std::next(it);
  }
}

std::vector<v1::ProcessInfo> BlockGate::Processes(std::vector<v1::Complaint>* complaints) {
  const std::vector<ProcessEntry> processes = ListProcesses(options_.proc);
  std::vector<v1::ProcessInfo> infos;
  for (const uint32_t uid : Users()) {
    const std::filesystem::path directory = DirectoryOf(uid);
    const auto ids = control_block::ListBlocks(directory, uid);
    if (!ids.ok()) {
      complaints->push_back(MakeComplaint(
          v1::Complaint::WARNING, 0,
          absl::StrCat("Processes of user ", uid, " are skipped: ", ids.status().message()),
          absl::StrCat("make \"", directory.string(), "\" belong to user ", uid,
                       " with mode 0700")));
      continue;
    }
    for (const BlockId& id : *ids) {
      const ProcessEntry* entry = FindProcess(processes, id);
      if (HasEnded(entry, id)) continue;
      const auto live = LiveBlock::Open(directory, id, uid);
      if (!live.ok()) continue;
      const auto block = live->Read();
      if (!block.ok() || block->facts.state == control_block::ProcessState::kExited) continue;
      if (entry == nullptr) complaints->push_back(UnreachableComplaint(id));
      if (entry != nullptr && entry->stopped()) complaints->push_back(StoppedComplaint(*entry));
      infos.push_back(DescribeProcess(*block, entry));
    }
  }
  return infos;
}

uint32_t BlockGate::Arm() {
  const std::vector<ProcessEntry> processes = ListProcesses(options_.proc);
  const std::lock_guard lock(mutex_);
  members_.clear();
  TakeNewBlocks();
  RemoveDead(processes);
  uint32_t highest = 0;
  for (auto& [key, live] : members_) {
    const auto block = live.Read();
    if (!block.ok()) continue;
    // The first write maps the page; and a gate that a killed agent left open is closed.
    live.SetGeneration(0).IgnoreError();
    highest = std::max({highest, block->gate.generation, block->gate.generation_seen,
                        block->gate.recording_generation});
  }
  return highest + 1;
}

GateMove BlockGate::Write(uint32_t generation) {
  GateMove move;
  move.begin_raw_ns = clock_->RawNs();
  move.begin_monotonic_ns = clock_->MonotonicNs();
  for (auto& [key, block] : members_) {
    if (block.SetGeneration(generation).ok()) {
      ++move.processes;
    } else {
      move.complaints.push_back(MakeComplaint(
          v1::Complaint::WARNING, 0,
          absl::StrCat("The control block of process ", key.second.pid, " cannot be written"),
          "the process damaged this file; restart the process"));
    }
  }
  move.end_monotonic_ns = clock_->MonotonicNs();
  move.end_raw_ns = clock_->RawNs();
  return move;
}

GateMove BlockGate::Open(uint32_t generation) {
  GateMove move;
  {
    const std::lock_guard lock(mutex_);
    move = Write(generation);
    generation_ = generation;
  }
  watcher_ = std::jthread(
      [this, generation](const std::stop_token& stop) { WatchLoop(stop, generation); });
  // After the bracket: looking at /proc takes milliseconds.
  const std::vector<ProcessEntry> processes = ListProcesses(options_.proc);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, block] : members_) {
    const ProcessEntry* entry = FindProcess(processes, key.second);
    if (entry != nullptr && entry->stopped()) move.complaints.push_back(StoppedComplaint(*entry));
  }
  return move;
}

GateMove BlockGate::Close() {
  watcher_ = {};
  GateMove move;
  {
    const std::lock_guard lock(mutex_);
    newcomers_.clear();
    left_.clear();
    move = Write(0);
  }
  WaitForAnswers(kPromptAnswerNs);
  FindLeft(&move.complaints);
  WaitForAnswers(kAnswerLimitNs);
  return move;
}

void BlockGate::CloseLeftover(uint32_t generation) {
  const std::lock_guard lock(mutex_);
  members_.clear();
  TakeNewBlocks();
  generation_ = generation;
  for (auto it = members_.begin(); it != members_.end();) {
    const auto block = it->second.Read();
    const bool ours = block.ok() && (block->gate.generation == generation ||
                                     block->gate.recording_generation == generation);
    if (ours && block->gate.generation == generation) it->second.SetGeneration(0).IgnoreError();
    it = ours ? std::next(it) : members_.erase(it);
  }
}

void BlockGate::WatchLoop(const std::stop_token& stop, uint32_t generation) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    for (const MemberKey& key : TakeNewBlocks()) {
      newcomers_[key] = clock_->MonotonicNs() + kNewcomerDelayNs;
    }
    OpenNewcomers(generation);
    wake_.wait_for(lock, stop, kWatchPeriod, [] { return false; });
  }
}

bool BlockGate::OfThisRecording(const control_block::GateAnswer& answer) const {
  return answer.recording_generation != 0 && answer.recording_generation == generation_;
}

bool BlockGate::OwesAnswer(const LiveBlock& live) const {
  const auto block = live.Read();
  return block.ok() && block->facts.state != control_block::ProcessState::kExited &&
         OfThisRecording(block->gate) && block->gate.off_monotonic_ns == 0;
}

bool BlockGate::AllAnswered() {
  return std::none_of(members_.begin(), members_.end(), [this](const auto& member) {
    return left_.count(member.first) == 0 && OwesAnswer(member.second);
  });
}

// Only those that have not answered are looked at: what a process maps may be a thousand lines.
void BlockGate::FindLeft(std::vector<v1::Complaint>* complaints) {
  const std::lock_guard lock(mutex_);
  std::optional<std::vector<ProcessEntry>> processes;
  for (const auto& [key, live] : members_) {
    if (!OwesAnswer(live)) continue;
    if (!processes.has_value()) processes = ListProcesses(options_.proc);
    const ProcessEntry* entry = FindProcess(*processes, key.second);
    if (!live.IsReplaced() && !HasEnded(entry, key.second)) continue;
    left_.insert(key);
    if (entry != nullptr && !entry->ended()) complaints->push_back(LeftComplaint(*entry));
  }
}

void BlockGate::WaitForAnswers(int64_t limit_ns) {
  const int64_t end = clock_->MonotonicNs() + limit_ns;
  while (clock_->MonotonicNs() < end) {
    {
      const std::lock_guard lock(mutex_);
      if (AllAnswered()) return;
    }
    clock_->SleepNs(kAnswerPollNs);
  }
}

GateCounts BlockGate::Counts() {
  const std::lock_guard lock(mutex_);
  GateCounts counts;
  counts.processes = static_cast<uint32_t>(members_.size());
  for (const auto& [key, live] : members_) {
    const auto block = live.Read();
    if (!block.ok() || !OfThisRecording(block->gate)) continue;
    counts.events += block->gate.events_since_on;
    counts.lost += block->gate.lost_since_on;
  }
  return counts;
}

namespace {

void SetCost(const control_block::Block& block, v1::ProcessCoverage* coverage) {
  const DurationEstimate cost = control_block::CostOf(block.gate);
  const bool any_sample =
      std::any_of(block.threads.begin(), block.threads.end(),
                  [](const control_block::ThreadSlot& slot) { return slot.cost_samples != 0; });
  coverage->set_cost_ns(static_cast<uint64_t>(cost.est_ns));
  coverage->set_cost_valid(cost.bounded() || any_sample);
  coverage->set_cost_samples_count(block.gate.cost_since_on.samples);
  if (!cost.bounded()) return;
  coverage->set_cost_lo_ns(static_cast<uint64_t>(cost.lo_ns));
  coverage->set_cost_hi_ns(static_cast<uint64_t>(cost.hi_ns));
}

}  // namespace

std::vector<v1::ProcessCoverage> BlockGate::Coverage() {
  const std::lock_guard lock(mutex_);
  std::vector<v1::ProcessCoverage> coverage;
  for (const auto& [key, live] : members_) {
    const auto block = live.Read();
    v1::ProcessCoverage one;
    one.set_own_pid(key.second.pid);
    one.set_pid_namespace_inode(static_cast<int64_t>(key.second.pid_namespace));
    one.set_start_ticks(key.second.start_ticks);
    if (block.ok() && OfThisRecording(block->gate)) {
      const control_block::GateAnswer& gate = block->gate;
      one.set_on_monotonic_ns(static_cast<int64_t>(gate.on_monotonic_ns));
      one.set_off_monotonic_ns(static_cast<int64_t>(gate.off_monotonic_ns));
      one.set_events_count(gate.events_since_on);
      one.set_lost_count(gate.lost_since_on);
      SetCost(*block, &one);
    }
    coverage.push_back(std::move(one));
  }
  return coverage;
}

std::vector<v1::ProcessInfo> BlockGate::Members() {
  const std::vector<ProcessEntry> processes = ListProcesses(options_.proc);
  const std::lock_guard lock(mutex_);
  std::vector<v1::ProcessInfo> infos;
  for (const auto& [key, live] : members_) {
    const auto block = live.Read();
    if (block.ok()) infos.push_back(DescribeProcess(*block, FindProcess(processes, key.second)));
  }
  return infos;
}

absl::Status BlockGate::CopyBlocks(const std::filesystem::path& directory) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(directory, 0700));
  const std::lock_guard lock(mutex_);
  absl::Status first_error;
  const auto keep = [&](const absl::StatusOr<std::string>& bytes, const std::string& name) {
    absl::Status status = bytes.status();
    if (bytes.ok()) status = WriteFileAtomically(directory / name, *bytes, 0600);
    if (first_error.ok()) first_error = status;
  };
  for (const auto& [key, live] : members_) {
    keep(live.ReadBlockBytes(), control_block::BlockFileName(key.second));
    keep(live.ReadNamesBytes(), control_block::NamesFileName(key.second));
  }
  return first_error;
}

}  // namespace syncline::agent
