// SPDX-License-Identifier: Apache-2.0
// The few lines of /proc and of control groups that are sampled, as numbers. Pure: text in, values
// out; what is not as the kernel writes it gives nothing.
#ifndef SYNCLINE_AGENT_EVIDENCE_PROC_TEXT_H_
#define SYNCLINE_AGENT_EVIDENCE_PROC_TEXT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::agent {

// /proc/PID/task/TID/schedstat: "ON_CPU RUN_QUEUE SLICES", ns.
struct SchedStat {
  int64_t on_cpu_ns = 0;
  int64_t run_queue_ns = 0;
};
std::optional<SchedStat> ParseSchedStat(std::string_view text);

// /proc/PID/stat: processor time, user and system, where its first thread last ran, and how many
// threads it has. /proc/PID/task/TID/stat says the same of one thread.
struct ProcStat {
  int64_t cpu_ns = 0;
  int32_t cpu = -1;
  uint32_t threads = 0;
  char state = 0;            // 'R', 'S', 'D', ...: of the first thread
  int64_t minor_faults = 0;  // pages that were mapped without reading anything
  int64_t major_faults = 0;  // pages that had to come from storage
};
std::optional<ProcStat> ParseProcStat(std::string_view text, int64_t ticks_per_second);

// /proc/stat, by CPU: how long it did something (for programs, the kernel, interrupts), and how
// long it had something to do while a hypervisor ran something else on the processor (steal time).
struct CpuTimes {
  int64_t busy_ns = 0;
  int64_t stolen_ns = 0;
};
std::map<uint32_t, CpuTimes> ParseCpuTimes(std::string_view text, int64_t ticks_per_second);

// /proc/PID/task/TID/status: how often a thread left its processor because it waited for something,
// and how often for another reason.
struct SwitchCounts {
  int64_t voluntary = 0;
  int64_t involuntary = 0;
};
std::optional<SwitchCounts> ParseSwitchCounts(std::string_view status);

// "read_bytes: N" of /proc/PID/io: what was read from storage for it.
std::optional<int64_t> ParseReadBytes(std::string_view text);

// cpu.stat of a control group. v1: nr_periods, nr_throttled, throttled_time (ns); v2: the same with
// throttled_usec. nullopt: it has none of these (no controller, or the root of v2).
struct CpuStat {
  int64_t periods = 0;
  int64_t throttled_periods = 0;
  int64_t throttled_ns = 0;
};
std::optional<CpuStat> ParseCpuStat(std::string_view text);

// "max 100000" or "50000 100000" (cpu.max of v2, us).
struct Quota {
  int64_t quota_ns = -1;  // -1: none
  int64_t period_ns = 0;
};
std::optional<Quota> ParseCpuMax(std::string_view text);
// A file of v1 with one number, us: -1 where there is no quota.
std::optional<int64_t> ParseMicroseconds(std::string_view text);

// How often a control group was at its limit of memory: memory.failcnt of v1, or "high" and "max"
// of memory.events.local of v2. nullopt: it has none of these.
std::optional<int64_t> ParseMemoryFull(int version, std::string_view text);
// A limit in bytes: memory.limit_in_bytes of v1, memory.max and memory.high of v2. -1: none.
int64_t ParseMemoryLimit(std::string_view text);

// Where control groups are mounted (/proc/self/mountinfo).
struct CgroupMount {
  int version = 1;
  std::string root;   // the group that the mount point shows
  std::string point;  // where
};
// Of a controller's hierarchy (v1), and of the unified one (v2).
std::vector<CgroupMount> ParseMounts(std::string_view mountinfo,
                                     std::string_view controller = "cpu");

// A process's group in a hierarchy (/proc/PID/cgroup): "4:cpu,cpuacct:/job/rank1", "0::/job".
struct CgroupPath {
  int version = 1;
  std::string path;
};
std::vector<CgroupPath> ParseCgroups(std::string_view text, std::string_view controller = "cpu");

// One group as it is seen: its path, and its directory.
struct SeenGroup {
  int version = 1;
  std::string path;
  std::string directory;
};
// The group and all its ancestors that a mount shows, the innermost first. Nothing of a path that
// leads out of what is mounted ("/..": the process is in a group that this namespace hides).
std::vector<SeenGroup> GroupsOf(const std::vector<CgroupPath>& paths,
                                const std::vector<CgroupMount>& mounts);

// The last number of "NSpid:" in /proc/PID/task/TID/status: the thread as it sees itself.
std::optional<int32_t> ParseOwnTid(std::string_view status);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_PROC_TEXT_H_
