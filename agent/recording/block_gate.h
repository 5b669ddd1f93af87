// SPDX-License-Identifier: Apache-2.0
// The gate on real control blocks (control_block/live_block.h).
//
// While open, a thread looks for new blocks every 20 ms, so that a program launched during the
// recording is recorded too. What processes that end have counted and named is copied and kept,
// and their blocks are closed. An agent serves its own user only, unless it is root: then every
// user who has a runtime directory. Of those it believes nothing but who owns the directory
// (common/trusted_file.h): what a user has planted there costs him his own recording, and is a
// complaint about him. Thread-safe.
#ifndef SYNCLINE_AGENT_RECORDING_BLOCK_GATE_H_
#define SYNCLINE_AGENT_RECORDING_BLOCK_GATE_H_

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/host/process_table.h"
#include "agent/probe/clock.h"
#include "agent/recording/block_users.h"
#include "agent/recording/gate.h"
#include "agent/recording/member_block.h"
#include "agent/recording/process_info.h"
#include "agent/recording/user_directories.h"

namespace syncline::agent {

struct BlockGateOptions {
  uint32_t own_uid = 0;
  std::string configured_directory;                  // $SYNCLINE_RUNTIME_DIR; empty: the default
  std::filesystem::path shared_memory = "/dev/shm";  // where root looks for other users
  std::filesystem::path proc = "/proc";
  // Of one user, at a time; the rest is not recorded, not kept.
  size_t blocks_max = 4096;
  uint64_t kept_bytes_max = uint64_t{1} << 30;
};

class BlockGate : public Gate {
 public:
  // `clock` is not owned.
  BlockGate(Clock* clock, BlockGateOptions options);
  ~BlockGate() override;

  std::vector<v1::ProcessInfo> Processes(std::vector<v1::Complaint>* complaints) override;
  std::vector<uint32_t> Users() override;
  std::vector<uint32_t> RefusedUsers() override;
  std::vector<uint32_t> Restrict(const std::set<uint32_t>& left_out) override;
  // Of each user the runtime directory; not of those who are left out.
  std::vector<std::pair<uint32_t, std::filesystem::path>> RuntimeDirectories();
  absl::Status Lock(const std::string& holder) override;
  void Unlock() override;
  void Forget() override;
  void KeepEndedIn(const std::filesystem::path& directory) override;
  void LeaveOut(const LeftOut& left_out) override;
  uint32_t Arm() override;
  GateMove Open(uint32_t generation) override;
  GateMove Close() override;
  void CloseLeftover(const Leftover& leftover) override;
  GateCounts Counts() override;
  std::vector<v1::ProcessCoverage> Coverage() override;
  std::vector<v1::ProcessInfo> Members() override;
  absl::Status CopyBlocks(const std::filesystem::path& directory) override;

 private:
  using MemberKey = std::pair<uint32_t, control_block::BlockId>;  // uid first

  // Whether the user may have `bytes` more, on top of `used`, kept.
  absl::Status CheckBudget(uint32_t uid, uint64_t bytes, const std::filesystem::path& directory,
                           uint64_t* used) const;
  MemberBlock::Budget BudgetOf(uint32_t uid, const std::filesystem::path& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Listed = std::optional<std::vector<ProcessEntry>>;  // when they are first needed

  // BlockUsers'; one who comes too late is refused.
  bool Serves(uint32_t uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<control_block::BlockId> BlocksOf(uint32_t uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What /proc says of the process; nullopt: nothing.
  std::optional<ProcessEntry> EntryOf(const control_block::BlockId& id, Listed* listed) const;
  // Whether the block is in the name of a process of somebody else. One of its true owner's takes
  // the place of one that was made in its name.
  bool IsClaimed(uint32_t uid, const control_block::BlockId& id, Listed* listed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How many blocks more of a user may be taken.
  struct Room {
    size_t open = 0;
    size_t all = 0;
    bool Take(bool open_one);  // false: there is none
  };
  Room RoomOf(uint32_t uid) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of blocks that are not there any more; `listed` is sorted.
  void ForgetTries(uint32_t uid, const std::vector<control_block::BlockId>& listed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddProcessesOf(uint32_t uid, const std::vector<ProcessEntry>& processes,
                      std::vector<v1::ProcessInfo>* infos, std::vector<v1::Complaint>* complaints);
  // Opens the blocks that are not members yet, and takes those that are wanted; their keys. Of a
  // user so many may be unwanted.
  using Wanted = std::function<bool(const MemberKey&, MemberBlock*)>;
  std::vector<MemberKey> TakeNewBlocks(const Wanted& wanted = nullptr,
                                       size_t unwanted_max = SIZE_MAX)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the files of processes that have ended. A job may have forked them by the thousand:
  // this is done while there is time.
  void RemoveEnded(const std::vector<ProcessEntry>& processes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // So, but the files of processes that have ended are removed. Null: nobody knows who has.
  void TakeLiving(const std::vector<ProcessEntry>* processes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same by a look at itself; false where it cannot be seen.
  bool HasEndedByNow(const control_block::BlockId& id) const;
  // It said that it ends, and has; what cannot be seen is believed.
  bool HasExitedByNow(const MemberKey& key, const MemberBlock& block) const;
  // Copies and closes the block of one that has ended.
  void CloseEnded(const MemberKey& key, MemberBlock* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same of all members that have. Of the others too it is remembered that they have ended.
  void KeepEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepEndedNowAndThen(size_t newcomers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Switches newcomers on when their time has come.
  void OpenNewcomers(uint32_t generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // It has ended, and the agent knows since now.
  void NoteEnded(const MemberKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the process behind a block is no more, by a list of processes: `entry` is its own
  // there.
  bool HasEnded(const ProcessEntry* entry, const control_block::BlockId& id) const;
  GateMove Write(uint32_t generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitForAnswers(int64_t limit_ns);
  bool AllAnswered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // It was recorded, lives, and has not said that it is off.
  bool OwesAnswer(const MemberBlock& live) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the members that became another program while they were recorded, and those that stand
  // still, and complains of them.
  void FindLeft(std::vector<v1::Complaint>* complaints);
  // It became another program, under the same pid, that had a control block of its own.
  bool WasReplaced(const MemberBlock& live) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OfThisRecording(const control_block::GateAnswer& answer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchLoop(const std::stop_token& stop, uint32_t generation);

  Clock* const clock_;
  const BlockGateOptions options_;
  const RuntimePlaces places_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::map<MemberKey, MemberBlock> members_ ABSL_GUARDED_BY(mutex_);
  std::filesystem::path kept_in_ ABSL_GUARDED_BY(mutex_);      // empty: blocks stay open
  size_t newcomers_since_search_ ABSL_GUARDED_BY(mutex_) = 0;  // for those that have ended
  int64_t searched_monotonic_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t looked_for_killed_monotonic_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status not_taken_ ABSL_GUARDED_BY(mutex_);  // processes that there was no descriptor for
  std::set<uint32_t> crowded_ ABSL_GUARDED_BY(mutex_);  // users with more blocks than are taken
  std::map<MemberKey, int64_t> newcomers_ ABSL_GUARDED_BY(mutex_);  // when to switch on, MONOTONIC
  std::set<MemberKey> left_ ABSL_GUARDED_BY(mutex_);                // by exec: they answer no more
  std::set<MemberKey> replaced_ ABSL_GUARDED_BY(mutex_);            // by a program with a block
  std::map<MemberKey, int64_t> ended_ ABSL_GUARDED_BY(mutex_);      // when it was found, MONOTONIC
  // Of another pid namespace, and visible when the gate was opened: who is not there any more has
  // ended.
  std::set<MemberKey> seen_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, uint64_t> kept_bytes_ ABSL_GUARDED_BY(mutex_);  // by user
  std::map<MemberKey, int> tries_ ABSL_GUARDED_BY(mutex_);  // of blocks that are no members
  std::map<control_block::BlockId, uint32_t> taken_by_ ABSL_GUARDED_BY(mutex_);  // of members
  BlockUsers users_ ABSL_GUARDED_BY(mutex_);
  LeftOut left_out_ ABSL_GUARDED_BY(mutex_);
  uint32_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // of the recording in hand, also after Close
  uint64_t own_pid_namespace_ = 0;
  std::jthread watcher_;  // last: it uses the others
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_BLOCK_GATE_H_
