// SPDX-License-Identifier: Apache-2.0
// Watches page faults, switches and changes of processor of the threads that CodeSampler samples,
// as text lines (evidence/software_events.h). It has no thread and no clock of its own.
//
// What it costs the threads is bounded. A fault that is counted costs some ns, one that is noted
// ten times as much, a switch more. Of minor faults each so many are noted, in proportion to how
// many a thread has, so that each thread's rate of notes is bounded; a note says how many there
// were since the one before. Where watching has cost more than one part in `share` of the processor
// time of the threads together (and 10 ms), or the agent has too much to write, it ends for good,
// and until when it lasted is said.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_CODE_SOFTWARE_WATCH_H_
#define SYNCLINE_AGENT_CODE_SOFTWARE_WATCH_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/code/software_cost.h"
#include "agent/code/software_ring.h"
#include "evidence/software_events.h"

namespace syncline::agent {

struct SoftwareWatchOptions {
  std::filesystem::path proc = "/proc";
  size_t threads_max = 256;
  int64_t time_shift_ns = 0;  // as of CodeSamplerOptions
  int64_t share = 125;
  SoftwareCost cost;                   // where it is not measured
  bool measure = false;                // what it costs, in Probe()
  uint64_t seed = 88172645463325252u;  // of periods; not 0
};

class SoftwareWatch {
 public:
  SoftwareWatch(OpenSoftwareRing open, SoftwareWatchOptions options);

  // Whether the kernel allows it; to be called first.
  absl::Status Probe(bool kernel, std::string* text);
  bool allowed() const { return allowed_; }
  // `thread`: the number of its line. What the thread does is watched from Enable() on. An error:
  // it is not watched.
  absl::Status Add(uint32_t thread, int32_t pid, int32_t tid);
  // `now_ns`, of all calls: of the agent's CLOCK_MONOTONIC, to which `time_shift_ns` brings
  // records.
  void Enable(int64_t now_ns);
  // Takes what came since the last call; `used_ns`: processor time of all threads since then.
  void Turn(int64_t now_ns, int64_t used_ns, std::string* text);
  // Behind what it still has to say.
  void Remove(uint32_t thread, std::string* text);
  void Disable(int64_t now_ns, std::string* text);
  uint64_t threads_left_out() const { return left_out_; }

 private:
  struct Thread {
    std::filesystem::path folder;  // in /proc
    std::unique_ptr<SoftwareRing> ring;
    std::optional<evidence::SoftwareTotals> before;  // by /proc, as it was found
    uint64_t period = 0;
    uint64_t noted = 0;          // minor faults, by the last note
    uint64_t faults_a_turn = 0;  // lately
    int32_t cpu = -1;            // where it last was
    // It has left its processor, and has none yet.
    std::optional<evidence::SoftwareEvent> away;
  };
  // What happened in one turn.
  struct Work {
    uint64_t faults = 0;
    uint64_t notes = 0;
    uint64_t switches = 0;
  };

  std::optional<evidence::SoftwareTotals> TotalsOf(uint32_t number, const Thread& thread) const;
  void Drain(uint32_t number, Thread* thread, std::string* text);
  void Take(const SoftwareRecord& record, uint32_t number, Thread* thread, std::string* text);
  void SayAway(Thread* thread, int64_t until_ns, std::string* text);
  void Count(int64_t now_ns, int64_t used_ns);
  bool CostsTooMuch() const;
  void End(std::string* text);
  void SetPeriod(Thread* thread);
  void Finish(uint32_t number, Thread* thread, std::string* text);
  uint64_t Chance();

  const OpenSoftwareRing open_;
  const SoftwareWatchOptions options_;
  bool allowed_ = false;
  bool kernel_ = false;
  bool enabled_ = false;
  bool watching_ = false;  // it has not ended yet
  Work work_;              // of this turn
  int64_t used_ns_ = 0;    // the threads' processor time, as long as it was watched
  uint64_t records_ = 0;   // likewise
  uint64_t turns_ = 0;     // likewise
  int64_t turn_begin_ns_ = 0;
  evidence::SoftwareWatched watched_;
  SoftwareCost cost_;
  uint64_t seed_;
  uint64_t left_out_ = 0;
  std::map<uint32_t, Thread> threads_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_SOFTWARE_WATCH_H_
