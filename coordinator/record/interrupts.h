// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, counted: the first press ends what is going on in good order, the second leaves at once.
#ifndef SYNCLINE_COORDINATOR_RECORD_INTERRUPTS_H_
#define SYNCLINE_COORDINATOR_RECORD_INTERRUPTS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <stop_token>

namespace syncline::record {

// Thread-safe; not for signal handlers (main waits for signals in a thread).
class Interrupts {
 public:
  void Press() {
    const size_t press = presses_.fetch_add(1);
    if (press < sources_.size()) sources_[press].request_stop();
  }
  // Stops, or has stopped, with the first press of all.
  std::stop_token First() const { return sources_[0].get_token(); }
  // Stops, or has stopped, with the second press of all.
  std::stop_token Second() const { return sources_[1].get_token(); }
  // For the transfer: leaves the data on the nodes with the second press of all, or with the first
  // when the recording ended without one.
  std::stop_token Leave() const {
    return sources_[sources_[0].stop_requested() ? 1 : 0].get_token();
  }
  // Stops at the next press from now on.
  std::stop_token Next() const {
    return sources_[std::min<size_t>(presses_.load(), sources_.size() - 1)].get_token();
  }

 private:
  std::atomic<size_t> presses_{0};
  std::array<std::stop_source, 8> sources_;
};

}  // namespace syncline::record

#endif  // SYNCLINE_COORDINATOR_RECORD_INTERRUPTS_H_
