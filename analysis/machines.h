// SPDX-License-Identifier: Apache-2.0
// What the samples of a node's kernel say of its processes, as plain values: how long threads ran,
// were kept waiting for a CPU, were throttled, and who else used the CPUs.
//
// All amounts are ns. "Running" is time on a CPU; "waiting" is time runnable without one.
#ifndef SYNCLINE_ANALYSIS_MACHINES_H_
#define SYNCLINE_ANALYSIS_MACHINES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/full_group.h"
#include "common/identity.h"
#include "evidence/evidence.h"

namespace syncline::analysis {

// Of a recorded process.
struct ProcessUsage {
  ProcessKey process;      // node: 0
  int64_t sampled_ns = 0;  // from the first sample of its main thread to the last
  // Of that time, of the main thread; the rest it was asleep.
  int64_t running_ns = 0;
  int64_t waiting_ns = 0;    // not throttled
  int64_t throttled_ns = 0;  // by the quota of a control group; an estimate
  // Of the sleep: uninterruptible (state D), mostly for storage; an estimate from samples.
  std::optional<int64_t> blocked_ns;
  // What of the process was read from storage meanwhile.
  std::optional<int64_t> read_bytes;
  // Page faults of its main thread that needed no storage; nullopt: not counted. And what a page of
  // memory was measured to cost on its node; 0: it was not.
  std::optional<int64_t> minor_faults;
  int64_t page_ns = 0;
  // Of the CPUs that its threads may use, all together, of this time: how long they did something,
  // and how long they had something to do while a hypervisor ran something else. Both 0: not
  // measured.
  int64_t cpus_busy_ns = 0;
  int64_t cpus_stolen_ns = 0;
  // The clock of its main thread's CPU whenever that was found running, median; 0: not known.
  int64_t clock_khz = 0;
  // Of the control groups that may limit its memory, the one that was full most often meanwhile.
  std::optional<FullGroup> full_group;
  // All its threads that were sampled, added up; `threads_waiting_ns` includes throttled time.
  uint32_t threads = 0;
  int64_t threads_running_ns = 0;
  int64_t threads_waiting_ns = 0;

  int64_t faults_ns() const { return minor_faults.value_or(0) * page_ns; }
  int64_t asleep_ns() const { return sampled_ns - running_ns - waiting_ns - throttled_ns; }
};

// Of a process that was not recorded. Only the busiest are sampled, from when they were found.
struct OtherUsage {
  evidence::Relation relation = evidence::Relation::kOther;
  std::string name;  // its comm
  int32_t pid = 0;   // as the agent sees it
  int64_t running_ns = 0;
};

struct MachineUsage {
  int64_t window_ns = 0;                // what was asked for
  std::vector<ProcessUsage> processes;  // that have two samples or more
  std::vector<OtherUsage> others;       // that ran; by running_ns, most first
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_MACHINES_H_
