// SPDX-License-Identifier: Apache-2.0
// Of many causal pairs those that matter. Pure.
#ifndef SYNCLINE_COORDINATOR_MERGE_TIGHTEST_PAIRS_H_
#define SYNCLINE_COORDINATOR_MERGE_TIGHTEST_PAIRS_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "common/time.h"

namespace syncline::merge {

// Keeps of each direction between two clocks the tightest pair of every 20 ms: the others follow
// from it but for what the clocks drift in that time.
class TightestPairs {
 public:
  void Offer(const CausalPair& pair) {
    const auto [entry, is_new] =
        tightest_.try_emplace({pair.before.clock, pair.after.clock, pair.before.ns / kBinNs}, pair);
    CausalPair& best = entry->second;
    if (pair.after.ns - pair.before.ns < best.after.ns - best.before.ns) best = pair;
  }
  std::vector<CausalPair> Take() const {
    std::vector<CausalPair> pairs;
    for (const auto& [bin, pair] : tightest_) pairs.push_back(pair);
    return pairs;
  }

 private:
  static constexpr int64_t kBinNs = 20'000'000;
  std::map<std::tuple<ClockId, ClockId, int64_t>, CausalPair> tightest_;
};

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_TIGHTEST_PAIRS_H_
