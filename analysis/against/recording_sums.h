// SPDX-License-Identifier: Apache-2.0
// Of one of the recordings that `syncline report --against` compares, what the comparison needs and
// no more: how long its steps took, and how much time each operator, region, kernel and collective
// took in each unit (units.h).
//
// Memory: a number a unit for each name, at most kNamesMax names, and two a name and process;
// never one an occurrence. Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_AGAINST_RECORDING_SUMS_H_
#define SYNCLINE_ANALYSIS_AGAINST_RECORDING_SUMS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/against/edges.h"
#include "analysis/against/units.h"

namespace syncline::analysis::against {

inline constexpr size_t kNamesMax = 10'000;

enum class RowKind : uint8_t {
  kTask,        // own time, not in tasks within it: ITT tasks, operators, rows of tables
  kRegion,      // from begin to end: what may overlap on a thread, so that it has no own time
  kDevice,      // kernels, copies and fills, added up also where they overlap
  kCollective,  // in a collective, from a rank's entry to its exit, by that rank's clock
  kAllIn,       // of that, from the last rank's entry to the last exit
};
inline constexpr size_t kRowKinds = 5;

struct RowName {
  RowKind kind = RowKind::kTask;
  std::string domain;  // ITT domain, "Kineto kernel"; of collectives the group
  std::string name;

  auto operator<=>(const RowName&) const = default;
};

struct Sums {
  std::vector<int64_t> ns;  // by unit, all processes added up; of a step, or of a second
  uint64_t calls = 0;
  // Per second only: the mean of a call, of each unit that has any.
  std::vector<int64_t> call_ns;
  std::vector<int64_t> member_ns;  // by Recording::members; of all units
  int64_t clock_ns = 0;            // kAllIn: by how much clocks may be wrong, of a step or second
};

// What the time is looked at by: ranks, or where there are none, processes.
struct Member {
  int32_t rank = -1;
  std::string name;  // "rank 1"; "worker-0 · python train.py"

  auto operator<=>(const Member&) const = default;
};

// Steps of one name, or a part of each step of a device.
struct StepLengths {
  std::string name;         // "train_step", "GPU 0: idle"
  std::vector<int64_t> ns;  // of the k-th step, mean over those who mark it
  uint64_t marked_by = 1;
};

// How the ranks, or where there are none all recorded processes, had the machines: part of the time
// of their main threads, by samples.
struct Condition {
  enum class Kind : uint8_t { kWaiting, kThrottled, kBlocked };
  Kind kind = Kind::kWaiting;
  int64_t ppm = 0;
};

struct Recording {
  std::string id;      // of the recording; "" of what is none
  std::string detail;  // as Report has it
  bool incomplete = false;
  bool redacted = false;
  int64_t counted_ns = 0;  // of CoverageOf
  size_t nodes = 0;
  size_t processes = 0;         // recorded ones, and profiles
  std::vector<Member> members;  // in order
  bool has_ranks = false;
  bool has_processes = false;         // else there are only profiles
  std::vector<std::string> programs;  // command lines without their arguments' values, in order
  std::string step_name;              // of Periods
  Units units;
  std::vector<StepLengths> steps;
  std::vector<Condition> conditions;  // none: not sampled
  std::vector<Edge> edges;            // none: there are none, or they were not sampled
  std::map<RowName, Sums> rows;
  bool names_left_out = false;  // there were more than kNamesMax

  size_t ranks() const { return has_ranks ? members.size() : 1; }
};

// All but the rows that tasks make, which a SumSink adds.
Recording RecordingOf(const Report& report, Per per);

}  // namespace syncline::analysis::against

#endif  // SYNCLINE_ANALYSIS_AGAINST_RECORDING_SUMS_H_
