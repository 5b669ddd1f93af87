// SPDX-License-Identifier: Apache-2.0
// What a recording says, as plain values: the analysis fills them, export/report prints them.
//
// Every statement across nodes carries {est, lo, hi} from the clock model's Difference, which is
// proven, and beside it what is likely under the report's assumption; what cannot be decided is
// said to be undecided. The three are never mixed. Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_REPORT_H_
#define SYNCLINE_ANALYSIS_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/communicators.h"
#include "analysis/device_health.h"
#include "analysis/devices.h"
#include "analysis/file_clocks.h"
#include "analysis/hot_code.h"
#include "analysis/levels.h"
#include "analysis/machines.h"
#include "analysis/messages.h"
#include "analysis/network.h"
#include "analysis/primitives.h"
#include "analysis/receipt.h"
#include "analysis/scheduling.h"
#include "analysis/tensors.h"
#include "analysis/transfers.h"
#include "analysis/vtune_results.h"
#include "clocksync/events.h"
#include "common/time.h"
#include "timeline/node_input.h"

namespace syncline::analysis {

// When a process ended: behind `after`, its last event, and before `before`, when it was found.
struct ProcessEnd {
  std::optional<TimelineTime> after;  // nullopt: it has no event in the window
  TimelineTime before;
};

struct ProcessReport {
  std::string name;  // "worker-0 · rank 1 · python train.py"
  std::string command_line;
  std::string job;
  std::string role;
  std::string part;  // rank, launcher, loader worker, child; empty: unknown
  int32_t pid = 0;
  int32_t rank = -1;
  // Sum of the coverage intervals inside the window, and of what is missing of it, ns.
  int64_t covered_ns = 0;
  int64_t missing_ns = 0;
  std::vector<timeline::Interval> coverage;  // these intervals, in order
  std::optional<TimelineTime> covered_begin;
  std::optional<TimelineTime> covered_end;
  bool end_known = false;
  bool cut_off = false;             // it went on, but the tracer had ended
  std::optional<ProcessEnd> ended;  // nullopt: it is not known that it did
  uint64_t events = 0;
  std::optional<uint64_t> counted_events;
  std::optional<uint64_t> lost;  // by the process's own count
  // Time spent inside our code, all threads added, by the process's own measurement.
  std::optional<DurationEstimate> cost;
  uint32_t threads = 0;
};

struct NodeReport {
  std::string name;
  std::string role;
  std::string state;  // of the recording: complete, incomplete, missing, left
  std::string failure;
  uint64_t streams = 0;
  uint64_t events = 0;
  uint64_t foreign_events = 0;
  uint64_t undecodable_events = 0;
  // Achieved instant less the one asked for; the interval is proven.
  std::optional<LevelledDuration> start_skew;
  std::optional<LevelledDuration> stop_skew;
  // Of the node's clock, proven: in the middle of the window; of files of profiles the largest.
  std::optional<int64_t> bound_ns;
  std::optional<int64_t> likely_bound_ns;
  // Wall clock of this node less that of the reference node at one instant.
  std::optional<DurationEstimate> wall_error;
  std::vector<ProcessReport> processes;
  std::vector<timeline::ProfileResult> profiles;  // by TensorFlow
  std::vector<timeline::Partition> partitions;
  std::vector<DeviceReport> devices;  // by process
  std::vector<timeline::LossTotal> losses;
};

struct TaskTotal {
  std::string node;
  std::string domain;
  std::string name;      // numbers in it shown as "#": "step #"
  uint64_t count = 0;    // whole tasks
  uint64_t clipped = 0;  // cut by coverage or hit by loss: counted here, not in the sums
  int64_t total_ns = 0;
  int64_t self_ns = 0;       // 0 where overlapping
  bool overlapping = false;  // overlapped tasks, regions and user events, which do not nest
};

struct Step {
  NodeTime node_begin;
  NodeTime node_end;
  TimelineTime begin;
  TimelineTime end;
  std::string name;  // with its number, which its name or its metadata says
};

// The steps that one thread (or frame track) marks.
struct StepSeries {
  uint32_t node = 0;  // index into Report::nodes
  std::string process;
  std::string name;  // "train_step", "step #"
  std::string domain;
  std::vector<Step> steps;  // whole ones, by begin
  int64_t mean_ns = 0;
  int64_t min_ns = 0;
  int64_t median_ns = 0;
  int64_t max_ns = 0;
};

// What a node that marks no steps did during one step of the node that does.
struct StepGroup {
  uint32_t step = 0;  // index into the main series
  uint64_t tasks = 0;
  TimelineTime begin;
  TimelineTime end;
  // By Order: does all of it lie inside the step? Proven; or only likely, under the report's
  // assumption; or neither.
  enum class Inside : uint8_t { kYes, kNo, kLikely, kLikelyNot, kUndecided };
  Inside inside = Inside::kUndecided;
};

struct GroupSeries {
  uint32_t node = 0;
  std::vector<StepGroup> groups;
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t likely_inside = 0;
  uint64_t likely_outside = 0;
  uint64_t undecided = 0;
  // How far this node would move against the node that marks the steps, were both placed by wall
  // clock.
  std::optional<DurationEstimate> wall_shift;
  uint64_t moved_by_wall_clock = 0;  // groups whose centre would then lie in another step
};

// By the samples of a node's kernel.
struct MachineReport {
  struct Process {
    std::string name;  // as in NodeReport
    std::string part;
    int32_t rank = -1;
    ProcessUsage usage;
  };
  uint32_t node = 0;  // index into Report::nodes
  int64_t window_ns = 0;
  std::vector<Process> processes;
  std::vector<OtherUsage> others;  // that were not recorded; those that ran most first
};

// What "likely" means in this report.
struct Assumption {
  int64_t asymmetry_percent = clocksync::kAsymmetryPercentAny;  // then nothing is called likely
  // Why it cannot be true; then nothing is called likely, either.
  std::string refuted_by;
};

struct Report {
  std::string recording_id;
  std::string detail = "full";  // of the recording: what programs left out of it (docs/detail.md)
  bool from_recording = false;
  int64_t epoch_unix_ns = 0;
  TimelineTime window_begin;
  TimelineTime window_end;
  std::string stop_reason;
  std::string reference;  // the node whose clock gives the timeline its rate
  // What all ranks cover, in order: pauses and holes of each are left out. Without ranks, what all
  // processes cover. Of a node's processes with one rank the one with the most events counts:
  // workers of its data loader, which come and go, carry its number, too.
  std::vector<timeline::Interval> common_coverage;
  uint64_t ranks = 0;
  std::vector<NodeReport> nodes;
  std::vector<TaskTotal> tasks;   // by domain, then by total, largest first
  std::vector<StepSeries> steps;  // the main series first
  std::vector<GroupSeries> groups;
  Assumption assumption;  // of everything that is called likely
  TensorReport tensors;
  std::vector<clocksync::ClockEvent> clock_events;  // in the order of the model
  MessageReport messages;
  CollectiveReport collectives;
  std::vector<CommunicatorReport> communicators;  // NCCL's
  std::optional<FileClocks> file_clocks;          // of profiles without a recording
  TransferReport transfers;
  std::vector<NodeReceipt> receipt;        // beside `nodes`
  std::vector<MachineReport> machines;     // of nodes that were sampled
  std::vector<DeviceHealth> health;        // of devices that were sampled
  std::vector<NetworkLink> network;        // by the kernels' samples of connections
  HotCode hot;                             // of nodes whose code was sampled
  std::vector<NodeScheduling> scheduling;  // of nodes whose scheduler was traced
  PrimitiveReport primitives;              // of oneDNN
  std::vector<VtuneResult> vtune;          // beside the recording
  uint64_t events = 0;
  std::vector<std::string> only_events;  // patterns of their names; none: all were looked at
  bool incomplete = false;
  std::vector<std::string> complaints;
  std::vector<std::string> notes;  // hints for whoever asked; not part of the JSON
  bool begins_late = false;        // packets of the traces came before the first that is there
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_REPORT_H_
