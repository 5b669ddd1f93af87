// SPDX-License-Identifier: Apache-2.0
// What changed in the steps of a model that is cut into partitions, between recordings: of the
// step, and of what its critical path is made of. How a change and its interval are found:
// changes.h. Definitions: docs/findings.md.
//
// Clocks: a tensor's time on the path is between two clocks, and their error is the same in all
// steps of a recording: both recordings' bounds widen the intervals of what lies between clocks.
// Pure, deterministic.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_COMPARISON_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/why/changes.h"
#include "analysis/why/compared_sides.h"
#include "analysis/why/cut_side.h"

namespace syncline::analysis::why {

struct CutPartitionChange {
  std::string task;
  Change path;
};

// Of all tensors from one partition to another.
struct CutDirectionChange {
  std::string from;
  std::string to;
  Change path;
};

struct CutTensorChange {
  // Without "edge_13_" where in each recording it is the only one of that name from the one to the
  // other: a graph with one more operator has other numbers.
  CutTensorName name;
  bool before = false;  // it was on the path of a step of theirs
  bool now = false;
  Change path;
};

struct CutOperatorChange {
  CutOperatorName name;
  double calls_before = 0;  // a step, on the path or not
  double calls_now = 0;
  // It ran as often in another partition before, and no more there, now.
  std::string moved_from;  // its task; "": it did not
  Change path;
};

struct CutComparison : ComparedSides {
  CutRefusal refusal = CutRefusal::kNone;  // with kNowRefused, kBeforeRefused

  Change step;
  // How far the clocks may have moved the tensors' time, ns of a step, both recordings together;
  // nullopt: not known, and neither is which way the paths took: the rest is empty.
  std::optional<int64_t> clock_ns;
  std::optional<Change> work;                  // all partitions together
  std::vector<CutPartitionChange> partitions;  // by task
  std::optional<Change> tensors;               // all together
  std::optional<Change> between;
  std::vector<CutDirectionChange> directions;
  std::vector<CutTensorChange> tensor_changes;  // the largest first; at most 32

  std::vector<CutOperatorChange> operators;  // the largest change first; at most 32
};

ComparedSide SummaryOf(const CutSide& side);

// At least one before.
CutComparison CompareCut(std::vector<CutSide> before, CutSide now);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_COMPARISON_H_
