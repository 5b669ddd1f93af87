// SPDX-License-Identifier: Apache-2.0
// The integer arithmetic of this folder: 128 bits in between, and ends of intervals that stay
// "unknown" once they are. Internal.
#ifndef SYNCLINE_CLOCKSYNC_ARITHMETIC_H_
#define SYNCLINE_CLOCKSYNC_ARITHMETIC_H_

#include <algorithm>
#include <cstdint>

#include "common/time.h"

namespace syncline::clocksync {

using Int128 = __int128;

constexpr int64_t kBillion = 1'000'000'000;

inline bool IsUnknown(int64_t end_ns) { return end_ns == kUnknownLo || end_ns == kUnknownHi; }

// Into [kUnknownLo, kUnknownHi].
inline int64_t Clip(Int128 value) {
  return static_cast<int64_t>(std::clamp<Int128>(value, kUnknownLo, kUnknownHi));
}

// a / b rounded up; b > 0.
inline Int128 CeilDiv(Int128 a, Int128 b) { return a / b + (a % b > 0 ? 1 : 0); }

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_ARITHMETIC_H_
