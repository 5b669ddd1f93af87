// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/rank_watch.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/ascii.h"
#include "agent/recording/process_info.h"
#include "common/process_part.h"

namespace syncline::agent {
namespace {

using control_block::BlockId;
using control_block::LiveBlock;
using control_block::ProcessState;

constexpr int64_t kLookPeriodNs = 2'000'000'000;
constexpr int kGroupsMax = 16;  // of one process

// Of <linux/pidfd.h> of Linux 6.15; older headers do not have it.
struct PidfdInfo {
  uint64_t mask = 0;
  uint64_t cgroup_id = 0;
  uint32_t ids[11] = {};
  int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kPidfdInfoExit = 8;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

Descriptor OpenProcess(int32_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Of one that its parent has not asked yet.
std::optional<int> StatusOfZombie(const std::filesystem::path& proc, int32_t pid) {
  const auto entry = ReadProcess(proc, pid);
  return entry.has_value() && entry->state == 'Z' ? entry->exit_status : std::nullopt;
}

std::optional<int> StatusOf(const Descriptor& process) {
  PidfdInfo info;
  info.mask = kPidfdInfoExit;
  if (process.get() < 0 || ::ioctl(process.get(), kPidfdGetInfo, &info) != 0) return std::nullopt;
  return (info.mask & kPidfdInfoExit) != 0 ? std::optional<int>(info.exit_code) : std::nullopt;
}

void SetStatus(int status, v1::EndedProcess* ended) {
  ended->set_status_known(true);
  if (WIFSIGNALED(status)) {
    ended->set_signal_number(static_cast<uint32_t>(WTERMSIG(status)));
  } else {
    ended->set_exit_code(static_cast<uint32_t>(WEXITSTATUS(status)));
  }
}

// By its own last word. Its file may be another one by now: the process became another program, or
// a recording has cleared it away.
v1::EndedProcess::Ending EndingOf(const LiveBlock& block) {
  const auto state = block.ReadState();
  if (!state.ok()) return v1::EndedProcess::ENDING_UNSPECIFIED;
  if (*state == ProcessState::kExited) return v1::EndedProcess::IN_ORDER;
  return block.IsReplaced() ? v1::EndedProcess::ENDING_UNSPECIFIED : v1::EndedProcess::ABRUPT;
}

// The last trace that it left of being alive.
int64_t LastTrace(const control_block::Block& block, int64_t now_ns) {
  const uint64_t last_ns =
      std::max({block.facts.started_monotonic_ns, block.gate.asked_monotonic_ns,
                block.gate.on_monotonic_ns, block.gate.off_monotonic_ns});
  return static_cast<int64_t>(std::min(last_ns, static_cast<uint64_t>(now_ns)));
}

bool IsRank(const v1::ProcessInfo& info) { return info.rank() >= 0 && IsRankPart(info.part()); }

}  // namespace

RankWatch::RankWatch(RuntimeDirectories directories, Clock* clock, RankWatchOptions options)
    : directories_(std::move(directories)),
      clock_(clock),
      options_(std::move(options)),
      own_pid_namespace_(OwnPidNamespace(options_.proc)),
      boot_id_(absl::StripAsciiWhitespace(ProcFile(options_.proc / "sys/kernel/random/boot_id"))) {}

void RankWatch::Tick() {
  const std::lock_guard lock(mutex_);
  LookForEnds();
  const int64_t now_ns = clock_->MonotonicNs();
  if (looked_monotonic_ns_.has_value() && now_ns - *looked_monotonic_ns_ < kLookPeriodNs) return;
  LookForBlocks();
}

void RankWatch::LookForBlocks() {
  looked_monotonic_ns_ = clock_->MonotonicNs();
  std::set<Key> there;
  Listed listed;
  for (const auto& [uid, runtime] : directories_()) {
    const auto ids = control_block::ListBlocks(runtime, uid);
    if (!ids.ok()) continue;  // said by whoever asks for the processes
    for (const BlockId& id : *ids) {
      const Key key(uid, id);
      there.insert(key);
      const auto known = [&](const auto& one) { return one.first == key; };
      if (watched_.count(key) != 0 || others_.count(key) != 0) continue;
      if (std::any_of(ended_.begin(), ended_.end(), known)) continue;
      if (watched_.size() >= options_.watched_max) continue;
      auto live = LiveBlock::Open(runtime, id, uid);
      if (live.ok() && !Take(key, *std::move(live), &listed)) others_.insert(key);
    }
  }
  std::erase_if(others_, [&](const Key& key) { return there.count(key) == 0; });
}

bool RankWatch::Take(const Key& key, LiveBlock live, Listed* listed) {
  const auto& [uid, id] = key;
  const auto block = live.Read();
  if (!block.ok()) return true;
  const std::string& boot_id = block->facts.boot_id;
  if (!boot_id_.empty() && !boot_id.empty() && boot_id != boot_id_) return false;
  if (!listed->has_value()) {
    auto all = ListProcesses(options_.proc);
    if (!all.ok()) return true;
    *listed = *std::move(all);
  }
  const ProcessEntry* const entry = FindProcess(**listed, id);
  v1::EndedProcess seen;
  *seen.mutable_process() = DescribeProcess(*block, uid, entry);
  if (!IsRank(seen.process()) || IsForeign(uid, entry)) return false;
  const int64_t now_ns = clock_->MonotonicNs();
  seen.set_alive_monotonic_ns(LastTrace(*block, now_ns));
  Watched watched{std::move(seen), std::move(live), Descriptor(-1)};
  const bool visible = entry != nullptr || id.pid_namespace == own_pid_namespace_;
  const bool said = block->facts.state == ProcessState::kExited;
  if (!visible && !said) return false;  // nobody here can say that it has ended
  if (entry != nullptr && options_.proc == "/proc") watched.process = OpenProcess(entry->pid);
  watched_.emplace(key, std::move(watched));
  LookForEnds();
  return true;
}

bool RankWatch::HasEnded(const Watched& one) const {
  if (one.process.get() >= 0) {
    pollfd watched{one.process.get(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  }
  const v1::ProcessInfo& process = one.seen.process();
  const int32_t pid = process.pid() != 0 ? process.pid() : process.own_pid();
  const bool seen = process.pid() != 0 ||
                    static_cast<uint64_t>(process.pid_namespace_inode()) == own_pid_namespace_;
  if (!seen) return true;  // it has said so
  std::error_code error;
  if (!std::filesystem::exists(options_.proc / std::to_string(pid), error)) return !error;
  const auto entry = ReadProcess(options_.proc, pid);
  return entry.has_value() && (entry->ended() || entry->start_ticks != process.start_ticks());
}

void RankWatch::LookForEnds() {
  const int64_t now_ns = clock_->MonotonicNs();
  for (auto it = watched_.begin(); it != watched_.end();) {
    Watched& one = it->second;
    if (!HasEnded(one)) {
      if (one.seen.process().pid() != 0) one.seen.set_alive_monotonic_ns(now_ns);
      ++it;
      continue;
    }
    v1::EndedProcess& ended = one.seen;
    ended.set_ended_monotonic_ns(now_ns);
    ended.set_ending(EndingOf(one.block));
    std::optional<int> status;
    if (ended.process().pid() != 0) status = StatusOfZombie(options_.proc, ended.process().pid());
    if (status == 0 && ended.ending() != v1::EndedProcess::IN_ORDER) status.reset();
    if (!status.has_value()) status = StatusOf(one.process);
    if (status.has_value()) SetStatus(*status, &ended);
    NoteEnded(it->first, std::move(ended));
    it = watched_.erase(it);
  }
}

void RankWatch::NoteEnded(const Key& key, v1::EndedProcess ended) {
  ended.mutable_process()->set_stopped(false);
  ended_.emplace_back(key, std::move(ended));
  if (ended_.size() <= options_.ended_max) return;
  others_.insert(ended_.front().first);  // while its block is there
  ended_.pop_front();
}

void RankWatch::Remember(const v1::ProcessStacks& answer, int64_t answered_monotonic_ns) {
  const std::lock_guard lock(mutex_);
  const Key key(answer.process().uid(), BlockIdOf(answer.process()));
  const auto watched = watched_.find(key);
  const auto ended =
      std::find_if(ended_.begin(), ended_.end(), [&](const auto& one) { return one.first == key; });
  if (watched == watched_.end() && ended == ended_.end()) return;
  v1::EndedProcess& seen = watched != watched_.end() ? watched->second.seen : ended->second;
  seen.clear_groups();
  for (const v1::ProcessGroupState& group : answer.groups()) {
    if (seen.groups_size() < kGroupsMax) *seen.add_groups() = group;
  }
  seen.set_groups_monotonic_ns(answered_monotonic_ns);
}

std::vector<v1::ProcessInfo> RankWatch::Ending() {
  const std::lock_guard lock(mutex_);
  LookForEnds();
  std::vector<v1::ProcessInfo> ending;
  for (const auto& [key, one] : watched_) {
    if (EndingOf(one.block) == v1::EndedProcess::IN_ORDER) ending.push_back(one.seen.process());
  }
  return ending;
}

std::vector<v1::EndedProcess> RankWatch::Ended() {
  const std::lock_guard lock(mutex_);
  LookForEnds();
  LookForBlocks();
  std::vector<v1::EndedProcess> ended;
  for (auto it = ended_.rbegin(); it != ended_.rend(); ++it) ended.push_back(it->second);
  return ended;
}

}  // namespace syncline::agent
