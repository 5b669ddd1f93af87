// SPDX-License-Identifier: Apache-2.0
// One of two recordings that are compared: of a judged job what a comparison needs, and no more, so
// that the two need not be held in memory together. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_SIDE_H_
#define SYNCLINE_ANALYSIS_WHY_SIDE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::analysis::why {

struct SideRank {
  int32_t rank = -1;
  // By judged step; each adds up to the step.
  // With what was taken away (throttled, waiting for a CPU, blocked) cut out.
  std::vector<PartTable> cut;
  std::vector<PartTable> unblocked;  // with blocked left in the other parts
  std::vector<PartTable> uncut;      // with all of it there
  bool taken_away_known = false;     // throttled and waiting for a CPU are
  bool blocked_known = false;
  // What samples leave open of how long it was blocked, of a step.
  int64_t blocked_open_ns = 0;
};

// An operator, of the drivers of all ranks, in the judged steps.
struct SideOperator {
  // Time in itself, not in operators within it, in the compute part.
  std::vector<int64_t> cut_ns;  // by step, of all ranks
  std::vector<int64_t> uncut_ns;
  std::vector<int64_t> rank_cut_ns;  // by rank, of all steps
  std::vector<int64_t> rank_uncut_ns;
  uint64_t calls = 0;                      // of all ranks and steps
  std::map<std::string, uint64_t> shapes;  // calls by what is recorded of their arguments
};

// What makes steps alike (steps.h), by name.
struct StepKind {
  std::map<std::string, uint32_t> collectives;
  uint32_t forwards = 0;
  uint32_t loads = 0;
  bool operator==(const StepKind&) const = default;
};

struct Side {
  Refusal refusal = Refusal::kNone;
  std::string refusal_text;
  bool incomplete = false;
  std::optional<uint64_t> lost_events = 0;  // nullopt: lost, but not counted
  bool redacted = false;                    // names that are not public were replaced
  std::string detail = "full";              // "" of several that differ
  std::string job;
  int64_t window_ns = 0;
  uint64_t steps = 0;      // judged
  std::string step_class;  // "all_reduce x3"
  StepKind kind;
  std::vector<SideRank> ranks;  // by rank
  std::map<std::string, SideOperator> operators;
};

// `threads`: at most; what comes of it does not depend on them.
Side SideOf(const JobInput& input, size_t threads = 1);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_SIDE_H_
