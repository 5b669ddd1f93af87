// SPDX-License-Identifier: Apache-2.0
// Which steps of a model that is cut into partitions are judged: whole ones that run the same
// operators, and only where those left out are few. Pure. Definitions: docs/findings.md.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_STEPS_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_STEPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/why/cut_model.h"
#include "analysis/why/cut_path.h"

namespace syncline::analysis::why {

// A step that all partitions that began it ended, and the begin of the next one.
struct CutStep {
  int64_t id = 0;
  int64_t begin_ns = 0;  // of the first partition that began it
  int64_t next_ns = 0;
  std::vector<size_t> partitions;
  CutPath path;
  int64_t duration_ns() const { return next_ns - begin_ns; }
};

// What ran in a step: names of operators, and how often, by partition.
using CutOperators = std::map<std::pair<size_t, NameId>, uint32_t>;

struct CutSteps {
  CutRefusal refusal = CutRefusal::kNone;
  std::string refusal_text;
  size_t client = 0;            // index of the partition in whose process steps begin
  std::vector<CutStep> judged;  // consecutive, of the class with the most time
  CutOperators operators;       // what each of them ran
  uint64_t other = 0;           // whole steps of other classes
  uint64_t overlapping = 0;     // left out, because another one ran on one of their partitions
  uint64_t broken = 0;          // whose path ends where nothing was recorded
};

// `paths`: of `input`.
CutSteps CutStepsOf(const CutInput& input, const CutPaths& paths);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_STEPS_H_
