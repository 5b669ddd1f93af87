// SPDX-License-Identifier: Apache-2.0
// What `syncline why` says of steal time: a hypervisor ran something else while CPUs had something
// to do. Plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_STEAL_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_STEAL_MODEL_H_

#include <cstdint>

namespace syncline::analysis::why {

// Of the CPUs that a rank's process may use, all together.
struct StealTime {
  double share = 0;  // of the time in which they had something to do, 0 to 1
  // What the rank's driver lost a step, if as much was taken of what it had to do as of all.
  int64_t step_ns = 0;
};

// Of a late rank that loses more than others.
struct MoreStealTime {
  StealTime own;
  double others_share = 0;  // the other ranks' median
  // A step, as StealTime::step_ns: than it would lose of the same work with the others' share.
  int64_t more_ns = 0;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STEAL_MODEL_H_
