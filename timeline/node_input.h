// SPDX-License-Identifier: Apache-2.0
// What the builder gets of one node, and what it says of it afterwards. Plain values, filled by
// whoever knows the files (recording.json, control blocks, trace directories).
#ifndef SYNCLINE_TIMELINE_NODE_INPUT_H_
#define SYNCLINE_TIMELINE_NODE_INPUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/event_cursor.h"
#include "common/identity.h"
#include "common/loss.h"
#include "common/time.h"
#include "timeline/code_series.h"
#include "timeline/counter_series.h"
#include "timeline/device_collectives.h"
#include "timeline/device_work.h"
#include "timeline/messages.h"
#include "timeline/partitions.h"
#include "timeline/placement.h"
#include "timeline/scheduling_series.h"
#include "timeline/sink.h"
#include "timeline/tensors.h"
#include "timeline/wall_placement.h"

namespace syncline::timeline {

// Kinds of names (docs/event-schema.md, syncline:name).
struct KnownName {
  uint8_t kind = 0;
  std::string text;
};

struct KnownThread {
  uint32_t key = 0;  // as events carry it
  int32_t tid = 0;
  std::string name;
};

// A process as its control block and the recording describe it. -1, 0, "": unknown.
struct KnownProcess {
  ProcessKey key;  // key.node is filled in by the builder
  uint32_t uid = 0;
  uint32_t process_key = 0;  // as events carry it
  std::string command_line;
  std::string job;
  std::string incarnation;
  std::string role;
  std::string part;        // rank, launcher, loader worker, child; empty: unknown
  int32_t worker_id = -1;  // of a loader worker: its place among its rank's, as they began
  int32_t rank = -1;
  int32_t world_size = -1;
  // That it covers nothing of the window is a loss: it should have.
  bool expected = false;
  bool came_too_late = false;           // begun in the window, and never switched on
  std::string why_missed;               // where that is known; else empty
  bool became_another_program = false;  // by exec, in the window: nothing of that one is here
  std::optional<int64_t> on_ns;         // trace clock; for when the events that say so were lost
  std::optional<int64_t> off_ns;
  std::optional<int64_t> ended_ns;         // when it was found to have ended, trace clock
  std::optional<uint64_t> counted_events;  // by the process itself, in this recording
  std::optional<uint64_t> counted_lost;
  // Of these, calls between the first one and on_ns; and when the first one was, trace clock.
  uint64_t lost_before_on = 0;
  std::optional<int64_t> asked_ns;
  std::optional<DurationEstimate> cost;
  std::unordered_map<uint32_t, KnownName> names;
  std::vector<KnownThread> threads;
};

// An interval in the trace clock.
struct ClockInterval {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// Who makes profiles. A plain table of spans (spans/) may be of anybody.
enum class Profiler : uint8_t { kTensorFlow, kKineto, kJax, kTable };

// What the profiler of one process was asked for, and what came (recording-format.md).
struct ProfileInput {
  Profiler profiler = Profiler::kTensorFlow;
  ProcessKey process;             // key.node is filled in by the builder
  std::string task;               // "/job:worker/replica:0/task:0"; empty: unknown
  TraceReader* reader = nullptr;  // outlives the builder; nullptr: nothing came
  ClockInterval covered;          // CLOCK_REALTIME; what was asked for where nothing came
  std::string absence;            // why nothing came, for people
  std::vector<Loss> losses;       // CLOCK_REALTIME; an empty interval means all of `covered`
};

struct NodeInput {
  std::string name;
  // Paths in losses are shown relative to it: what is exported must not depend on where it lies.
  std::string root;
  std::vector<TraceReader*> readers;  // outlive the builder
  Placement* placement = nullptr;     // of the readers' clock; outlives the builder
  // The same under an assumption, which it names. Only its bound is drawn, beside the proven one.
  const Placement* likely = nullptr;
  std::string assumption;
  std::vector<KnownProcess> processes;
  std::vector<ProfileInput> profiles;  // by profiler and process, then time
  WallPlacement* wall = nullptr;       // of the profiles' clock; outlives the builder
  // Found before any event was read: directories that are no trace, unreadable streams. An empty
  // interval means all of the window.
  std::vector<Loss> losses;
  // The tracer ended, or was given up, before it had written everything: what the processes did
  // behind the end of the traces may be missing.
  bool unflushed = false;
  // When the gate was closed, trace clock; nullopt: unknown. Before the window's end it is a loss.
  std::optional<int64_t> closed_ns;
  std::string why_closed;                                  // for people
  std::vector<CounterSeries> counters;                     // that come beside the traces
  SampledCode code;                                        // likewise
  SchedulingSeries scheduling;                             // likewise
  std::vector<ClockEvent> clock_events;                    // `node` is filled in by the builder
  std::vector<std::pair<std::string, std::string>> facts;  // of the node, for people
};

// Losses of one source and reason, added up.
struct LossTotal {
  LossReason reason = LossReason::kDiscardedEvents;
  std::string source;
  std::string detail;  // of the first
  uint64_t intervals = 0;
  std::optional<uint64_t> count;  // events or packets; nullopt: unknown in part
  TimelineTime begin;             // of the first
  TimelineTime end;               // of the last
};

struct ProcessResult {
  ProcessKey key;
  std::string name;  // of its track
  std::string command_line;
  std::string job;
  std::string role;
  std::string part;  // as of KnownProcess
  int32_t rank = -1;
  int32_t world_size = -1;
  std::vector<ClockInterval> coverage;  // in the trace clock
  bool end_known = false;               // it said off; else coverage ends at its last event
  bool cut_off = false;                 // it went on, but the tracer had ended
  std::optional<int64_t> ended_ns;      // as of KnownProcess: it ended behind its last event
  uint64_t found_events = 0;
  std::optional<uint64_t> counted_events;
  std::optional<uint64_t> counted_lost;
  std::optional<DurationEstimate> cost;  // time spent inside our code, all threads added
  uint32_t threads = 0;
};

struct ProfileResult {
  Profiler profiler = Profiler::kTensorFlow;
  ProcessKey process;
  std::string name;  // of its process's track
  std::string task;
  std::string absence;
  std::optional<TimelineTime> begin;  // nullopt: the wall clock's steps leave it undecided
  std::optional<TimelineTime> end;
  uint64_t events = 0;
  uint64_t operators = 0;
  uint64_t steps = 0;
  // Events that are on no lane because the wall clock was set while they ran.
  uint64_t undecided_events = 0;
  uint64_t crowded_events = 0;  // on no lane because too many were open on their thread
};

struct NodeResult {
  std::string name;
  uint32_t index = 0;
  uint64_t streams = 0;
  uint64_t events = 0;          // all that are shown (BuildOptions::events), but no canaries
  uint64_t foreign_events = 0;  // of providers that are not ours
  uint64_t undecodable_events = 0;
  uint64_t recovered = 0;  // stacks that had to find themselves again
  // Relations of ITT's without an arrow (relation_arrows.h).
  uint64_t ambiguous_relations = 0;  // several open tasks have an id of theirs
  uint64_t crowded_relations = 0;    // a task of theirs has enough
  // Of a cut (look_back.h): whether not everything was read for it, and how many threads are inside
  // of tasks that began before what was.
  bool read_in_part = false;
  uint64_t inside_of_unread_threads = 0;
  std::optional<ClockInterval> seen;  // first and last event, trace clock
  std::vector<ProcessResult> processes;
  std::vector<LossTotal> losses;
  std::vector<ProfileResult> profiles;
  std::vector<ProcessDevices> devices;                 // of the processes whose profiles have any
  std::vector<ProcessCollectives> device_collectives;  // of the processes that have any
  std::vector<Partition> partitions;     // of the processes whose profiles say something of them
  std::vector<TensorTransfer> received;  // tensors that arrived at this node
  TensorEnds tensor_ends;
  std::vector<MessageStream> message_streams;  // that this node received
  MessageEnds message_ends;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_NODE_INPUT_H_
