// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/transmit_tracker.h"

#include <algorithm>
#include <limits>

namespace syncline::probe {

void TransmitTracker::Sent(uint64_t id, const EdgeKey& edge, uint64_t sequence, int64_t now_raw_ns,
                           bool hardware) {
  awaited_.push_back({.id = id,
                      .edge = edge,
                      .sequence = sequence,
                      .deadline_raw_ns = now_raw_ns + kTransmitStampWaitNs,
                      .hardware = hardware});
}

std::optional<TransmitTracker::Awaited> TransmitTracker::Stamped(uint64_t id, Kind kind) {
  const auto found =
      std::lower_bound(awaited_.begin(), awaited_.end(), id,
                       [](const Awaited& awaited, uint64_t wanted) { return awaited.id < wanted; });
  if (found == awaited_.end() || found->id != id) return std::nullopt;
  bool& awaited = kind == Kind::kKernel ? found->kernel : found->hardware;
  if (!awaited) return std::nullopt;
  awaited = false;
  const Awaited result = *found;
  DropStamped();
  return result;
}

std::optional<TransmitTracker::Awaited> TransmitTracker::Expired(int64_t now_raw_ns) {
  DropStamped();
  if (awaited_.empty() || awaited_.front().deadline_raw_ns > now_raw_ns) return std::nullopt;
  const Awaited result = awaited_.front();
  awaited_.pop_front();
  return result;
}

int64_t TransmitTracker::NextDeadlineRawNs() const {
  return awaited_.empty() ? std::numeric_limits<int64_t>::max() : awaited_.front().deadline_raw_ns;
}

void TransmitTracker::DropStamped() {
  while (!awaited_.empty() && !awaited_.front().kernel && !awaited_.front().hardware) {
    awaited_.pop_front();
  }
}

}  // namespace syncline::probe
