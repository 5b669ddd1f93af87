// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/block_gate.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/recording/block_complaints.h"
#include "agent/recording/process_part.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

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
constexpr uint64_t kAlwaysKeptBytes = 4 << 20;  // of each user, however full the disk is
constexpr uint64_t kKeepFreeBytes = 64 << 20;
constexpr size_t kUnreachableMax = 100;  // processes of one user that are described unseen

// A process that became another program (exec) keeps its pid and its start: its block stays behind,
// mapped by nobody.
bool LeftByExec(const std::filesystem::path& proc, const ProcessEntry& entry, const BlockId& id) {
  return !HasMapped(proc, entry.pid, control_block::BlockFileName(id)).value_or(true);
}

// More than any of those that processes say they have seen. No life of a process has so many
// recordings: a block that says more is damaged, or its user wants the next number to be 0.
uint32_t NextGeneration(const std::set<uint32_t>& seen) {
  constexpr uint32_t kCredible = uint32_t{1} << 30;
  uint32_t next = 1;
  for (const uint32_t number : seen) {
    if (number < kCredible) next = std::max(next, number + 1);
  }
  while (seen.count(next) != 0) ++next;
  return next;
}

}  // namespace

BlockGate::BlockGate(Clock* clock, BlockGateOptions options)
    : clock_(clock),
      options_(std::move(options)),
      places_({.own_uid = options_.own_uid,
               .configured = options_.configured_directory,
               .shared_memory = options_.shared_memory}),
      users_(places_),
      own_pid_namespace_(OwnPidNamespace(options_.proc)) {}

BlockGate::~BlockGate() {
  watcher_ = {};
  Unlock();
}

std::vector<uint32_t> BlockGate::RefusedUsers() {
  const std::lock_guard lock(mutex_);
  return users_.Refused();
}

std::vector<uint32_t> BlockGate::Users() {
  return FindUsers(options_.shared_memory, options_.own_uid).users;
}

std::vector<std::pair<uint32_t, std::filesystem::path>> BlockGate::RuntimeDirectories() {
  const std::vector<uint32_t> users = Users();
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint32_t, std::filesystem::path>> directories;
  for (const uint32_t uid : users) {
    if (!users_.IsRefused(uid)) directories.emplace_back(uid, places_.Of(uid));
  }
  return directories;
}

absl::Status BlockGate::Lock(const std::string& holder) {
  const std::vector<uint32_t> users = Users();
  const std::filesystem::path own = places_.Of(options_.own_uid);
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(own.parent_path(), 0700));
  ::mkdir(own.c_str(), 0700);  // what is there instead, LockDirectory says
  const auto processes = ListProcesses(options_.proc);
  const std::lock_guard lock(mutex_);
  SYNCLINE_RETURN_IF_ERROR(users_.Lock(holder, users));
  if (processes.ok()) RemoveEnded(*processes);  // else nobody knows who has
  return absl::OkStatus();
}

void BlockGate::Unlock() {
  const std::lock_guard lock(mutex_);
  users_.Unlock();
}

std::vector<uint32_t> BlockGate::Restrict(const std::set<uint32_t>& left_out) {
  const std::lock_guard lock(mutex_);
  return users_.Restrict(left_out);
}

bool BlockGate::Serves(uint32_t uid) {
  if (users_.Serves(uid)) return true;
  if (!users_.IsRefused(uid) && !BlocksOf(uid).empty()) users_.RefuseLatecomer(uid);
  return false;
}

std::vector<BlockId> BlockGate::BlocksOf(uint32_t uid) {
  auto ids = control_block::ListBlocks(places_.Of(uid), uid);
  if (absl::IsResourceExhausted(ids.status())) not_taken_.Update(ids.status());
  if (!ids.ok()) return {};  // said by Processes(), once, not fifty times a second
  return *std::move(ids);
}

void BlockGate::Forget() {
  const std::lock_guard lock(mutex_);
  members_.clear();
  newcomers_.clear();
  left_.clear();
  replaced_.clear();
  ended_.clear();
  seen_.clear();
  tries_.clear();
  taken_by_.clear();
  kept_bytes_.clear();
  generation_ = 0;
}

void BlockGate::LeaveOut(const LeftOut& left_out) {
  const std::lock_guard lock(mutex_);
  left_out_ = left_out;
}

void BlockGate::OpenNewcomers(uint32_t generation) {
  const int64_t now_ns = clock_->MonotonicNs();
  for (auto it = newcomers_.begin(); it != newcomers_.end();) {
    const auto member = members_.find(it->first);
    const bool due = now_ns >= it->second;
    if (due && member != members_.end()) {
      member->second.SetLeftOut(left_out_).IgnoreError();
      member->second.SetGeneration(generation).IgnoreError();
    }
    it = due ? newcomers_.erase(it) : std::next(it);
  }
}

bool BlockGate::HasEnded(const ProcessEntry* entry, const BlockId& id) const {
  if (entry == nullptr) return HasEndedByNow(id);  // it may be younger than the list
  return entry->ended() || LeftByExec(options_.proc, *entry, id);
}

void BlockGate::AddProcessesOf(uint32_t uid, const std::vector<ProcessEntry>& processes,
                               std::vector<v1::ProcessInfo>* infos,
                               std::vector<v1::Complaint>* complaints) {
  const std::filesystem::path directory = places_.Of(uid);
  auto ids = control_block::ListBlocks(directory, uid);
  if (!ids.ok()) {
    complaints->push_back(SkippedComplaint(uid, directory, ids.status()));
    return;
  }
  size_t alive = 0;
  size_t unreachable = 0;
  size_t foreign = 0;
  const ProcessEntry* one_foreign = nullptr;
  for (const BlockId& id : *ids) {
    const ProcessEntry* entry = FindProcess(processes, id);
    if (HasEnded(entry, id)) continue;
    if (IsForeign(uid, entry)) {
      ++foreign;
      one_foreign = entry;
      continue;
    }
    // What ended processes of an earlier recording have left does not count.
    if (++alive > options_.blocks_max) continue;
    const auto live = LiveBlock::Open(directory, id, uid);
    if (absl::IsResourceExhausted(live.status())) {
      complaints->push_back(
          DescriptorComplaint("Processes cannot all be listed", live.status().message()));
      break;
    }
    if (!live.ok()) continue;
    const auto block = live->Read();
    if (!block.ok() || block->facts.state == control_block::ProcessState::kExited) continue;
    // Anybody can make any number of blocks of processes that nobody sees.
    if (entry == nullptr && ++unreachable > kUnreachableMax) continue;
    if (entry == nullptr) complaints->push_back(UnreachableComplaint(id));
    if (entry != nullptr && entry->stopped()) complaints->push_back(StoppedComplaint(*entry));
    infos->push_back(DescribeProcess(*block, uid, entry));
  }
  if (alive > options_.blocks_max) {
    complaints->push_back(TooManyComplaint(uid, directory, alive, options_.blocks_max));
  }
  if (foreign != 0) complaints->push_back(ForeignComplaint(uid, foreign, *one_foreign));
  if (unreachable > kUnreachableMax) {
    complaints->push_back(UnlistedComplaint(uid, directory, unreachable - kUnreachableMax));
  }
}

std::vector<v1::ProcessInfo> BlockGate::Processes(std::vector<v1::Complaint>* complaints) {
  const auto processes = ListProcesses(options_.proc);
  std::vector<v1::ProcessInfo> infos;
  if (!processes.ok()) {
    complaints->push_back(
        DescriptorComplaint("Processes cannot be listed", processes.status().message()));
    return infos;
  }
  const UserDirectories found = FindUsers(options_.shared_memory, options_.own_uid);
  for (const auto& [owner, names] : found.planted) {
    complaints->push_back(PlantedComplaint(owner, names));
  }
  for (const uint32_t uid : found.users) {
    {
      const std::lock_guard lock(mutex_);
      if (users_.Skips(uid, complaints)) continue;
    }
    AddProcessesOf(uid, *processes, &infos, complaints);
  }
  NameRanksAndChildren(*processes, infos);
  return infos;
}

uint32_t BlockGate::Arm() {
  const auto processes = ListProcesses(options_.proc);
  const std::lock_guard lock(mutex_);
  members_.clear();
  tries_.clear();
  taken_by_.clear();
  kept_bytes_.clear();
  replaced_.clear();
  ended_.clear();
  seen_.clear();
  not_taken_ = absl::OkStatus();
  crowded_.clear();
  TakeLiving(processes.ok() ? &*processes : nullptr);
  std::set<uint32_t> seen;
  for (auto& [key, live] : members_) {
    live.SetLeftOut(left_out_).IgnoreError();
    const auto block = live.Read();
    if (!block.ok()) continue;
    // The first write maps the page; and a gate that a killed agent left open is closed.
    live.SetGeneration(0).IgnoreError();
    seen.insert(
        {block->gate.generation, block->gate.generation_seen, block->gate.recording_generation});
  }
  return NextGeneration(seen);
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
  const auto processes = ListProcesses(options_.proc).value_or(std::vector<ProcessEntry>());
  const std::lock_guard lock(mutex_);
  for (const auto& [key, block] : members_) {
    const ProcessEntry* entry = FindProcess(processes, key.second);
    if (entry == nullptr) continue;
    if (key.second.pid_namespace != own_pid_namespace_) seen_.insert(key);
    if (entry->stopped()) move.complaints.push_back(StoppedComplaint(*entry));
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
    if (!not_taken_.ok()) {
      move.complete = false;
      move.complaints.push_back(DescriptorComplaint(
          "Processes that began in the window may be missing from this recording",
          not_taken_.message()));
    }
    for (const auto& [uid, why] : users_.reasons()) {  // some since the recording was prepared
      if (absl::IsAborted(why)) move.complete = false;
      move.complaints.push_back(SkippedComplaint(uid, places_.Of(uid), why));
    }
    for (const uint32_t uid : crowded_) {
      move.complete = false;
      move.complaints.push_back(CrowdedComplaint(uid, options_.blocks_max));
    }
  }
  WaitForAnswers(kPromptAnswerNs);
  FindLeft(&move.complaints);
  WaitForAnswers(kAnswerLimitNs);
  // Nothing stays for an agent that does not know of it.
  for (auto& [key, live] : members_) live.SetLeftOut({}).IgnoreError();
  return move;
}

void BlockGate::WatchLoop(const std::stop_token& stop, uint32_t generation) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const std::vector<MemberKey> taken = TakeNewBlocks();
    for (const MemberKey& key : taken) {
      newcomers_[key] = clock_->MonotonicNs() + kNewcomerDelayNs;
    }
    KeepEndedNowAndThen(taken.size());
    OpenNewcomers(generation);
    wake_.wait_for(lock, stop, kWatchPeriod, [] { return false; });
  }
}

bool BlockGate::OfThisRecording(const control_block::GateAnswer& answer) const {
  return answer.recording_generation != 0 && answer.recording_generation == generation_;
}

bool BlockGate::OwesAnswer(const MemberBlock& live) const {
  const auto block = live.Read();
  return block.ok() && block->facts.state != control_block::ProcessState::kExited &&
         OfThisRecording(block->gate) && block->gate.off_monotonic_ns == 0;
}

// Also of one that made no call in this recording before: what the new program did is missing, too.
bool BlockGate::WasReplaced(const MemberBlock& live) const {
  if (!live.IsReplaced()) return false;
  const auto block = live.Read();
  return block.ok() && block->facts.state != control_block::ProcessState::kExited &&
         !(OfThisRecording(block->gate) && block->gate.off_monotonic_ns != 0);
}

bool BlockGate::AllAnswered() {
  return std::none_of(members_.begin(), members_.end(), [this](const auto& member) {
    return left_.count(member.first) == 0 && OwesAnswer(member.second);
  });
}

// Of those whose files are in place only those that have not answered are looked at: what a process
// maps may be a thousand lines.
void BlockGate::FindLeft(std::vector<v1::Complaint>* complaints) {
  const std::lock_guard lock(mutex_);
  std::optional<std::vector<ProcessEntry>> processes;
  for (const auto& [key, live] : members_) {
    const bool replaced = replaced_.count(key) != 0 || WasReplaced(live);
    if (ended_.count(key) == 0 && !replaced && HasExitedByNow(key, live)) NoteEnded(key);
    if (!replaced && !OwesAnswer(live)) continue;
    if (!processes.has_value()) {
      auto listed = ListProcesses(options_.proc);
      if (!listed.ok()) return;  // nobody knows who has left
      processes = *std::move(listed);
    }
    const ProcessEntry* entry = FindProcess(*processes, key.second);
    if (entry != nullptr && entry->ended()) entry = nullptr;
    if (replaced) {
      replaced_.insert(key);
      complaints->push_back(ReplacedComplaint(key.second, entry));
    } else if (entry != nullptr && entry->stopped()) {
      complaints->push_back(StillComplaint(*entry));
      continue;
    } else if (entry == nullptr && (seen_.count(key) != 0 || HasEndedByNow(key.second))) {
      NoteEnded(key);
    } else if (!HasEnded(entry, key.second)) {
      continue;
    } else if (entry != nullptr) {
      complaints->push_back(LeftComplaint(*entry));
    }
    left_.insert(key);
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

std::vector<v1::ProcessCoverage> BlockGate::Coverage() {
  const std::lock_guard lock(mutex_);
  std::vector<v1::ProcessCoverage> coverage;
  for (const auto& [key, live] : members_) {
    const auto block = live.Read();
    v1::ProcessCoverage one;
    one.set_own_pid(key.second.pid);
    one.set_pid_namespace_inode(static_cast<int64_t>(key.second.pid_namespace));
    one.set_start_ticks(key.second.start_ticks);
    if (block.ok() && OfThisRecording(block->gate)) SetAnswer(*block, &one);
    one.set_became_another_program(replaced_.count(key) != 0);
    const auto ended = ended_.find(key);
    if (ended != ended_.end()) one.set_ended_monotonic_ns(ended->second);
    coverage.push_back(std::move(one));
  }
  return coverage;
}

std::vector<v1::ProcessInfo> BlockGate::Members() {
  const auto processes = ListProcesses(options_.proc).value_or(std::vector<ProcessEntry>());
  const std::lock_guard lock(mutex_);
  std::vector<v1::ProcessInfo> infos;
  for (const auto& [key, live] : members_) {
    const auto block = live.Read();
    if (block.ok())
      infos.push_back(DescribeProcess(*block, key.first, FindProcess(processes, key.second)));
  }
  NameRanksAndChildren(processes, infos);
  return infos;
}

absl::Status BlockGate::CopyBlocks(const std::filesystem::path& directory) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(directory, 0700));
  const std::lock_guard lock(mutex_);
  absl::Status first_error;
  for (const auto& [key, block] : members_) {
    first_error.Update(block.CopyInto(directory, BudgetOf(key.first, directory)));
  }
  return first_error;
}

MemberBlock::Budget BlockGate::BudgetOf(uint32_t uid, const std::filesystem::path& directory) {
  uint64_t* const used = &kept_bytes_[uid];
  return [this, uid, directory, used](uint64_t bytes) {
    return CheckBudget(uid, bytes, directory, used);
  };
}

absl::Status BlockGate::CheckBudget(uint32_t uid, uint64_t bytes,
                                    const std::filesystem::path& directory, uint64_t* used) const {
  if (*used + bytes > options_.kept_bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the names of user ", uid, "'s processes are larger than ",
                     options_.kept_bytes_max >> 20, " MiB together"));
  }
  // The first ones are the recording's last need, for which the manager has kept room.
  const uint64_t free = FreeDiskBytes(directory);
  if (*used + bytes <= kAlwaysKeptBytes || (free > bytes && free - bytes >= kKeepFreeBytes)) {
    *used += bytes;  // what is refused is asked for again
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk has ", free >> 20, " MiB free, and ", kKeepFreeBytes >> 20,
                   " MiB must stay free of user ", uid, "'s names"));
}

}  // namespace syncline::agent
