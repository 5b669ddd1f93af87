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
constexpr int64_t kSearchPeriodNs = 1'000'000'000;
// So many may be open without a look at /proc for those that were killed.
constexpr size_t kOpenBlocks = 64;

}  // namespace

std::vector<BlockGate::MemberKey> BlockGate::TakeNewBlocks(const Wanted& wanted) {
  std::vector<MemberKey> taken;
  Listed listed;
  for (const uint32_t uid : Users()) {
    if (!Serves(uid)) continue;
    for (const BlockId& id : BlocksOf(uid)) {
      const MemberKey key(uid, id);
      if (members_.count(key) != 0) continue;
      int& tries = tries_[key];
      if (tries >= kTriesMax) continue;
      auto live = LiveBlock::Open(DirectoryOf(uid), id, uid);
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
      if (wanted && !wanted(key, &block)) continue;  // closes it
      taken_by_.emplace(id, uid);
      members_.emplace(key, std::move(block));
      taken.push_back(key);
    }
  }
  return taken;
}

void BlockGate::TakeLiving(const std::vector<ProcessEntry>* processes) {
  // One at a time: there may be thousands of a job that forked workers.
  TakeNewBlocks([&](const MemberKey& key, MemberBlock* block) {
    // An earlier recording of these processes is over (we hold the lock) and has kept their names.
    const bool gone =
        block->HasExited() ||
        (processes != nullptr && HasEnded(FindProcess(*processes, key.second), key.second));
    if (gone) block->Remove().IgnoreError();
    return !gone;
  });
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

void BlockGate::CloseEnded(const MemberKey& key, MemberBlock* block) {
  if (WasReplaced(*block)) replaced_.insert(key);  // the copy cannot tell
  block->CloseInto(kept_in_, BudgetOf(key.first, kept_in_)).IgnoreError();
}

void BlockGate::KeepEnded() {
  size_t open = 0;
  for (auto& [key, block] : members_) {
    if (!block.is_open()) continue;
    // It says so before it has ended: what it counts in between counts.
    const bool visible = key.second.pid_namespace == own_pid_namespace_;
    if (block.HasExited() && (!visible || HasEndedByNow(key.second))) {
      CloseEnded(key, &block);
    }
    open += block.is_open() ? 1 : 0;
  }
  const int64_t now_ns = clock_->MonotonicNs();
  if (open <= kOpenBlocks || now_ns - looked_for_killed_monotonic_ns_ < kSearchPeriodNs) return;
  looked_for_killed_monotonic_ns_ = now_ns;
  for (auto& [key, block] : members_) {
    if (block.is_open() && HasEndedByNow(key.second)) CloseEnded(key, &block);
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

void BlockGate::CloseLeftover(uint32_t generation) {
  const std::lock_guard lock(mutex_);
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
