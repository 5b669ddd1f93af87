// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why`, as plain values. All that is named here is defined in
// docs/findings.md. Everything of a rank is in its own clock
// (its node's trace clock, CLOCK_MONOTONIC), so that no finding about work and causes rests on the
// synchronization of clocks; only the order of arrival does.
#ifndef SYNCLINE_ANALYSIS_WHY_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_MODEL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/network.h"
#include "analysis/why/blocked_sleep.h"
#include "analysis/why/clock_speed_model.h"
#include "analysis/why/job_input.h"
#include "analysis/why/longer_work.h"
#include "analysis/why/mean_estimate.h"
#include "analysis/why/page_faults_model.h"
#include "analysis/why/part.h"
#include "analysis/why/path_model.h"
#include "analysis/why/refusal.h"
#include "analysis/why/stalls_model.h"
#include "analysis/why/steal_model.h"
#include "analysis/why/stood_in.h"
#include "analysis/why/thread_use.h"

namespace syncline::analysis::why {

// Who had the processor meanwhile.
struct Taker {
  enum class Kind : uint8_t {
    kOutside,    // a process outside of the job
    kRank,       // another rank on this node
    kOwnLoader,  // the rank's own loader workers
    kOwnThread,  // the rank's own threads
    kSyncline,
    kNobody,   // the CPU was idle
    kUnknown,  // somebody whom the node does not show
  };
  Kind kind = Kind::kUnknown;
  std::string name;    // comm; empty: unknown
  int32_t pid = 0;     // as the agent sees it
  int64_t cpu_ns = 0;  // processor time gained while the rank waited, a step
  // By the scheduler's own trace, of the very CPU; else by samples of processor time in the same
  // intervals.
  bool by_scheduler = false;
  // kOwnThread: it carries out the rank's own collectives.
  bool transfers = false;
};

// One of oneDNN's primitives that a rank runs by a lower instruction set than most others.
struct LowerSet {
  std::string primitive;            // "convolution"
  std::vector<std::string> own;     // its implementations: "jit:avx2"
  std::vector<std::string> others;  // most other ranks' for the same work
  bool all_others = true;           // all others'
};

struct Cause {
  // kThrottled, kWaitingForCpu, kBlocked, kInput or kGarbageCollection; with `lower_sets` or
  // `threads`: kCompute
  Part part = Part::kThrottled;
  MeanEstimate amount;  // E: of the rank, less the others' median, a step
  int64_t own_ns = 0;   // of the rank itself, a step
  MeanEstimate cost;    // what of each step it takes from all ranks
  // kThrottled: the group that has the quota.
  std::string group;
  int group_version = 0;
  int64_t quota_ns = -1;
  int64_t period_ns = 0;
  int64_t periods = 0;  // in the judged time, and in how many of them the group was throttled
  int64_t throttled_periods = 0;
  std::optional<Taker> taker;  // kWaitingForCpu
  std::vector<LowerSet> lower_sets;
  std::optional<FewerThreads> threads;
  std::optional<BlockedSleep> blocked;  // kBlocked
  // kInput: of the loader's workers, the part of the time (0 to 1) in which the one that was
  // blocked longest was; nullopt: not known.
  std::optional<double> loader_blocked;
  // kBlocked, kInput: of the control groups that may limit the memory of the rank's process, the
  // one that was full most often; nullopt: none was, or it is not known.
  std::optional<FullMemory> full_memory;
};

// What was looked at and is not the cause.
struct NotACause {
  Part part = Part::kThrottled;
  int64_t amount_ns = 0;  // E, a step
  bool measured = true;   // false: there was no evidence
  // Certain, and yet no cause of this rank's.
  enum class Because : uint8_t {
    kTooSmall,      // or not certain
    kSharedQuota,   // other ranks have the same quota and are throttled, too
    kOwnTransfers,  // its own threads that carry out collectives had the CPU
  };
  Because because = Because::kTooSmall;
};

// Of the driver as the kernel counted it, a step: of all of it, its waits included; what a
// hypervisor took of its own work, an estimate; and how long it slept in that, at least, if the
// estimate is right: what these leave of it (SleptOf).
struct ProcessorTime {
  int64_t on_cpu_ns = 0;
  int64_t run_queue_ns = 0;
  int64_t asleep_ns = 0;
  int64_t stolen_ns = 0;  // 0 also where it is not measured
};

struct OrderCounts {
  uint64_t last = 0;    // steps in which the rank was the last to arrive, by the estimate
  uint64_t proven = 0;  // of those
  uint64_t likely = 0;
  uint64_t steps = 0;  // that were looked at
};

// An operator of which ranks did different work.
struct WorkDifference {
  std::string name;
  bool in_shapes = false;  // the counts agree, the shapes do not
  double own = 0;          // a step; of shapes: how many of its executions differ
  double others = 0;       // the median of the other ranks
};

struct RankFinding {
  size_t index = 0;  // of the rank, in Answer::ranks
  bool late = false;
  MeanEstimate lead;  // own work, less the others' median
  // The same without stalls; nullopt: no judged step is one.
  std::optional<MeanEstimate> quiet_lead;
  double p = 1;               // of the permutation test; 1: not tested
  std::vector<Cause> causes;  // the largest first
  std::vector<NotACause> not_causes;
  MeanEstimate cost_all;  // of all its causes together
  OrderCounts order;
  std::vector<WorkDifference> work;  // why no cause is given
  bool shapes_known = false;
  std::optional<ProcessorTime> processor;
  // By how much longer its oneDNN reorders data; nullopt: not certainly, or not above the limit.
  std::optional<MeanEstimate> reorders;
  // Where it stood in host code more often than the others; nullopt: nowhere for certain, or where
  // it stood is no sign of a cause.
  std::optional<StoodIn> stood;
  // In which operators what nothing explains is; nullopt: in none for certain, or where it is is no
  // sign of a cause.
  std::optional<LongerWork> longer;
  // It certainly has more page faults, which may be a part of what nothing explains.
  std::optional<MorePageFaults> page_faults;
  // A hypervisor certainly takes more from it, which may be a part of what nothing explains.
  std::optional<MoreStealTime> steal;
  // Its CPU is certainly clocked lower, which may be a part of what nothing explains.
  std::optional<SlowerClock> clock;

  // What of a late rank's lead its causes explain, and what they leave, a step.
  int64_t explained_ns() const {
    int64_t sum_ns = 0;
    for (const Cause& cause : causes) sum_ns += cause.amount.est_ns;
    return sum_ns;
  }
  int64_t unexplained_ns() const {
    return late ? std::max<int64_t>(0, lead.est_ns - explained_ns()) : 0;
  }
  // A cause of less than half of the lead may well be a consequence: who works more on a busy
  // processor also waits more for it.
  bool mostly_explained() const { return !causes.empty() && unexplained_ns() <= explained_ns(); }
};

enum class Verdict : uint8_t {
  kNotJudged,         // one rank, or no collective
  kNobody,            // no rank is late
  kCause,             // `findings` name ranks with causes
  kLateCauseUnknown,  // a rank is later; nothing shows why, or not why for most of it
  kWorkDiffers,       // a rank is later; it does other work
  kEverybody,         // no rank, but something that takes time of every rank
  kStandsStill,       // no step ended: `syncline why` has where the ranks stand
};
const char* VerdictJsonName(Verdict verdict);  // "late_cause_unknown"

struct RankSummary {
  int32_t rank = -1;
  std::string node;
  int32_t pid = 0;
  std::string command;
  PartTable mean{};  // of a step; adds up to mean_step_ns
  int64_t mean_step_ns = 0;
  int64_t mean_own_ns = 0;        // own work: step - wait and transfer - not covered
  double covered = 0;             // part of the window, 0 to 1
  bool taken_away_known = false;  // whether throttled and waiting for a CPU were measured
  bool blocked_known = false;     // whether blocked was
  bool blocked_exact = false;     // by the scheduler's trace
  int64_t unplaced_ns = 0;        // run-queue time that found no place in own work, a step
  std::optional<ProcessorTime> processor;
  std::optional<PageFaults> page_faults;  // nullopt: not counted
  std::optional<StealTime> steal;         // nullopt: not measured
  std::optional<CpuClock> clock;          // likewise
  int64_t sample_period_ns = 0;           // 0: no samples
  int group_version = 0;                  // of control groups seen; 0: none
  std::optional<uint64_t> sample_gaps;    // nullopt: its node was not sampled
  uint32_t allowed_count = 0;             // CPUs that its threads may use; 0: not known
  std::string allowed_cpus;               // which: "0-3,8"
};

struct StepClass {
  std::string name;  // "all_reduce x3"
  uint64_t steps = 0;
  int64_t total_ns = 0;
};

struct Answer {
  Refusal refusal = Refusal::kNone;
  std::string refusal_text;  // one line: what is wrong, and what would be needed
  bool incomplete = false;   // answered, but something is missing

  std::string job;
  int64_t window_ns = 0;
  std::vector<StepClass> classes;  // the judged one first
  uint64_t steps = 0;              // judged
  uint64_t unpaired_steps = 0;     // that are in no class
  uint64_t unlike_steps = 0;       // of them, that ranks have with other loads or forward passes
  int64_t mean_step_ns = 0;        // over ranks and steps
  int64_t median_step_ns = 0;      // of the judged steps of all ranks
  int64_t longest_step_ns = 0;
  std::vector<RankSummary> ranks;  // by rank
  // Ranks send to each other, and wait there: own work is not compared.
  bool transfers = false;
  bool few_transfers = false;  // no collective, and fewer transfers than one in two steps
  Verdict verdict = Verdict::kNotJudged;
  std::vector<RankFinding> findings;  // those who are named or late; the largest amount first
  std::optional<Stalls> stalls;
  // With kNobody: the rank with most own work, and whether its interval is too wide to say so.
  std::optional<RankFinding> closest;
  bool undecided = false;
  std::vector<Part> everybody;  // parts that take >= 15 % of the step on every rank
  // Where waiting for a CPU is one of them: who ran while the rank waited that waits longest.
  std::optional<Taker> everybody_taker;
  size_t everybody_taker_rank = 0;  // index into `ranks`
  // Where host code is one of them: the function in which the ranks stood most often in it.
  std::optional<StoodIn> everybody_stood;
  std::optional<int64_t> clock_bound_ns;
  bool clock_bounds_hold = true;        // false: what was recorded contradicts the clocks
  std::optional<uint64_t> lost_events;  // nullopt: not known
  int64_t worst_not_covered_ns = 0;     // a step, of any rank
  std::vector<std::string> notes;       // what to know of the evidence, one line each
  std::vector<NetworkFinding> network;  // of the job's connections
  // nullopt: no rank waits for another, or the clocks' bounds do not hold.
  std::optional<CriticalPath> path;
  std::string path_unknown;  // why there is none, though ranks wait for each other
  // By how much a replay with nothing changed is off; nullopt: costs are not replayed.
  std::optional<int64_t> replay_error_ns;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_MODEL_H_
