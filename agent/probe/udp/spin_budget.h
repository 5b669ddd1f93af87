// SPDX-License-Identifier: Apache-2.0
// How much of a processor may be spent on waiting without sleeping: a fifth, in bursts of at most
// 100 ms.
#ifndef SYNCLINE_AGENT_PROBE_UDP_SPIN_BUDGET_H_
#define SYNCLINE_AGENT_PROBE_UDP_SPIN_BUDGET_H_

#include <algorithm>
#include <cstdint>

namespace syncline::probe {

class SpinBudget {
 public:
  // Whether so much may be spent from now on; takes it if so.
  bool Take(int64_t duration_ns, int64_t now_raw_ns) {
    saved_ns_ =
        std::min(kSavedNsMax, saved_ns_ + std::max<int64_t>(now_raw_ns - last_, 0) / kShare);
    last_ = now_raw_ns;
    if (duration_ns > saved_ns_) return false;
    saved_ns_ -= duration_ns;
    return true;
  }

 private:
  static constexpr int64_t kShare = 5;
  static constexpr int64_t kSavedNsMax = 100'000'000;
  int64_t saved_ns_ = kSavedNsMax;
  int64_t last_ = 0;
};

}  // namespace syncline::probe

#endif  // SYNCLINE_AGENT_PROBE_UDP_SPIN_BUDGET_H_
