// SPDX-License-Identifier: Apache-2.0
// How much longer each rank is in each operator than the others, at the same work. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_OPERATOR_LEADS_H_
#define SYNCLINE_ANALYSIS_WHY_OPERATOR_LEADS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/why/job_input.h"
#include "analysis/why/judged.h"
#include "analysis/why/longer_work.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {

class OperatorLeads {
 public:
  // `ranks`: two or more, judged with JudgeOptions::stretches; not owned, nor are `names`.
  OperatorLeads(std::span<const JudgedRank> ranks, std::span<const std::string> names);

  // Of a rank that did the same work as the others, and is later by `unknown_ns` a step that
  // nothing explains: an operator is named for a tenth of it or more, all of them for half of it.
  // nullopt: nothing is certain.
  std::optional<LongerWork> Of(size_t rank, int64_t unknown_ns) const;

 private:
  struct Compared;

  std::vector<Compared> Compare(size_t rank) const;

  std::span<const JudgedRank> ranks_;
  std::span<const std::string> names_;
  size_t steps_;
  size_t block_;
  std::map<NameId, std::vector<std::vector<int64_t>>> times_ns_;  // [rank][block]
  std::map<NameId, Others> others_;                               // beside them, which stay
  std::map<NameId, std::vector<double>> calls_;                   // [rank], a step
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_OPERATOR_LEADS_H_
