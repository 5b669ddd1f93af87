// SPDX-License-Identifier: Apache-2.0
// The diary of the recorded processes' threads (SchedulingDiary), as text lines
// (evidence/scheduling.h): finds these threads, and puts the events of all CPUs in order. It has no
// thread and no clock of its own: somebody calls Drain() before rings are full, and Search() every
// while.
//
// A process is a recorded one when it has a control block. Not thread-safe.
#ifndef SYNCLINE_AGENT_SCHEDULING_SCHEDULING_SAMPLER_H_
#define SYNCLINE_AGENT_SCHEDULING_SCHEDULING_SAMPLER_H_

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
#include "agent/evidence/runtime_directories.h"
#include "agent/host/process_table.h"
#include "agent/probe/clock.h"
#include "agent/scheduling/cpu_events.h"
#include "agent/scheduling/scheduling_diary.h"
#include "control_block/block_file.h"

namespace syncline::agent {

struct SchedulingSamplerOptions {
  std::filesystem::path proc = "/proc";
  size_t threads_max = 65536;
  CpuEventsOptions events;
  OpenCpuEvents open = OpenSchedulerEvents;
  std::function<absl::Status(const CpuEventsOptions&)> probe = ProbeSchedulerEvents;
};

class SchedulingSampler {
 public:
  // `clock` is not owned.
  SchedulingSampler(RuntimeDirectories directories, Clock* clock, SchedulingSamplerOptions options);

  // To be called first. The kernel may not let this agent watch.
  absl::Status Open();
  // Processes of these users are nobody's business here.
  void LeaveOut(const std::vector<uint32_t>& users) {
    users_left_out_ = {users.begin(), users.end()};
  }
  void FindProcesses();
  // Watches from now on: finds the threads of the processes that are known, and begins the text.
  void Begin();
  // Finds processes and their threads.
  void Search();
  // Of the processes that are known.
  void LookForThreads();
  // How full the fullest ring was, 0 to 1.
  double Drain();
  void End();

  std::string TakeText() { return std::exchange(text_, {}); }
  // What is missing that somebody could do something about, for people.
  std::vector<std::string> TakeComplaints() { return std::exchange(complaints_, {}); }

 private:
  using TaskKey = std::pair<int32_t, int32_t>;  // pid and tid, as the agent sees them

  struct Recorded {
    ProcessEntry entry;
    uint32_t index = UINT32_MAX;  // of its line, once it has one
  };

  void AddTask(Recorded* process, int32_t tid, int64_t at_ns);
  // Its line, and if needed its process's, into `text`; the line's number.
  uint32_t Declare(Recorded* process, int32_t tid, const std::string& name, std::string* text);
  // Of a thread that the diary has met.
  std::optional<uint32_t> DeclareMet(int32_t pid, int32_t tid, const std::string& name,
                                     std::string* text);
  DiaryOptions ForDiary();
  void NoteMissed();
  // CLOCK_MONOTONIC as perf knows it, which knows no time namespaces.
  int64_t PerfNowNs() { return clock_->MonotonicNs() - time_shift_ns_; }
  void Keep(CpuDrain drain);
  // Tells the diary what is complete, in order.
  void TakeReady(int64_t until_ns);

  const RuntimeDirectories directories_;
  Clock* const clock_;
  const SchedulingSamplerOptions options_;
  const int64_t time_shift_ns_;
  std::set<uint32_t> users_left_out_;
  std::unique_ptr<CpuEvents> events_;
  std::string text_;
  SchedulingDiary diary_;
  std::map<control_block::BlockId, Recorded> recorded_;
  std::map<int32_t, int32_t> tasks_;     // those with a line: tid to pid
  std::vector<SchedulerEvent> waiting_;  // not yet told to the diary
  bool damaged_ = false;
  bool too_many_ = false;
  uint32_t next_process_ = 0;
  uint32_t next_thread_ = 0;
  std::vector<std::string> complaints_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SCHEDULING_SCHEDULING_SAMPLER_H_
