// SPDX-License-Identifier: Apache-2.0
// When somebody last wanted something of the agent: an agent that was started for one user's sake
// ends when nobody does any more.
#ifndef SYNCLINE_AGENT_SERVICE_ACTIVITY_H_
#define SYNCLINE_AGENT_SERVICE_ACTIVITY_H_

#include <atomic>
#include <cstdint>

#include "agent/probe/clock.h"

namespace syncline::agent {

// Thread-safe.
class Activity {
 public:
  // The clock is not owned. What was before now does not count as idleness.
  explicit Activity(Clock* clock) : clock_(clock), last_raw_ns_(clock->RawNs()) {}

  // How long there has been no call; 0 while one lasts.
  int64_t IdleNs() const {
    return calls_ > 0 ? 0 : clock_->RawNs() - last_raw_ns_.load(std::memory_order_relaxed);
  }

  // A call, as long as it lasts.
  class Call {
   public:
    explicit Call(Activity* activity) : activity_(activity) { ++activity_->calls_; }
    ~Call() {
      activity_->last_raw_ns_ = activity_->clock_->RawNs();
      --activity_->calls_;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Activity* const activity_;
  };

 private:
  Clock* const clock_;
  std::atomic<int> calls_{0};
  std::atomic<int64_t> last_raw_ns_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SERVICE_ACTIVITY_H_
