// SPDX-License-Identifier: Apache-2.0
// What a node's kernel said of a job while it was recorded: processor time of threads, limits of
// control groups, and who else used the processors. The agent samples it (agent/evidence) and
// writes it as text (docs/recording-format.md, "nodes/NODE/evidence"); this library reads it back.
//
// All times are ns of the node's CLOCK_MONOTONIC, the clock of its traces. All amounts only grow:
// what a difference of two samples says is true of the time between them.
//
// Thread-safety: plain values.
#ifndef SYNCLINE_EVIDENCE_EVIDENCE_H_
#define SYNCLINE_EVIDENCE_EVIDENCE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::evidence {

inline constexpr char kFileName[] = "samples.txt";  // in nodes/NODE/evidence

// Who a process is, seen from the job.
enum class Relation : uint8_t {
  kRecorded,    // under `syncline run`, by its control block: a rank, a loader's worker
  kDescendant,  // a child, grandchild, ... of a recorded process, without a control block
  kSyncline,    // the agent, LTTng's daemons
  kOther,
};

struct Process {
  Relation relation = Relation::kOther;
  int32_t pid = 0;         // as the agent sees it
  int32_t parent_pid = 0;  // likewise, when it was found
  uint64_t start_ticks = 0;
  // Of a recorded one, as its control block is named; else 0.
  int64_t pid_namespace_inode = 0;
  int32_t own_pid = 0;
  uint32_t uid = 0;
  std::string name;              // its comm
  std::vector<uint32_t> groups;  // indices into Evidence::groups: its own, then each ancestor
  std::vector<uint32_t> memory_groups;  // likewise into Evidence::memory_groups
  // Of a recorded one: the CPUs that its threads may use, all together, as they were last looked
  // at: how many (0: not known), and as the kernel lists them ("0-3,8").
  uint32_t allowed_count = 0;
  std::string allowed_cpus;
};

// A control group that limits, or could limit, processor time; or memory.
struct Group {
  int version = 1;   // of control groups: 1 or 2
  std::string path;  // below the hierarchy's root as the node shows it: "/job/rank1"
};

struct Thread {
  uint32_t process = 0;  // index into Evidence::processes
  int32_t tid = 0;       // as the agent sees it
  int32_t own_tid = 0;   // as the process sees it; 0: unknown
  std::string name;      // its comm
};

// Whether a word is a thread's state as the kernel writes it: one letter.
bool IsState(std::string_view word);

// Of a thread: /proc/PID/task/TID/schedstat.
struct ThreadSample {
  uint32_t thread = 0;
  int64_t at_ns = 0;  // read between this and `until_ns`
  int64_t until_ns = 0;
  int64_t on_cpu_ns = 0;
  int64_t run_queue_ns = 0;  // runnable, but not running: throttled time is in it
  int32_t cpu = -1;          // where it last ran; -1: not asked for
  // Of the first thread of a recorded process, from /proc/PID/task/TID/stat; else 0 and -1.
  char state = 0;             // when it was read: 'R', 'S', 'D', ..., as the kernel writes it
  int64_t major_faults = -1;  // how often it waited for a page of memory to come from storage
  int64_t minor_faults = -1;  // and for one that needed no storage; not in older files
  // Where it was found running, four times a second: the clock of its CPU, as cpufreq has it.
  int64_t clock_khz = -1;
};

// Of a control group: cpu.stat, and its quota.
struct GroupSample {
  uint32_t group = 0;
  int64_t at_ns = 0;
  int64_t until_ns = 0;
  int64_t periods = 0;
  int64_t throttled_periods = 0;
  int64_t throttled_ns = 0;  // adds up over processors
  int64_t quota_ns = -1;     // of each period, all processors; -1: none
  int64_t period_ns = 0;
};

// Of a control group that could limit memory.
struct MemorySample {
  uint32_t group = 0;  // index into Evidence::memory_groups
  int64_t at_ns = 0;
  int64_t until_ns = 0;
  // How often memory was wanted while the group was at its limit: memory.failcnt of v1, "high" and
  // "max" of memory.events.local of v2.
  int64_t full = 0;
  int64_t limit_bytes = -1;  // the lowest; -1: none
};

// Of a process as a whole: /proc/PID/stat.
struct ProcessSample {
  uint32_t process = 0;
  int64_t at_ns = 0;
  int64_t until_ns = 0;
  int64_t cpu_ns = 0;    // user and system, all threads; in whole clock ticks
  int32_t cpu = -1;      // where its first thread last ran
  uint32_t threads = 0;  // of a recorded one: how many it has; 0: not known
  // Of a recorded one: bytes that were read from storage for it (/proc/PID/io); -1: not known.
  int64_t read_bytes = -1;
};

// Of the CPUs that the threads of a recorded process may use, all together: how long they did
// something, and how long they had something to do while a hypervisor ran something else on the
// processor (steal time). Since the process was found; in whole clock ticks. 0 where the kernel is
// not told of it.
struct StealSample {
  uint32_t process = 0;
  int64_t at_ns = 0;
  int64_t until_ns = 0;
  int64_t busy_ns = 0;
  int64_t stolen_ns = 0;
};

// A time in which nothing was sampled though it should have been: the sampler stood still.
struct Gap {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// From when on how often.
struct Rate {
  int64_t at_ns = 0;
  int64_t period_ns = 0;
  std::string reason;  // why it is not the usual one; else empty
};

struct Evidence {
  std::vector<Process> processes;
  std::vector<Group> groups;
  std::vector<Group> memory_groups;
  std::vector<Thread> threads;
  std::vector<ThreadSample> thread_samples;     // by time
  std::vector<GroupSample> group_samples;       // by time
  std::vector<MemorySample> memory_samples;     // by time
  std::vector<ProcessSample> process_samples;   // of those not recorded; by time
  std::vector<ProcessSample> recorded_samples;  // of those recorded, less often, without a CPU
  std::vector<StealSample> steal_samples;       // by time
  std::vector<Gap> gaps;
  std::vector<Rate> rates;
  // What a page of memory costs on the node (docs/recording-format.md); 0: not measured.
  int64_t page_ns = 0;
  bool ended = false;  // the sampler ended in good order; else it was killed, or its disk was full
  uint64_t damaged_lines = 0;      // that are no line of this format: left out
  std::vector<std::string> notes;  // for people: what could not be read, and why
};

// InvalidArgument: no evidence of a version that is known. Lines that are cut or damaged are left
// out and counted.
absl::StatusOr<Evidence> ParseEvidence(std::string_view text);

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_EVIDENCE_H_
