#include "timeline/loss_tracker.h"

#include <algorithm>
#include <utility>

namespace syncline::timeline {

void StreamLossTracker::Suspect(Pending* pending, ThreadIndex thread) {
  if (std::find(pending->suspects.begin(), pending->suspects.end(), thread) !=
      pending->suspects.end()) {
    return;
  }
  pending->suspects.push_back(thread);
  on_suspect_(pending->loss, thread);
}

void StreamLossTracker::Update(std::span<const Loss> losses) {
  for (; known_ < losses.size(); ++known_) {
    Pending pending{losses[known_], {}};
    if (any_seen_) Suspect(&pending, last_thread_);
    // In the order of thread numbers: a hash map's order is not reproducible.
    std::vector<ThreadIndex> seen;
    for (const auto& [thread, time_ns] : last_seen_ns_) {
      if (time_ns >= pending.loss.begin_ns) seen.push_back(thread);
    }
    std::sort(seen.begin(), seen.end());
    for (const ThreadIndex thread : seen) Suspect(&pending, thread);
    pending_.push_back(std::move(pending));
  }
}

void StreamLossTracker::Seen(ThreadIndex thread, int64_t time_ns) {
  last_seen_ns_[thread] = time_ns;
  last_thread_ = thread;
  any_seen_ = true;
  if (pending_.empty()) return;
  std::erase_if(pending_, [&](Pending& pending) {
    if (time_ns < pending.loss.begin_ns) return false;
    Suspect(&pending, thread);
    return time_ns > pending.loss.end_ns;
  });
}

}  // namespace syncline::timeline
