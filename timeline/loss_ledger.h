// SPDX-License-Identifier: Apache-2.0
// What was lost of one node: summed by source and reason for its result, and drawn as holes.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_LOSS_LEDGER_H_
#define SYNCLINE_TIMELINE_LOSS_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/loss.h"
#include "timeline/node_context.h"
#include "timeline/node_input.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class LossLedger {
 public:
  // `seen`: where events of the node were, so far.
  LossLedger(const NodeContext& context, const TrackTable& tracks,
             const std::optional<ClockInterval>& seen)
      : context_(context), tracks_(tracks), seen_(seen) {}

  // A stream lies here, as its packet headers tell.
  void AddStream(const ClockInterval& extent);
  // Of all streams.
  const std::optional<ClockInterval>& extent() const { return extent_; }

  // Its ends where what is known of the node has them: readers may leave them open.
  ClockInterval BoundsOf(const Loss& loss) const;
  // The same loss with these ends, and its texts for people.
  Loss Bounded(Loss loss) const;

  void Add(const Loss& loss, bool draw_on_node);
  // The loss, which has its ends.
  void PushHole(TrackId track, const Loss& loss) const;

  // How many events the tracer owns up to.
  uint64_t declared() const { return declared_; }
  // False: a whole packet or file is missing, and explains any number.
  bool counts_are_known() const { return counts_are_known_; }
  std::vector<LossTotal> TakeTotals();

 private:
  const NodeContext& context_;
  const TrackTable& tracks_;
  const std::optional<ClockInterval>& seen_;
  std::optional<ClockInterval> extent_;
  std::map<std::pair<std::string, LossReason>, LossTotal> totals_;
  uint64_t declared_ = 0;
  bool counts_are_known_ = true;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_LOSS_LEDGER_H_
