// SPDX-License-Identifier: Apache-2.0
// A clock for tests.
#ifndef SYNCLINE_COORDINATOR_HOST_FAKE_CLOCK_H_
#define SYNCLINE_COORDINATOR_HOST_FAKE_CLOCK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "coordinator/host/clock.h"

namespace syncline::host {

// Time goes on only by the waiting of the thread that made the clock: what the others wait for
// happens in no time, so that a test's time does not depend on how its threads are scheduled.
// Thread-safe.
class FakeClock : public Clock {
 public:
  int64_t RawNs() const override { return now_ns_; }
  int64_t UnixNs() const override { return 1'795'000'000'000'000'000 + now_ns_; }
  void Wait(int64_t ns, const std::stop_token&) override {
    if (std::this_thread::get_id() != owner_) return;
    now_ns_ += ns;
    if (on_wait) on_wait();
  }
  std::function<void()> on_wait;

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

}  // namespace syncline::host

#endif  // SYNCLINE_COORDINATOR_HOST_FAKE_CLOCK_H_
