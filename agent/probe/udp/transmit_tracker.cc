#include "agent/probe/udp/transmit_tracker.h"

#include <algorithm>
#include <limits>

namespace syncline::probe {

void TransmitTracker::Sent(uint64_t id, const EdgeKey& edge, uint64_t sequence,
                           int64_t now_raw_ns) {
  awaited_.push_back({id, edge, sequence, now_raw_ns + kTransmitStampWaitNs, false});
}

std::optional<TransmitTracker::Awaited> TransmitTracker::Stamped(uint64_t id) {
  const auto found =
      std::lower_bound(awaited_.begin(), awaited_.end(), id,
                       [](const Awaited& awaited, uint64_t wanted) { return awaited.id < wanted; });
  if (found == awaited_.end() || found->id != id || found->stamped) return std::nullopt;
  found->stamped = true;
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
  while (!awaited_.empty() && awaited_.front().stamped) awaited_.pop_front();
}

}  // namespace syncline::probe
