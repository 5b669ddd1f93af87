// SPDX-License-Identifier: Apache-2.0
// What `syncline why` is given of a job: the tasks and collectives of its ranks, and what the
// kernels of their nodes say.
//
// All times of a rank are ns of its own node's trace clock. Only Arrival and timeline_ns compare
// nodes.
#ifndef SYNCLINE_ANALYSIS_WHY_JOB_INPUT_H_
#define SYNCLINE_ANALYSIS_WHY_JOB_INPUT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/levels.h"
#include "analysis/why/task_spans.h"
#include "evidence/evidence.h"
#include "evidence/scheduling.h"

namespace syncline::analysis::why {

// [begin, end), ns of one clock.
struct OwnInterval {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t length_ns() const { return end_ns - begin_ns; }
  auto operator<=>(const OwnInterval&) const = default;
};

struct ThreadInput {
  int32_t tid = 0;  // as the process sees it
  TaskSpans spans;  // by begin; of one begin, the outer first
};

// A rank's part of a collective, or of a transfer between two ranks: a collective of these two, in
// a group of its own for each channel. Over Gloo each of them waits for the other.
struct CollectiveEntry {
  uint32_t group = 0;
  uint64_t number = 0;
  NameId name = 0;
  int64_t entered_ns = 0;
  // Of Gloo's work; of a transfer when the program had waited for it. nullopt: not recorded.
  std::optional<int64_t> left_ns;
  // When it was entered by the timeline's clock, estimated; nullopt: the clocks' bounds do not
  // hold.
  std::optional<int64_t> timeline_ns;
  int64_t bytes = -1;  // that it carries; -1: not known
  bool transfer = false;
  // Of a transfer.
  bool sends = false;
  bool loose = false;      // the other side is not known
  int32_t tid = 0;         // who called for it
  int32_t waited_tid = 0;  // who waited for it
  int64_t waited_ns = 0;   // how long, until left_ns
};

// Where a thread stood in Python at an instant.
struct PlaceSample {
  int64_t at_ns = 0;
  int32_t tid = 0;  // as the process sees it
  NameId name = 0;  // task_names.h: StandsInOf
};

struct RankInput {
  int32_t rank = -1;
  std::string node;
  int32_t pid = 0;                           // as the process sees itself
  std::string command;                       // "train.py"
  std::vector<ThreadInput> threads;          // that recorded tasks
  std::vector<CollectiveEntry> collectives;  // by entry
  std::vector<PlaceSample> places;           // by time
  std::vector<OwnInterval> holes;            // in which tasks of the rank may be missing; by begin
  OwnInterval window;  // the part of the recording that was asked for, in its clock; begins at T
  std::optional<OwnInterval> ended;                  // the process ended in this time
  std::vector<std::string> accelerators;             // initialised in the process: "cuda"
  const evidence::Evidence* evidence = nullptr;      // of its node; nullptr: recorded without
  std::optional<uint32_t> evidence_process;          // index into evidence->processes
  const evidence::Scheduling* scheduling = nullptr;  // nullptr: not recorded of this process
  uint32_t scheduling_process = 0;                   // index into scheduling->processes
};

// Who entered a collective last, as the clocks have it.
struct Arrival {
  uint32_t group = 0;
  uint64_t number = 0;
  bool everybody_waits = true;  // false: a broadcast, a reduction to one rank
  // Of a broadcast of Gloo's whose ranks are in the order of their ranks in the group: whose it is
  // that it sends; index into JobInput::ranks. nullopt: not known.
  std::optional<size_t> root;
  size_t last = 0;                  // index into JobInput::ranks
  int64_t spread_ns = 0;            // from the first entry to the last one, estimated
  Level level = Level::kUndecided;  // of `last` having entered after all the others
};

struct JobInput {
  std::string job;
  std::vector<std::string> names;  // names[0] is ""
  std::vector<RankInput> ranks;    // by rank
  std::vector<Arrival> arrivals;
  bool clock_bounds_hold = true;            // false: what was recorded contradicts the clock model
  std::optional<int64_t> clock_bound_ns;    // the worst between two ranks' clocks; nullopt: unknown
  std::optional<uint64_t> lost_events = 0;  // nullopt: lost, but not counted
  bool waits_unknown = false;   // ranks send and receive, how long they waited is missing
  bool incomplete = false;      // a node, a stream or a time range is missing
  bool redacted = false;        // names that are not public were replaced
  std::string detail = "full";  // else operators inside of others may be missing
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_JOB_INPUT_H_
