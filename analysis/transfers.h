// SPDX-License-Identifier: Apache-2.0
// Sends and receives of process groups: by group, sender and receiver what each took. Pure.
#ifndef SYNCLINE_ANALYSIS_TRANSFERS_H_
#define SYNCLINE_ANALYSIS_TRANSFERS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/levels.h"
#include "common/time.h"
#include "timeline/transfers.h"

namespace syncline::analysis {

// All tags of one sender and receiver in one group. Medians are of single transfers, so that the
// bound is that transfer's own.
struct TransferRow {
  uint32_t channel = 0;    // the first of them: index into TransferReport::found.channels
  uint32_t send_node = 0;  // indices into Report::nodes
  uint32_t receive_node = 0;
  uint64_t tags = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;  // of one, the median
  // From when the receiver called for it until it had waited for it, on the receiver's own clock.
  std::optional<int64_t> waiting_ns;
  // From the begin of the send until the receiver had waited for it.
  std::optional<LevelledDuration> flight;
};

struct TransferReport {
  std::vector<TransferRow> rows;  // by group, source, destination
  timeline::Transfers found;
  uint64_t across_nodes = 0;           // of those found
  uint64_t backwards_here = 0;         // received before they were sent, as the timeline draws them
  uint64_t contradictions = 0;         // also at the ends of the intervals: the model is wrong
  uint64_t likely_contradictions = 0;  // more, by what is called likely: the assumption is wrong
};

TransferReport SummariseTransfers(const timeline::Transfers& found, const Models& models);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_TRANSFERS_H_
