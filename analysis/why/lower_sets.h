// SPDX-License-Identifier: Apache-2.0
// How ranks' oneDNN does its work: who does the same by a lower instruction set (another CPU, or
// another limit), and how long reorders take. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_LOWER_SETS_H_
#define SYNCLINE_ANALYSIS_WHY_LOWER_SETS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/onednn.h"
#include "analysis/why/judged.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

struct LowerSets {
  std::vector<LowerSet> primitives;            // by name; empty: there are none
  std::vector<std::vector<int64_t>> times_ns;  // [rank][step]: in the work that is found, of all
};

class Primitives {
 public:
  // `ranks`: at least one; not owned, nor are `names`.
  Primitives(std::span<const JudgedRank> ranks, std::span<const std::string> names);

  // What the rank does by a lower set than most other ranks, who all have the same implementations
  // of it; and, if there is any such work, what it does by implementations that name no set where
  // theirs name one. Only work that is done in nearly every step counts, and only where all sets
  // that are named are known.
  LowerSets LowerSetsOf(size_t rank) const;

  // [rank][step]
  const std::vector<std::vector<int64_t>>& reorders_ns() const { return reorders_ns_; }

 private:
  struct Done {
    std::set<std::string> implementations;
    std::vector<bool> in_step;
    std::vector<StepTime> times;  // of each shape one after the other
  };
  using ByWork = std::map<PrimitiveDescription, Done>;  // by WorkAlone

  // What more than half of the other ranks have in common, and how many these are; nullptr: they
  // differ.
  const Done* OfMostOthers(size_t rank, const PrimitiveDescription& work, size_t* count) const;

  static ByWork Regular(const JudgedRank& rank, std::span<const std::string> names);

  size_t steps_ = 0;
  std::vector<ByWork> ranks_;
  std::vector<std::vector<int64_t>> reorders_ns_;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_LOWER_SETS_H_
