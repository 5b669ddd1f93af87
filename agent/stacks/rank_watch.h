// SPDX-License-Identifier: Apache-2.0
// Which processes of this node were ranks of jobs and have ended: those who wait for them in a
// collective cannot tell (`syncline stacks`).
//
// A control block says that there was a process; the kernel says that there is none any more. The
// block of a process that was killed stays until the next recording; one that ends in good order
// may remove its own. So the agent remembers who was there: it looks for new blocks every two
// seconds, and holds a descriptor of each rank's process (pidfd_open(2)) that the kernel marks at
// its end. In between nothing is asked of the processes, and nothing of /proc is read.
//
// How a process ended is known where the kernel tells: of one whose parent has not yet asked, by
// its stat; later from Linux 6.15 on, by the descriptor. Only of processes that the agent sees, in
// its own pid namespace or below.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_STACKS_RANK_WATCH_H_
#define SYNCLINE_AGENT_STACKS_RANK_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/host/process_table.h"
#include "agent/probe/clock.h"
#include "common/files.h"
#include "control_block/block_file.h"
#include "control_block/live_block.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct RankWatchOptions {
  std::filesystem::path proc = "/proc";
  size_t watched_max = 256;  // three descriptors each
  size_t ended_max = 256;    // remembered; the one that was found first is forgotten first
};

class RankWatch {
 public:
  // The clock is not owned.
  RankWatch(RuntimeDirectories directories, Clock* clock, RankWatchOptions options);

  // To be called some times a second.
  void Tick();
  // What a process answered last, to be told when it has ended.
  void Remember(const v1::ProcessStacks& answer, int64_t answered_monotonic_ns);
  // Those that have run their exit handlers and are still there.
  std::vector<v1::ProcessInfo> Ending();
  // Those that have ended by now, the last one first.
  std::vector<v1::EndedProcess> Ended();

 private:
  using Key = std::pair<uint32_t, control_block::BlockId>;  // uid first
  using Listed = std::optional<std::vector<ProcessEntry>>;  // when they are first needed
  struct Watched {
    v1::EndedProcess seen;
    control_block::LiveBlock block;
    Descriptor process;  // none: it is looked up in /proc
  };

  void LookForBlocks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Watches the process of a block, if it is a rank's; false: it never will be.
  bool Take(const Key& key, control_block::LiveBlock live, Listed* listed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookForEnds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasEnded(const Watched& one) const;
  void NoteEnded(const Key& key, v1::EndedProcess ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RuntimeDirectories directories_;
  Clock* const clock_;
  const RankWatchOptions options_;
  const uint64_t own_pid_namespace_;
  const std::string boot_id_;
  std::mutex mutex_;
  std::optional<int64_t> looked_monotonic_ns_ ABSL_GUARDED_BY(mutex_);  // for blocks
  std::map<Key, Watched> watched_ ABSL_GUARDED_BY(mutex_);
  std::set<Key> others_ ABSL_GUARDED_BY(mutex_);  // blocks that are of no further interest
  std::deque<std::pair<Key, v1::EndedProcess>> ended_ ABSL_GUARDED_BY(mutex_);  // the last one last
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_STACKS_RANK_WATCH_H_
