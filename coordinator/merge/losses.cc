// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/losses.h"

namespace syncline::merge {

Losses LossesOf(const OpenedInputs& inputs, const timeline::BuiltTimeline& built) {
  Losses losses{.incomplete = inputs.incomplete};
  for (const timeline::NodeResult& node : built.nodes) {
    for (const timeline::LossTotal& loss : node.losses) {
      losses.incomplete = true;
      // Of packets it is not known how many events they had.
      const bool counted = loss.count.has_value() && loss.reason != LossReason::kLostPackets;
      if (!counted) losses.lost_events.reset();
      if (losses.lost_events.has_value()) *losses.lost_events += *loss.count;
    }
  }
  return losses;
}

}  // namespace syncline::merge
