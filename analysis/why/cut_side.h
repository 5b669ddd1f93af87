// SPDX-License-Identifier: Apache-2.0
// One of two recordings of a cut model that are compared: times of its judged steps by names, so
// that recordings can be laid beside each other. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_SIDE_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_SIDE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/why/cut_model.h"

namespace syncline::analysis::why {

// By their tasks.
struct CutTensorName {
  std::string tensor;
  std::string from;
  std::string to;
  auto operator<=>(const CutTensorName&) const = default;
};

struct CutOperatorName {
  std::string task;
  std::string name;
  auto operator<=>(const CutOperatorName&) const = default;
};

// Series have one value a judged step, ns of its path.
struct CutSide {
  struct Tensor {
    std::vector<int64_t> path_ns;
    std::optional<int64_t> clock_ns = 0;  // of all steps; nullopt: not known
  };
  struct Operator {
    std::vector<int64_t> path_ns;
    uint64_t calls = 0;  // of all steps, on the path or not
  };

  CutRefusal refusal = CutRefusal::kNone;
  std::string refusal_text;
  bool incomplete = false;
  std::optional<uint64_t> lost_events = 0;  // nullopt: lost, but not counted
  int64_t window_ns = 0;
  std::vector<int64_t> step_ns;
  std::vector<int64_t> tensors_ns;
  std::vector<int64_t> between_ns;
  std::map<std::string, std::vector<int64_t>> partitions;  // by task: all of them
  std::map<CutTensorName, Tensor> tensors;                 // that were on the path
  std::set<CutTensorName> all_tensors;                     // that crossed
  std::map<CutOperatorName, Operator> operators;           // that ran

  uint64_t steps() const { return step_ns.size(); }
};

CutSide CutSideOf(const CutInput& input);

// Several recordings as one: their steps one after the other. At least one; none is refused, and
// all have the same partitions.
CutSide Pooled(std::span<const CutSide> sides);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_SIDE_H_
