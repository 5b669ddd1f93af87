// SPDX-License-Identifier: Apache-2.0
// What the threads of a node's recorded processes did in the window, by the trace of its scheduler
// (evidence/scheduling.h): ran, were ready to run while somebody else had the CPU, slept.
//
// Each part of a turn counts for as much of it as lies in the window and outside of all losses:
// times are clipped, never scaled. Of a loss nothing is known of any thread, though one CPU's
// events were lost. What is left of the window is unknown: the thread was not watched, did not
// exist, or events were lost.
//
// Who had the CPU is known of a whole wait, not of when in it. So takers count only where all of
// the wait lies in the window and outside of losses; of the others the time is nobody's by name
// (ThreadScheduling::unnamed_ns), like that of takers that the recording does not name.
//
// Pure. Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_SCHEDULING_H_
#define SYNCLINE_ANALYSIS_SCHEDULING_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/identity.h"
#include "evidence/scheduling.h"
#include "timeline/node_input.h"

namespace syncline::analysis {

// Who had the CPU while somebody was ready to run, added up.
struct CpuTaker {
  enum class Kind : uint8_t {
    kOther,       // a thread that is not recorded, or of the kernel
    kOwnThreads,  // others of the same process
    kRecorded,    // threads of another recorded process
    kNobody,      // the CPU was idle
  };
  Kind kind = Kind::kOther;
  uint32_t process = 0;      // kRecorded: index into NodeScheduling::processes
  int32_t pid = 0;           // kOther; 0: unknown
  std::string name;          // kOther: of its thread
  std::string process_name;  // kOther; empty: unknown
  int64_t ns = 0;
};

// Of the window, ns. Together it is as long.
struct SchedulingTimes {
  int64_t running_ns = 0;
  int64_t ready_ns = 0;            // it could have run, and had no CPU
  int64_t uninterruptible_ns = 0;  // it slept where signals cannot wake it: mostly for a disk
  int64_t asleep_ns = 0;           // it waited for something else
  int64_t stopped_ns = 0;          // by a signal or a debugger
  int64_t unknown_ns = 0;

  int64_t known_ns() const {
    return running_ns + ready_ns + uninterruptible_ns + asleep_ns + stopped_ns;
  }
  SchedulingTimes& operator+=(const SchedulingTimes& other);
};

struct ThreadScheduling {
  int32_t tid = 0;  // as the process sees it; where that is not known, as the agent does
  std::string name;
  SchedulingTimes times;
  // Of these those that were seen: more may lie in losses.
  uint64_t turns = 0;            // it began to run
  uint64_t preemptions = 0;      // its CPU was given to another one before it had finished
  uint64_t migrations = 0;       // it began to run on another CPU than it had run on before
  int64_t longest_ready_ns = 0;  // of one wait, what counts of it
  std::vector<CpuTaker> takers;  // most first

  int64_t unnamed_ns() const;  // of ready_ns
};

struct ProcessScheduling {
  ProcessKey process;  // node: 0
  int32_t pid = 0;     // as it sees itself
  // Its comm; in a report as its track is called, if it has one.
  std::string name;
  std::string part;                       // likewise, as in ProcessReport
  int32_t rank = -1;                      // likewise
  std::vector<ThreadScheduling> threads;  // by running and ready time, most first
  SchedulingTimes times;                  // of its threads, added up
  uint64_t turns = 0;                     // likewise these three
  uint64_t preemptions = 0;
  uint64_t migrations = 0;
  std::vector<CpuTaker> takers;  // likewise, most first

  int64_t unnamed_ns() const;
};

struct NodeScheduling {
  uint32_t node = 0;  // index into Report::nodes
  int64_t window_ns = 0;
  bool complete = false;     // the agent has ended it in good order
  int64_t lost_ns = 0;       // of the window: losses
  uint64_t lost_events = 0;  // of all losses that reach into the window
  int64_t cost_ns = -1;      // processor time that the agent took for it; -1: unknown
  std::vector<std::string> notes;
  std::vector<ProcessScheduling> processes;  // as the recording has them
};

// Of [begin_ns, end_ns) of the node's trace clock.
NodeScheduling SchedulingOf(const evidence::Scheduling& scheduling, int64_t begin_ns,
                            int64_t end_ns);

// Of a node of the report: with what the timeline knows of its processes.
NodeScheduling Named(NodeScheduling scheduling, uint32_t node,
                     std::span<const timeline::ProcessResult> processes);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_SCHEDULING_H_
