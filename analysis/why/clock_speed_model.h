// SPDX-License-Identifier: Apache-2.0
// What `syncline why` says of how fast processors were clocked. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_CLOCK_SPEED_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_CLOCK_SPEED_MODEL_H_

#include <cstddef>
#include <cstdint>

namespace syncline::analysis::why {

// Of the CPU that a rank's driver was on, whenever it was found running.
struct CpuClock {
  int64_t khz = 0;  // the median
  size_t readings = 0;
};

// Of a late rank whose CPU is clocked lower than the others'.
struct SlowerClock {
  CpuClock own;
  int64_t others_khz = 0;  // the other ranks' median
  // By how much longer its driver is on a CPU, a step, if that takes as many cycles as at the
  // others' clock; no more than it is longer there.
  int64_t more_ns = 0;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CLOCK_SPEED_MODEL_H_
