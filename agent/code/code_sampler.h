// SPDX-License-Identifier: Apache-2.0
// Samples which code the threads of the recorded processes run, as text lines
// (evidence/code_samples.h). It has no thread and no clock of its own: somebody calls Search() and
// LookForThreads() every while, and Drain() before rings are full.
//
// A process is a recorded one when it has a control block. Threads are all of its threads, up to
// `threads_max` on the node: one that sleeps costs its ring and nothing else. What a thread does
// before LookForThreads() meets it is not sampled.
//
// The same threads' page faults and switches are watched beside it (SoftwareWatch), where the
// kernel allows it.
//
// Callers are taken as far as frame pointers lead, and no farther than the first address that is
// no code; most libraries are built without them: only the innermost frame is sure.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_CODE_CODE_SAMPLER_H_
#define SYNCLINE_AGENT_CODE_CODE_SAMPLER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/code/code_table.h"
#include "agent/code/software_watch.h"
#include "agent/code/thread_event.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/host/process_table.h"
#include "agent/probe/clock.h"
#include "control_block/block_file.h"

namespace syncline::agent {

struct CodeSamplerOptions {
  std::filesystem::path proc = "/proc";
  size_t threads_max = 512;
  size_t processes_max = 4096;
  // CLOCK_MONOTONIC of the agent less that of perf, which knows no time namespaces.
  int64_t time_shift_ns = 0;
  bool measure_cost = false;  // of watching page faults and switches
};

class CodeSampler {
 public:
  // `clock` is not owned.
  // `open_software` empty: only code is sampled.
  CodeSampler(RuntimeDirectories directories, Clock* clock, OpenThreadEvent open,
              CodeSamplerOptions options, OpenSoftwareRing open_software = {});

  // Whether the kernel lets this agent sample at all; to be called first. Begins the text.
  absl::Status Probe();
  // Processes of these users are nobody's business here.
  void LeaveOut(const std::vector<uint32_t>& users) {
    users_left_out_ = {users.begin(), users.end()};
  }
  // Finds processes and their threads.
  void Search();
  // Of the processes that are known.
  void LookForThreads();
  void Enable();
  // Ends sampling, and says what each thread used.
  void Disable();
  void Drain();

  std::string TakeText() { return std::exchange(text_, {}); }
  // What is missing that somebody could do something about, for people.
  std::vector<std::string> TakeComplaints() { return std::exchange(complaints_, {}); }
  const CodeTable& table() const { return table_; }

 private:
  using TaskKey = std::pair<int32_t, int32_t>;  // pid and tid, as the agent sees them

  struct Recorded {
    ProcessEntry entry;
    CodeOwner owner;
    uint32_t index = UINT32_MAX;  // of its line, once it has one
    std::vector<MappedCode> code;
    int64_t code_read_ns = 0;
    bool refused = false;  // its threads may not be sampled
  };
  struct Task {
    uint32_t index = 0;  // of its line
    control_block::BlockId process;
    std::unique_ptr<ThreadEvent> event;
    int64_t used_ns = 0;  // by the last call of Drain()
  };

  // Those that live.
  std::set<control_block::BlockId> FindRecorded(const std::vector<ProcessEntry>& all);
  void AddTask(const control_block::BlockId& id, Recorded* process, int32_t tid);
  void Finish(const Task& task);
  // Gives their rings back, behind what they still say.
  void LetGo(const std::function<bool(const TaskKey& key, const Task& task)>& which);
  void DrainTask(Task* task);
  void Take(const PerfSample& sample, uint32_t thread, Recorded* process);
  void AddUserFrames(const PerfSample& sample, Recorded* process, std::vector<uint32_t>* frames);
  const MappedCode* CodeAt(Recorded* process, uint64_t address);
  void ReadCode(Recorded* process);
  // Code was mapped at this time of perf's: an address may be another library's by now.
  void ReadCodeAgain(int64_t mapped_ns, Recorded* process);
  void WatchToo(uint32_t thread, const TaskKey& key);
  void Complain(const std::string& what);

  const RuntimeDirectories directories_;
  Clock* const clock_;
  const OpenThreadEvent open_;
  const CodeSamplerOptions options_;
  std::set<uint32_t> users_left_out_;
  bool kernel_ = false;
  bool enabled_ = false;
  std::string text_;
  std::map<control_block::BlockId, Recorded> recorded_;
  std::map<TaskKey, Task> tasks_;
  CodeTable table_;
  std::optional<SoftwareWatch> software_;
  uint64_t table_losses_ = 0;
  std::set<TaskKey> left_out_;  // threads beyond threads_max
  std::set<std::string> said_;
  std::vector<std::string> complaints_;
  uint32_t next_process_ = 0;
  uint32_t next_thread_ = 0;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_CODE_SAMPLER_H_
