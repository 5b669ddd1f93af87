// SPDX-License-Identifier: Apache-2.0
// Which of many constraints matter.
#ifndef SYNCLINE_CLOCKSYNC_HULL_H_
#define SYNCLINE_CLOCKSYNC_HULL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace syncline::clocksync {

// An upper limit of theta at x; a lower one is an upper one of -theta.
struct Limit {
  int64_t x = 0;
  int64_t theta_ns = 0;
};

// The indices of the limits, which are sorted by x, that the others do not imply. Under the
// assumptions of corridor.h the bound that l and r give at p between them is their chord plus
// w (p - l)(r - p) / 2: so p matters only if it is a corner of the lower convex hull of
// theta + w x^2 / 2, whatever instant is asked of. In doubles: to drop one too many loosens by less
// than a nanosecond, and is sound.
std::vector<size_t> CornersOfHull(std::span<const Limit> limits, int64_t wander_ppb_per_s);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_HULL_H_
