// SPDX-License-Identifier: Apache-2.0
// A stretch of a map that is a straight line, for those who map very many times.
#ifndef SYNCLINE_CLOCKSYNC_CLOCK_LINE_H_
#define SYNCLINE_CLOCKSYNC_CLOCK_LINE_H_

#include <cstdint>

namespace syncline::clocksync {

// Valid from `first` up to and with `last`, which are so near to x that nothing overflows.
struct ClockLine {
  static constexpr int kSlopeBits = 48;  // of the slope's fraction
  int64_t first = 0;
  int64_t last = 0;
  int64_t x = 0;  // a point of it
  int64_t y = 0;
  int64_t slope = int64_t{1} << kSlopeBits;

  int64_t At(int64_t at) const {
    __extension__ using Wide = __int128;
    return y + static_cast<int64_t>((static_cast<Wide>(at - x) * slope) >> kSlopeBits);
  }
};

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_CLOCK_LINE_H_
