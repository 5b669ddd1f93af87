// SPDX-License-Identifier: Apache-2.0
// Where the threads of this node's processes stand (`syncline stacks`), recording or not.
//
// Processes with Syncline's hook for PyTorch are asked through their control blocks, and answer
// with a file. All are asked at once, and those that answered once more a moment later: what both
// looks say of a process group was so all the time in between, because the numbers of a group only
// grow. Of a process that does not answer, py-spy may know the Python stacks; the kernel knows
// where its threads wait. Ranks that have ended are told, too (rank_watch.h).
//
// Thread-safe; one request is served at a time. Another agent that asks at the same moment takes
// the answers away from this one.
#ifndef SYNCLINE_AGENT_STACKS_STACK_READER_H_
#define SYNCLINE_AGENT_STACKS_STACK_READER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/host/process_folder.h"
#include "agent/host/process_table.h"
#include "agent/probe/clock.h"
#include "agent/stacks/rank_watch.h"
#include "agent/stacks/stack_folder.h"
#include "control_block/live_block.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct StackReaderOptions {
  uint32_t own_uid = 0;
  std::filesystem::path proc = "/proc";
  std::string py_spy = "py-spy";  // looked up in PATH
  size_t processes_max = 1024;
  // In one look; each user whose processes are asked has the same part of it.
  size_t answer_bytes_max = size_t{32} << 20;
  int folder_entries_max = kFolderEntriesMax;
};

class StackReader {
 public:
  // Those that have a control block, of all users that the agent serves.
  using Processes = std::function<std::vector<v1::ProcessInfo>(std::vector<v1::Complaint>*)>;

  // The clock and the watch are not owned.
  StackReader(Processes processes, RuntimeDirectories directories, Clock* clock, RankWatch* ranks,
              StackReaderOptions options)
      : processes_(std::move(processes)),
        directories_(std::move(directories)),
        clock_(clock),
        ranks_(ranks),
        options_(std::move(options)) {}

  // ResourceExhausted: somebody else's request is being served.
  absl::StatusOr<v1::StacksResponse> Read(const v1::StacksRequest& request);

 private:
  // A process that is asked.
  struct Asked {
    int index = 0;  // in the response
    uint32_t uid = 0;
    std::filesystem::path runtime;
    control_block::LiveBlock block;
    uint32_t number = 0;  // of the request
    int64_t asked_ns = 0;
    bool has_own_clock = false;  // or may have one: no time of its is compared with ours
    std::optional<StackFileVersion> seen;
    bool answered = false;
    bool refused = false;  // it answered, and there was no room for that
    size_t bytes = 0;      // of its answer
    v1::ProcessStacks answer;
    std::string failure;
  };

  void AddProcesses(v1::StacksResponse* response) const;
  void AddUntraced(v1::StacksResponse* response) const;
  std::vector<Asked> OpenBlocks(v1::StacksResponse* response) const;
  // When the last one answered that did within the limit.
  int64_t Ask(std::vector<Asked>* asked, int64_t limit_ns);
  // Tells those that have not answered that they are asked.
  static void Tell(std::vector<Asked>* asked);
  // Whether it has a new answer, of whatever kind.
  static bool TakeAnswer(Asked* one);
  // Of all answers; says where some may stay.
  void ClearFolders(v1::StacksResponse* response) const;
  void LookFromOutside(v1::StacksResponse* response) const;
  // Ranks that were there and are not any more.
  void AddEnded(v1::StacksResponse* response) const;

  const Processes processes_;
  const RuntimeDirectories directories_;
  Clock* const clock_;
  RankWatch* const ranks_;
  const StackReaderOptions options_;
  std::mutex mutex_;  // held while a request is served
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_STACKS_STACK_READER_H_
