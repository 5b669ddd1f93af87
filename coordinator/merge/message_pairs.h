// What messages between nodes say of the clocks: the call that sent a byte began before the call
// that received it returned.
#ifndef SYNCLINE_COORDINATOR_MERGE_MESSAGE_PAIRS_H_
#define SYNCLINE_COORDINATOR_MERGE_MESSAGE_PAIRS_H_

#include <span>
#include <vector>

#include "common/time.h"
#include "coordinator/recording/recording.h"
#include "timeline/messages.h"

namespace syncline::merge {

// Of each direction between two nodes the tightest pair of every 20 ms: the others follow from it
// but for what the clocks drift in that time.
std::vector<CausalPair> TightestPairs(std::span<const timeline::MessageStream> streams);

// Reads all traces of the recording. Nodes are numbered as in the recording.
std::vector<CausalPair> MessagePairsOf(const recording::Layout& layout,
                                       const recording::Recording& recording);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_MESSAGE_PAIRS_H_
