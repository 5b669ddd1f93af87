// SPDX-License-Identifier: Apache-2.0
// One model that is cut into partitions, each of which one process computes (TensorFlow's in-graph
// master and worker): what was recorded of it, and the answer of `syncline why`. No partition can
// be late there, because each does other work; the question is what a step's critical path is made
// of. Words: docs/findings.md.
//
// Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::analysis::why {

enum class CutKind : uint8_t {
  kOperator,
  kStep,   // RunGraph: the partition begins a step
  kReady,  // ExecutorState::ScheduleReady: operators may run from here on
  kAsked,  // ExecutorState::ProcessAsync::Start: an operator begins that holds no thread
  kDone,   // ExecutorState::ProcessAsync::Done: the same is done, as a tensor that was received
  kOther,
};

// Of one lane of a partition. Times are the timeline's, by estimate.
struct CutSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t recorded_ns = 0;  // its begin, as recorded: what a transfer's ends are found by
  NameId name = 0;          // of the operator, or what else the span says
  CutKind kind = CutKind::kOther;
  uint16_t depth = 0;
};

struct CutStepTimes {
  int64_t begin_ns = 0;
  std::optional<int64_t> end_ns;  // its last executor is done; nullopt: not recorded
  size_t end_lane = 0;            // on which it says so
};

struct CutPartition {
  std::string task;  // "/job:worker/task:0"
  std::string node;
  std::vector<std::vector<CutSpan>> lanes;           // by begin; of one begin, the outer first
  std::map<int64_t, CutStepTimes> steps;             // by the step's id
  std::vector<std::pair<int64_t, int64_t>> covered;  // by its profiles: begin and end
};

// A tensor that crossed. `from`, `to`: indices of partitions.
struct CutTransfer {
  int64_t step = 0;
  size_t edge = 0;  // index into CutInput::edges
  size_t from = 0;
  size_t to = 0;
  int64_t sent_ns = 0;  // when its send began
  int64_t sent_recorded_ns = 0;
  int64_t sending_ns = 0;  // how long the send took its thread
  int64_t received_ns = 0;
  int64_t received_recorded_ns = 0;
  std::optional<int64_t> posted_recorded_ns;  // when the receiver asked for it
  std::optional<uint64_t> bytes;
  // By how much the time between the two may be off, to either side; nullopt: not known.
  std::optional<int64_t> clock_ns;
};

struct CutEdge {
  std::string tensor;
  size_t from = 0;
  size_t to = 0;
};

struct CutInput {
  std::vector<std::string> names;
  std::vector<bool> receives;  // beside them: an operator of this name receives a tensor
  std::vector<CutPartition> partitions;
  std::vector<CutEdge> edges;
  std::vector<CutTransfer> transfers;
};

enum class CutRefusal : uint8_t {
  kNone,
  kNoTensors,       // no tensor crossed between two profiled processes
  kSeveralJobs,     // two processes are the same task
  kDevices,         // operators run on a GPU
  kNoSteps,         // no step of a session was seen
  kStepsOverlap,    // on one partition
  kPathUnknown,     // of more than a tenth of the steps
  kSeveralClients,  // steps begin in several processes
  kStepsDiffer,     // too few of them run the same operators
  kTooFewSteps,
};
const char* CutRefusalJsonName(CutRefusal refusal);  // "no_tensors"

// Means over the judged steps, ns of one step.
struct CutPartitionSummary {
  std::string task;
  std::string node;
  MeanEstimate path;   // of the critical path, in its executor and operators
  MeanEstimate saved;  // of a step, by replay, if all of its work took half as long
  // Of the path: tensors of its were under way, and may have waited until its threads were free.
  // Half of it may be saved beside that.
  int64_t sending_busy_ns = 0;
  int64_t operators_ns = 0;  // of `path`, in operators
  int64_t idle_ns = 0;       // of `path`: none of what is recorded ran
  int64_t busy_ns = 0;       // in which any of its threads worked, on the path or not
};

struct CutEdgeSummary {
  CutEdge edge;
  uint64_t steps = 0;      // in which it was on the path
  MeanEstimate path;       // of all judged steps
  int64_t sending_ns = 0;  // of `path`: in the send itself
  // Of `path`: the sender worked on something; the tensor may have waited for its threads.
  int64_t sender_busy_ns = 0;
  // Of `path`: the tensor had certainly been sent before the receiver asked for it.
  int64_t asked_ns = 0;
  std::optional<int64_t> clock_ns;  // of `path`; nullopt: not known
  std::optional<uint64_t> bytes;    // of one, the median; nullopt: not known of all
};

// All tensors from one partition to another.
struct CutDirectionSummary {
  size_t from = 0;
  size_t to = 0;
  MeanEstimate saved;  // of a step, by replay, if they took no time
};

struct CutOperatorSummary {
  std::string name;
  size_t partition = 0;
  uint64_t steps = 0;  // in which it was on the path
  MeanEstimate path;
};

// A piece of the critical path of a judged step, by the timeline's clock.
struct CutPathSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  size_t partition = 0;        // of a tensor: the receiver
  std::optional<size_t> from;  // of a tensor: its sender
  std::string name;            // of the tensor, or of the operator; empty: neither
};

struct CutAnswer {
  CutRefusal refusal = CutRefusal::kNone;
  std::string refusal_text;
  uint64_t steps = 0;              // judged: consecutive, of the class with the most time
  uint64_t other_steps = 0;        // whole steps of other classes
  uint64_t overlapping_steps = 0;  // left out, because another one ran on one of their partitions
  uint64_t broken_steps = 0;       // whose path ends where nothing was recorded
  size_t client = 0;               // index of the partition in whose process steps begin
  MeanEstimate step;               // from the begin of one to the begin of the next
  std::vector<CutPartitionSummary> partitions;  // by task
  std::vector<CutEdgeSummary> edges;            // most on the path first; all that ever were
  std::vector<CutDirectionSummary> directions;  // most saved first
  std::vector<CutOperatorSummary> operators;    // most on the path first
  MeanEstimate tensors;                         // all edges together
  MeanEstimate tensors_saved;   // of a step, by replay, if none of them took any time
  int64_t replay_error_ns = 0;  // the largest of a step, of the replay with nothing changed
  MeanEstimate between;         // neither: the program between steps, and until a partition begins
  // The largest bound of any tensor on the path; nullopt: not known.
  std::optional<int64_t> clock_ns;
  int64_t overlap_ns = 0;   // in which two partitions or more worked at the same time
  bool incomplete = false;  // something is missing in the recording
  int64_t window_ns = 0;
  std::vector<NetworkFinding> network;  // of the job's connections
  std::vector<CutPathSpan> path;        // of the judged steps, by time
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_MODEL_H_
