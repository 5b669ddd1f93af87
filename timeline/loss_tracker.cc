// SPDX-License-Identifier: Apache-2.0
#include "timeline/loss_tracker.h"

#include <algorithm>

namespace syncline::timeline {

void StreamLossTracker::Suspect(ThreadIndex thread, size_t loss) {
  size_t& told = At(thread).told;
  if (loss < told) return;
  told = loss + 1;
  on_suspect_(losses_[loss], thread);
}

void StreamLossTracker::Update(std::span<const Loss> losses) {
  while (losses_.size() < losses.size()) {
    const size_t index = losses_.size();
    losses_.push_back(losses[index]);
    if (last_ns_.has_value()) Suspect(last_thread_, index);
    // In the order of thread numbers: a hash map's order is not reproducible.
    std::vector<ThreadIndex> seen;
    for (const auto& [number, thread] : threads_) {
      if (thread.last_ns.has_value() && *thread.last_ns >= losses[index].begin_ns) {
        seen.push_back(number);
      }
    }
    std::sort(seen.begin(), seen.end());
    for (const ThreadIndex thread : seen) Suspect(thread, index);
  }
}

void StreamLossTracker::Left(ThreadIndex thread, int64_t previous_ns, int64_t time_ns) {
  if (losses_.empty()) return;
  Thread& seen = At(thread);
  for (size_t i = seen.told; i < losses_.size() && losses_[i].begin_ns <= time_ns; ++i) {
    const bool unknown = losses_[i].begin_ns == 0 && losses_[i].end_ns == 0;
    if (unknown || losses_[i].end_ns >= previous_ns) {
      Suspect(thread, i);
    } else {
      seen.told = i + 1;  // it was heard of since: not hit
    }
  }
}

void StreamLossTracker::Seen(ThreadIndex thread, std::optional<int64_t> previous_ns,
                             int64_t time_ns) {
  // Of a new thread nothing is open that could be wrong; the first after a loss is told of it.
  Left(thread, previous_ns.value_or(last_ns_.value_or(time_ns)), time_ns);
  At(thread).last_ns = time_ns;
  last_thread_ = thread;
  last_ns_ = time_ns;
}

}  // namespace syncline::timeline
