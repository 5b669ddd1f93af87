// SPDX-License-Identifier: Apache-2.0
// When each recorded thread ran and on which CPU, when it was ready to run but another one had the
// CPU, and when it slept: from the scheduler's own trace. The agent takes it (agent/scheduling) and
// writes it as text (docs/recording-format.md, "nodes/NODE/evidence/scheduling.txt"); this reads it
// back.
//
// All times are ns of the node's CLOCK_MONOTONIC, the clock of its traces.
//
// Thread-safety: plain values, no state.
#ifndef SYNCLINE_EVIDENCE_SCHEDULING_H_
#define SYNCLINE_EVIDENCE_SCHEDULING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "evidence/process_identity.h"

namespace syncline::evidence {

inline constexpr char kSchedulingFileName[] = "scheduling.txt";  // in nodes/NODE/evidence
inline constexpr char kSchedulingHead[] = "syncline-scheduling 1";
inline constexpr size_t kTakersMax = 3;  // of one turn

struct ScheduledThread {
  uint32_t process = 0;  // index into Scheduling::processes
  int32_t tid = 0;       // as the agent sees it
  int32_t own_tid = 0;   // as the process sees it; 0: unknown
  std::string name;      // its comm

  // As the timeline calls it: as the process sees it, where that is known.
  int32_t shown_tid() const { return own_tid != 0 ? own_tid : tid; }
};

// A thread of a process that is not recorded, or of the kernel. Or, with a tid of 0, all processes
// of this name that began in the window and were started by process `pid`, called `process_name`.
struct OtherThread {
  int32_t pid = 0;  // as the agent sees it; 0: unknown
  // Likewise; of a thread outside of the agent's PID namespace the machine's number.
  int32_t tid = 0;
  std::string name;          // its comm
  std::string process_name;  // empty: unknown
  bool of_parent() const { return tid == 0; }
};

// Who had a CPU, or woke a thread.
struct Who {
  enum class Kind : uint8_t {
    kUnknown,
    kThread,     // index into Scheduling::threads
    kOther,      // index into Scheduling::others
    kIdle,       // nobody had the CPU
    kInterrupt,  // an interrupt woke the thread
  };
  Kind kind = Kind::kUnknown;
  uint32_t index = 0;
  friend bool operator==(const Who&, const Who&) = default;
};

struct Taker {
  Who who;
  int64_t ns = 0;
};

// Why a thread did not run before it was ready to run again.
enum class Pause : char {
  kSlept = 'S',            // it waited for something: data, a lock, a timer
  kUninterruptible = 'D',  // likewise, where signals cannot wake it: mostly for a disk
  kStopped = 'T',          // by a signal or a debugger
  kPreempted = 'R',        // it had not finished: the CPU was given to another one (pause_ns is 0)
  kUnknown = '?',          // not known: mostly it paused before it was watched
};

// One turn of a thread: it paused, was ready, then ran. Turns of a thread do not overlap; those in
// the middle of which the recording begins or ends, or events were lost, have some parts of 0.
struct Turn {
  uint32_t thread = 0;
  int64_t until_ns = 0;  // when it stopped running
  int64_t ran_ns = 0;    // before that
  int64_t ready_ns = 0;  // before that
  int64_t pause_ns = 0;  // before that
  Pause pause = Pause::kUnknown;
  int32_t cpu = 0;  // where it ran, or was ready to
  Who waker;        // who ended the pause
  // Who had the CPU while it was ready, the longest first; up to kTakersMax, others are left out.
  // [first_taker, first_taker + takers) of Scheduling::takers.
  uint32_t first_taker = 0;
  uint32_t takers = 0;

  int64_t run_from_ns() const { return until_ns - ran_ns; }
  int64_t ready_from_ns() const { return run_from_ns() - ready_ns; }
  int64_t from_ns() const { return ready_from_ns() - pause_ns; }
};

// The kernel had no room for so many events of a CPU: nothing is known of any thread meanwhile.
struct SchedulingLoss {
  int64_t from_ns = 0;
  int64_t until_ns = 0;
  uint64_t count = 0;
};

struct Scheduling {
  int64_t from_ns = 0;  // watched from then on
  std::vector<ProcessIdentity> processes;
  std::vector<ScheduledThread> threads;
  std::vector<OtherThread> others;
  std::vector<Turn> turns;  // of each thread in order of time
  std::vector<Taker> takers;
  std::vector<SchedulingLoss> losses;
  int64_t cost_ns = -1;  // processor time of the agent while it watched; -1: unknown
  std::vector<std::string> notes;
  bool ended = false;
  uint64_t damaged_lines = 0;
};

// InvalidArgument: no scheduling of a version that is known. Lines that are cut or damaged are left
// out and counted. What refers to something refers to what is there.
absl::StatusOr<Scheduling> ParseScheduling(std::string_view text);

// Each appends one line. Append (process_identity.h), AppendCost (code_samples.h), AppendNote and
// AppendEnd (write.h) do the rest.
void AppendSchedulingHead(int64_t from_ns, std::string* out);
void Append(const ScheduledThread& thread, std::string* out);
void Append(const OtherThread& other, std::string* out);
// `takers`: the turn's.
void Append(const Turn& turn, const std::vector<Taker>& takers, std::string* out);
void Append(const SchedulingLoss& loss, std::string* out);

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_SCHEDULING_H_
