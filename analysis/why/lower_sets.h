// SPDX-License-Identifier: Apache-2.0
// Ranks whose oneDNN does the same work by a lower instruction set: another CPU, or another limit.
// Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_LOWER_SETS_H_
#define SYNCLINE_ANALYSIS_WHY_LOWER_SETS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/why/judged.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

struct LowerSets {
  std::vector<LowerSet> primitives;            // by name; empty: there are none
  std::vector<std::vector<int64_t>> times_ns;  // [rank][step]: in these primitives, of all ranks
};

// The rank's primitives whose highest instruction set is lower than that of the implementations
// that at least half of the other ranks agree on. Those whose sets are not known are left out.
LowerSets LowerSetsOf(std::span<const JudgedRank> ranks, size_t rank,
                      std::span<const std::string> names);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_LOWER_SETS_H_
