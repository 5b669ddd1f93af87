// SPDX-License-Identifier: Apache-2.0
// What messages between nodes say of the clocks: the call that sent a byte began before the call
// that received it returned.
#ifndef SYNCLINE_COORDINATOR_MERGE_MESSAGE_PAIRS_H_
#define SYNCLINE_COORDINATOR_MERGE_MESSAGE_PAIRS_H_

#include <vector>

#include "common/time.h"
#include "coordinator/recording/recording.h"

namespace syncline::merge {

// Reads all traces of the recording. Of each direction between two nodes the tightest pair of every
// 20 ms. Nodes are numbered as in the recording.
std::vector<CausalPair> MessagePairsOf(const recording::Layout& layout,
                                       const recording::Recording& recording);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_MESSAGE_PAIRS_H_
