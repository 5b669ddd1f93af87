// SPDX-License-Identifier: Apache-2.0
// How much of a driver's own work it was blocked in the kernel: in uninterruptible sleep
// (state D), mostly for storage: a file, a network file system, memory that was paged out. Pure.
//
// By the scheduler's trace of the driver, where it is whole: all of it, where it was. Else by the
// samples: how long the driver slept in its own work between two samples is known (what it neither
// ran nor was ready to). Of that as much was blocked as samples that find it asleep in such parts
// of a step find it blocked; it is taken from the parts in proportion to how often they find it so.
//
// Worked example: between two samples 50 ms pass; the driver waits for a collective for 20 of them,
// runs for 10, and so sleeps for 20 in its own work, all of it host code. Over the recording 90 of
// 120 samples that find it asleep in host code find it in state D: 15 of the 20 ms were blocked.
#ifndef SYNCLINE_ANALYSIS_WHY_BLOCKED_H_
#define SYNCLINE_ANALYSIS_WHY_BLOCKED_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/why/model.h"
#include "analysis/why/parts.h"
#include "analysis/why/samples.h"

namespace syncline::analysis::why {

struct BlockedInput {
  const RankInput* rank = nullptr;
  int32_t driver_tid = 0;
  const RankSamples* samples = nullptr;  // measured; Growth::judged is filled
  std::span<const OwnInterval> steps;    // judged
};

// Moves it from its part to kBlocked in `pieces` (in order, of which nothing was taken away yet)
// and `tables` (of the judged steps). nullopt: neither the trace nor the samples tell.
// Where fewer than ten samples find it blocked, nothing is moved.
std::optional<BlockedSleep> CutBlocked(const BlockedInput& input, std::vector<Piece>* pieces,
                                       std::vector<PartTable>* tables);

// Of the control groups that may limit the memory of the rank's process, the one that was full most
// often in its judged steps. nullopt: none was, or it is not known.
std::optional<FullMemory> FullMemoryOf(const RankInput& rank, std::span<const OwnInterval> steps);

// Moves it back, in `tables`.
void PutBackBlocked(std::span<const Piece> pieces, std::vector<PartTable>* tables);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_BLOCKED_H_
