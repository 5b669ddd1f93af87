// SPDX-License-Identifier: Apache-2.0
// Refuses a sequence number that was seen before, or that is too old to know.
#ifndef SYNCLINE_AGENT_PROBE_UDP_REPLAY_WINDOW_H_
#define SYNCLINE_AGENT_PROBE_UDP_REPLAY_WINDOW_H_

#include <cstdint>

namespace syncline::probe {

class ReplayWindow {
 public:
  // True the first time, for numbers at most 63 behind the highest accepted. Only for packets whose
  // MAC was checked: a forged number would move the window.
  bool Accept(uint64_t sequence) {
    if (!any_ || sequence > highest_) {
      const uint64_t ahead = any_ ? sequence - highest_ : kBits;
      seen_ = ahead >= kBits ? 0 : seen_ << ahead;
      seen_ |= 1;
      highest_ = sequence;
      any_ = true;
      return true;
    }
    const uint64_t behind = highest_ - sequence;
    if (behind >= kBits || ((seen_ >> behind) & 1) != 0) return false;
    seen_ |= uint64_t{1} << behind;
    return true;
  }

 private:
  static constexpr uint64_t kBits = 64;
  bool any_ = false;
  uint64_t highest_ = 0;
  uint64_t seen_ = 0;  // bit k: highest_ - k was accepted
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_REPLAY_WINDOW_H_
