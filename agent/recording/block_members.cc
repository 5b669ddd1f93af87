// SPDX-License-Identifier: Apache-2.0
// Who is in BlockGate's recording: blocks that come, and those of processes that go.
#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/recording/block_gate.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

using control_block::BlockId;
using control_block::LiveBlock;

constexpr int kTriesMax = 50;  // of a block that cannot be opened: a second
// Those that ended are looked for when so many have come, and else now and then: who came and went
// in between holds two descriptors each.
constexpr int kNewcomersPerSearch = 16;
constexpr size_t kEndedPerOpen = 16;  // of a user's blocks that may be open (guess)
constexpr int64_t kSearchPeriodNs = 1'000'000'000;
// So many may be open of processes that were killed, or live.
constexpr size_t kOpenBlocks = 64;

}  // namespace

std::optional<ProcessEntry> BlockGate::EntryOf(const BlockId& id, Listed* listed) const {
  if (id.pid_namespace == own_pid_namespace_) {
    const auto entry = ReadProcess(options_.proc, id.pid);
    return entry.has_value() && entry->start_ticks == id.start_ticks ? entry : std::nullopt;
  }
  if (!listed->has_value()) {
    *listed = ListProcesses(options_.proc).value_or(std::vector<ProcessEntry>());
  }
  const ProcessEntry* const entry = FindProcess(**listed, id);
  return entry != nullptr ? std::optional<ProcessEntry>(*entry) : std::nullopt;
}

bool BlockGate::IsClaimed(uint32_t uid, const BlockId& id, Listed* listed) {
  const auto taken = taken_by_.find(id);
  const bool taken_by_another = taken != taken_by_.end() && taken->second != uid;
  if (uid == 0) return taken_by_another;
  const auto entry = EntryOf(id, listed);
  if (!entry.has_value()) return taken_by_another;
  if (IsForeign(uid, &*entry)) return true;
  if (!taken_by_another) return false;
  if (!IsForeign(taken->second, &*entry)) return true;
  // Somebody had guessed the process before it began.
  const MemberKey forged(taken->second, id);
  members_.erase(forged);
  newcomers_.erase(forged);
  tries_[forged] = kTriesMax;
  taken_by_.erase(taken);
  return false;
}

// Of each user so many may be open at a time, and so many times as many may have been. Names that
// come and go would fill the agent's memory, and take the descriptors from everybody.
bool BlockGate::Room::Take(bool open_one) {
  if (open == 0 || all == 0) return false;
  open -= open_one ? 1 : 0;
  --all;
  return true;
}

BlockGate::Room BlockGate::RoomOf(uint32_t uid) const {
  Room room{.open = options_.blocks_max, .all = options_.blocks_max * kEndedPerOpen};
  for (auto it = members_.lower_bound({uid, BlockId()});
       it != members_.end() && it->first.first == uid; ++it) {
    room.Take(it->second.is_open());
  }
  return room;
}

void BlockGate::ForgetTries(uint32_t uid, const std::vector<BlockId>& listed) {
  for (auto it = tries_.lower_bound({uid, BlockId()});
       it != tries_.end() && it->first.first == uid;) {
    const bool there = std::binary_search(listed.begin(), listed.end(), it->first.second);
    it = there ? std::next(it) : tries_.erase(it);
  }
}

std::vector<BlockGate::MemberKey> BlockGate::TakeNewBlocks(const Wanted& wanted,
                                                           size_t unwanted_max) {
  std::vector<MemberKey> taken;
  Listed listed;
  for (const uint32_t uid : Users()) {
    if (!Serves(uid)) continue;
    const std::vector<BlockId> ids = BlocksOf(uid);
    ForgetTries(uid, ids);
    std::optional<Room> room;  // when it is first needed
    size_t unwanted = 0;
    for (const BlockId& id : ids) {
      const MemberKey key(uid, id);
      if (members_.count(key) != 0) continue;
      int& tries = tries_[key];
      if (tries >= kTriesMax) continue;
      if (!room.has_value()) room = RoomOf(uid);
      if (room->open == 0 || room->all == 0 || unwanted == unwanted_max) {
        crowded_.insert(uid);
        break;
      }
      auto live = LiveBlock::Open(places_.Of(uid), id, uid);
      if (absl::IsResourceExhausted(live.status())) {
        not_taken_.Update(live.status());
        continue;
      }
      ++tries;
      if (!live.ok()) continue;  // half made: next time
      if (IsClaimed(uid, id, &listed)) {
        tries = kTriesMax;
        continue;
      }
      tries_.erase(key);
      MemberBlock block(*std::move(live));
      if (wanted && !wanted(key, &block)) {  // closes it
        ++unwanted;
        continue;
      }
      room->Take(block.is_open());
      taken_by_.emplace(id, uid);
      members_.emplace(key, std::move(block));
      taken.push_back(key);
    }
  }
  return taken;
}

void BlockGate::TakeLiving(const std::vector<ProcessEntry>* processes) {
  // One at a time: there may be thousands of a job that forked workers.
  TakeNewBlocks(
      [&](const MemberKey& key, MemberBlock* block) {
        // An earlier recording of these processes is over (we hold the lock) and has kept their
        // names.
        const bool gone =
            block->HasExited() ||
            (processes != nullptr && HasEnded(FindProcess(*processes, key.second), key.second));
        if (gone) block->Remove().IgnoreError();
        return !gone;
      },
      options_.blocks_max);  // those that have ended since Lock
}

void BlockGate::RemoveEnded(const std::vector<ProcessEntry>& processes) {
  for (const uint32_t uid : Users()) {
    if (!users_.Serves(uid)) continue;
    const auto directory = control_block::OpenRuntimeDirectory(places_.Of(uid), uid);
    if (!directory.ok()) continue;
    for (const BlockId& id : BlocksOf(uid)) {
      const ProcessEntry* const entry = FindProcess(processes, id);
      bool gone = entry != nullptr ? entry->ended() : HasEndedByNow(id);
      if (entry == nullptr && id.pid_namespace != own_pid_namespace_) {  // its own word, then
        const auto state = control_block::ReadStateIn(directory->get(), id, uid);
        gone = state.ok() && *state == control_block::ProcessState::kExited;
      }
      // An earlier recording of it is over (we hold the lock) and has kept its names.
      if (gone) control_block::RemoveFrom(directory->get(), id).IgnoreError();
    }
  }
}

// One that is not in /proc may live in a namespace that the agent does not see into.
bool BlockGate::HasEndedByNow(const BlockId& id) const {
  if (id.pid_namespace != own_pid_namespace_) return false;
  std::error_code error;
  const bool there = std::filesystem::exists(options_.proc / std::to_string(id.pid), error);
  if (!there) return !error;
  const auto entry = ReadProcess(options_.proc, id.pid);
  return entry.has_value() && (entry->ended() || entry->start_ticks != id.start_ticks);
}

// It says so before it has ended: what it counts in between counts.
bool BlockGate::HasExitedByNow(const MemberKey& key, const MemberBlock& block) const {
  const bool visible = key.second.pid_namespace == own_pid_namespace_;
  return block.HasExited() && (!visible || HasEndedByNow(key.second));
}

void BlockGate::NoteEnded(const MemberKey& key) { ended_.emplace(key, clock_->MonotonicNs()); }

void BlockGate::CloseEnded(const MemberKey& key, MemberBlock* block) {
  NoteEnded(key);
  if (WasReplaced(*block)) replaced_.insert(key);  // the copy cannot tell
  block->CloseInto(kept_in_, BudgetOf(key.first, kept_in_)).IgnoreError();
}

void BlockGate::KeepEnded() {
  size_t open = 0;
  for (auto& [key, block] : members_) {
    if (!block.is_open()) continue;
    if (HasExitedByNow(key, block)) CloseEnded(key, &block);
    open += block.is_open() ? 1 : 0;
  }
  const int64_t now_ns = clock_->MonotonicNs();
  if (now_ns - looked_for_killed_monotonic_ns_ < kSearchPeriodNs) return;
  looked_for_killed_monotonic_ns_ = now_ns;
  for (auto& [key, block] : members_) {
    const bool matters = open > kOpenBlocks || ended_.count(key) == 0;
    if (!block.is_open() || !matters || !HasEndedByNow(key.second)) continue;
    NoteEnded(key);
    if (open > kOpenBlocks) CloseEnded(key, &block);
  }
}

void BlockGate::KeepEndedNowAndThen(size_t newcomers) {
  newcomers_since_search_ += newcomers;
  const int64_t now_ns = clock_->MonotonicNs();
  const bool many = newcomers_since_search_ >= kNewcomersPerSearch;
  if (kept_in_.empty() || (!many && now_ns - searched_monotonic_ns_ < kSearchPeriodNs)) return;
  newcomers_since_search_ = 0;
  searched_monotonic_ns_ = now_ns;
  KeepEnded();
}

void BlockGate::KeepEndedIn(const std::filesystem::path& directory) {
  const std::lock_guard lock(mutex_);
  kept_in_ = MakeDirectories(directory, 0700).ok() ? directory : std::filesystem::path();
}

void BlockGate::CloseLeftover(const Leftover& leftover) {
  const uint32_t generation = leftover.generation;
  const std::vector<uint32_t> users = Users();
  const std::lock_guard lock(mutex_);
  users_.LockLeftover(users, leftover);
  members_.clear();
  tries_.clear();
  taken_by_.clear();
  kept_bytes_.clear();
  generation_ = generation;
  const std::filesystem::path kept_in = kept_in_;
  TakeNewBlocks([&](const MemberKey& key, MemberBlock* live) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto block = live->Read();
    const bool ours = block.ok() && (block->gate.generation == generation ||
                                     block->gate.recording_generation == generation);
    if (ours && block->gate.generation == generation) live->SetGeneration(0).IgnoreError();
    if (ours && live->HasExited() && !kept_in.empty())
      live->CloseInto(kept_in, BudgetOf(key.first, kept_in)).IgnoreError();
    // One that no gate was ever opened for may have begun while no agent was there to open it.
    const bool fresh = block.ok() && block->gate.recording_generation == 0 &&
                       block->facts.state != control_block::ProcessState::kExited;
    return ours || fresh;
  });
}

}  // namespace syncline::agent
