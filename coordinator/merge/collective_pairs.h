// SPDX-License-Identifier: Apache-2.0
// What collectives say of the clocks: where nobody leaves before everybody has entered, rank i
// entered before rank j left, whoever i and j are. That bounds the offset of their clocks from both
// sides: e_j - l_i <= offset <= l_j - e_i.
//
// A pair that is false would make a proven interval false, so only what cannot be mistaken counts:
//   - kinds in which everybody waits for everybody (EverybodyWaits), and of something;
//   - groups in whose ranks the numbers of collectives can be no others: with any other shift some
//     rank would, by `model`, have left before another entered;
//   - ends of works that overlap no other collective of their process: a backend with several
//     threads may finish those in another order than they were begun;
//   - nothing at all where launches are left of which nobody knows which they are.
//
// Pure.
#ifndef SYNCLINE_COORDINATOR_MERGE_COLLECTIVE_PAIRS_H_
#define SYNCLINE_COORDINATOR_MERGE_COLLECTIVE_PAIRS_H_

#include <string_view>
#include <vector>

#include "clocksync/clock_model.h"
#include "common/time.h"
#include "timeline/collectives.h"

namespace syncline::merge {

// Of each direction between two nodes the tightest pair of every 20 ms. `model` was made without
// them.
std::vector<CausalPair> CollectivePairs(const timeline::Collectives& found,
                                        const clocksync::ClockModel& model);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_COLLECTIVE_PAIRS_H_
