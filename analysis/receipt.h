// SPDX-License-Identifier: Apache-2.0
// The receipt: what a recording cost those who were recorded.
//
// How sure the processes' own measurements are: control_block/cost.h. Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_RECEIPT_H_
#define SYNCLINE_ANALYSIS_RECEIPT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/time.h"

namespace syncline::analysis {

// A part of something, in millionths: [lo, hi] is rounded outwards. kUnknownHi: unbounded.
struct ShareEstimate {
  int64_t est_ppm = 0;
  int64_t lo_ppm = 0;
  int64_t hi_ppm = kUnknownHi;
  bool bounded() const { return hi_ppm != kUnknownHi; }
};

struct ProcessReceipt {
  std::string name;
  std::string part;  // rank, launcher, loader worker, child; empty: unknown
  std::string job;
  int32_t rank = -1;
  uint64_t events = 0;     // that it handed over, lost ones too
  int64_t covered_ns = 0;  // in this time
  // Time inside our code, all threads added; nullopt: not measured.
  std::optional<DurationEstimate> cost;
  // The step that it makes, or that its job makes; its share is taken to be that of all the time.
  std::optional<int64_t> step_ns;

  std::optional<uint64_t> events_per_second() const;  // nullopt: it covers nothing
  // Of the time that it covers, as if no two threads were ever in our code at once.
  std::optional<ShareEstimate> share() const;
};

// What the node's agent counted of clock probes since it began, what is 0 left out: names as in
// clocks/probes.json.
using ProbeCounts = std::vector<std::pair<std::string, uint64_t>>;

struct NodeReceipt {
  std::string name;
  std::optional<uint64_t> trace_bytes;  // written by LTTng
  std::optional<uint64_t> discarded_events;
  std::optional<uint64_t> lost_packets;  // nullopt of these: LTTng could not say
  std::vector<ProcessReceipt> processes;
  // Profilers that ran in its processes: what they take is in no process's cost.
  bool tensorflow_profiler = false;
  bool kineto = false;
  bool jax = false;
  std::optional<ProbeCounts> probes;  // nullopt: not known
};

// `part` of a whole of `whole_ns`.
std::optional<ShareEstimate> ShareOf(const DurationEstimate& part, int64_t whole_ns);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_RECEIPT_H_
