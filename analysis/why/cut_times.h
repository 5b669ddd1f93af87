// SPDX-License-Identifier: Apache-2.0
// What the critical paths of a cut model's judged steps are made of: one value a step. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_TIMES_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/why/cut_model.h"
#include "analysis/why/cut_steps.h"

namespace syncline::analysis::why {

// ns. A step is the sum of its partitions, its tensors, and what lies between it and the next one.
struct CutTimes {
  using Series = std::vector<int64_t>;  // by judged step

  Series steps;
  Series tensors;  // all edges together
  Series between;
  std::map<size_t, Series> partitions;                    // in their executors and operators
  std::map<size_t, Series> edges;                         // by index into CutInput::edges
  std::map<std::pair<size_t, NameId>, Series> operators;  // by partition and name
  // By edge: by how much the clocks may have moved its time, over all steps; nullopt: not known.
  std::map<size_t, std::optional<int64_t>> clocks;
};

CutTimes CutTimesOf(const CutInput& input, std::span<const CutStep> steps);

// Whether a tensor was under way.
bool IsTensor(const CutPiece& piece);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_TIMES_H_
