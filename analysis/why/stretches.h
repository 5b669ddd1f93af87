// SPDX-License-Identifier: Apache-2.0
// A driver's time by part between marks: what is kept of its pieces, of which there are as many as
// tasks, for who asks about a few instants only. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_STRETCHES_H_
#define SYNCLINE_ANALYSIS_WHY_STRETCHES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/why/parts.h"

namespace syncline::analysis::why {

// [begin, end) between two marks, within one judged step or outside of all; its parts add up to it.
struct Stretch {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int32_t step = -1;  // index into the judged steps; -1: in none of them
  PartTable parts{};
};

// In order and without gaps, as `pieces` are. What was taken from a piece that a mark divides is
// divided by length. `marks`: in any order.
std::vector<Stretch> StretchesOf(std::span<const Piece> pieces, std::vector<int64_t> marks);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STRETCHES_H_
