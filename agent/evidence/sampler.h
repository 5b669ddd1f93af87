// SPDX-License-Identifier: Apache-2.0
// Samples what the kernel says of the recorded processes, their control groups and who else uses
// the processors, as text lines (evidence/write.h). It has no thread and no clock of its own:
// somebody calls Search() every few seconds, and Round() at the rate that is wanted.
//
// Which threads: of each recorded process the first one, all that have written events and those of
// Gloo, and of their other threads the busiest of the node. A thread that is dropped and found
// again is declared again, under another number. Of the first one also its state is read: whether
// it is blocked in the kernel. Files stay open: a reading costs a pread.
// Everything is bounded: threads, processes, groups, and the threads looked at in one search.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_EVIDENCE_SAMPLER_H_
#define SYNCLINE_AGENT_EVIDENCE_SAMPLER_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/evidence/cpu_clocks.h"
#include "agent/evidence/memory_groups.h"
#include "agent/evidence/proc_text.h"
#include "agent/evidence/process_tasks.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/evidence/sampled_file.h"
#include "agent/evidence/steal_time.h"
#include "agent/host/process_table.h"
#include "agent/probe/clock.h"
#include "control_block/block_file.h"
#include "evidence/evidence.h"

namespace syncline::agent {

struct SamplerOptions {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cpus = "/sys/devices/system/cpu";
  int32_t own_pid = 0;             // the agent's
  int64_t ticks_per_second = 100;  // sysconf(_SC_CLK_TCK)
  size_t threads_max = 384;        // of the recorded processes
  size_t busiest_threads = 32;     // of the node, beyond the first ones and those that wrote events
  size_t groups_max = 512;
  size_t others_max = 12;       // processes outside of the recorded ones
  size_t looked_at_max = 1024;  // threads of which a search reads how busy they are
};

class Sampler {
 public:
  // `clock` is not owned.
  Sampler(RuntimeDirectories directories, Clock* clock, SamplerOptions options = {});

  // Finds processes, threads, groups and the busiest others; forgets who is gone.
  void Search();
  // Reads everything that is open once.
  void Round();

  // The lines since the last call.
  std::string TakeText() { return std::exchange(text_, {}); }
  // What is missing that somebody could do something about, for people.
  std::vector<std::string> TakeComplaints() { return std::exchange(complaints_, {}); }
  // Nothing is recorded here.
  bool empty() const { return recorded_.empty(); }

 private:
  using TaskKey = std::pair<int32_t, int32_t>;  // pid and tid, as the agent sees them

  struct RecordedProcess {
    ProcessEntry entry;
    uint32_t index = 0;  // of its line
    uint32_t uid = 0;
    std::filesystem::path runtime;
    std::vector<uint32_t> groups;
    std::vector<uint32_t> memory_groups;
    SampledFile stat;
    SampledFile io;
    SeenTasks tasks;      // as the last search found them
    CpuSet allowed_cpus;  // likewise
    CpuTimes cpu_times;   // of these, since it was found
  };
  struct Task {
    uint32_t index = 0;   // of its line
    bool chosen = false;  // for being busy: may be given up for a busier one
    SampledFile schedstat;
    SampledFile stat;
    int64_t on_cpu_ns = 0;                  // as read last
    int64_t searched_cpu_ns = 0;            // as the last search found it
    int64_t run_queue_ns = -1;              // as read last
    int64_t clock_read_ns = INT64_MIN / 2;  // when its CPU's clock was
  };
  struct BusyTask {
    int64_t grown_ns = 0;  // since the last search
    TaskKey key;
    const RecordedProcess* process = nullptr;
  };
  struct GroupEntry {
    uint32_t index = 0;
    int version = 1;
    SampledFile cpu_stat;
    SampledFile quota;   // cpu.cfs_quota_us, cpu.max
    SampledFile period;  // cpu.cfs_period_us
  };
  struct Other {
    uint32_t index = 0;
    SampledFile stat;
    int64_t cpu_ns = 0;  // as the last search found it
  };

  void FindRecorded(const std::vector<ProcessEntry>& all);
  void AddRecorded(const ProcessEntry& entry, uint32_t uid, const std::filesystem::path& runtime);
  // Opens what is read of it as a whole, if it is not open.
  void OpenFiles(RecordedProcess* process) const;
  void FindGroups(RecordedProcess* process);
  void FindAllowed(RecordedProcess* process);
  std::optional<uint32_t> GroupIndex(const SeenGroup& seen);
  // Those that have written events, or carry out collectives by their name.
  void AddWriters(const RecordedProcess& process);
  std::set<int32_t> WritersOf(const RecordedProcess& process) const;  // as the process sees them
  // Samples it from now on, unless it is already; `chosen`: only for being busy.
  void AddTask(const RecordedProcess& process, int32_t tid, bool chosen);
  std::vector<BusyTask> BusyTasks();
  void ChooseBusiest();
  void FindOthers(const std::vector<ProcessEntry>& all);
  void AddOther(const ProcessEntry& entry, const std::map<int32_t, const ProcessEntry*>& by_pid);
  evidence::Relation RelationOf(const ProcessEntry& entry,
                                const std::map<int32_t, const ProcessEntry*>& by_pid) const;
  uint32_t DeclareProcess(const ProcessEntry& entry, evidence::Relation relation,
                          std::vector<uint32_t> groups);
  void ReadTasks(int64_t* now_ns);
  void ReadRecorded(int64_t* now_ns);
  void ReadStealTime(int64_t* now_ns);
  void ReadGroups(int64_t* now_ns);
  void ReadOthers(int64_t* now_ns);
  void Note(const std::string& note);
  void Complain(const std::string& what);  // a note, too
  void NoteWhatIsHidden();

  const RuntimeDirectories directories_;
  Clock* const clock_;
  const SamplerOptions options_;
  std::string text_;
  std::string buffer_;
  std::vector<CgroupMount> mounts_;
  std::map<control_block::BlockId, RecordedProcess> recorded_;
  std::map<TaskKey, Task> tasks_;
  std::map<std::string, GroupEntry> groups_;  // by directory
  MemoryGroups memory_groups_;
  StealTime steal_time_;
  CpuClocks clocks_;
  std::map<int32_t, Other> others_;  // by pid
  std::set<std::string> notes_;
  std::vector<std::string> complaints_;
  int64_t recorded_read_ns_ = INT64_MIN / 2;  // when the recorded processes were read last
  uint32_t next_process_ = 0;
  uint32_t next_thread_ = 0;
  uint32_t next_group_ = 0;
  // Of threads that are not sampled, and of processes: processor time as the last search found it.
  std::map<TaskKey, int64_t> seen_tasks_;
  std::map<std::pair<int32_t, uint64_t>, int64_t> seen_processes_;  // pid and start ticks
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_SAMPLER_H_
