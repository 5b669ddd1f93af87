// SPDX-License-Identifier: Apache-2.0
// What of an edge's samples may be forgotten when a recording is long.
#ifndef SYNCLINE_CLOCKSYNC_THINNING_H_
#define SYNCLINE_CLOCKSYNC_THINNING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "clocksync/corridor.h"
#include "clocksync/samples.h"

namespace syncline::clocksync {

// Samples are judged in cells of so much time, by the local clock: the same cells whenever and in
// whatever pieces an edge is thinned.
inline constexpr int64_t kThinningCellNs = 8'000'000'000;

// The cell that a sample is in.
int64_t ThinningCell(const ProbeSample& sample);

// Less of these samples of one edge, in their order. Kept are, of each cell, the corners of the two
// convex hulls (hull.h): what may be concluded from the rest follows from them, whatever instant is
// asked of, unless another edge tells of a step in the cell. Also the fastest exchange of each
// second, so that a gap is still seen as one; and all of a cell in which an assumption breaks, so
// that the break stays as narrow. A break that shows only together with samples of other cells is
// found all the same, up to a cell wider.
std::vector<ProbeSample> Thinned(std::span<const ProbeSample> samples,
                                 const CorridorOptions& options = {});

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_THINNING_H_
