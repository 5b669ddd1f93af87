// SPDX-License-Identifier: Apache-2.0
// Where a driver's time goes: each ns belongs to the first part that applies, and then what the
// kernel says was taken away is cut out. Integer ns; parts of a step add up to the step. Pure.
//
//   not covered > garbage collection > wait and transfer > input > compute > host code
#ifndef SYNCLINE_ANALYSIS_WHY_PARTS_H_
#define SYNCLINE_ANALYSIS_WHY_PARTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/why/model.h"
#include "analysis/why/segments.h"

namespace syncline::analysis::why {

struct Piece {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  Part part = Part::kHostCode;
  NameId leaf = kNoTask;
  int32_t step = -1;         // index into the judged steps; -1: in none of them
  int64_t usual_ns = 0;      // how long a piece of its kind lasts when nothing disturbs it
  int64_t unusual_ns = 0;    // one that lasts longer than this stands out from those of its kind
  int64_t taken_ns = 0;      // cut out of it so far (taken_away.h, blocked.h)
  int64_t throttled_ns = 0;  // of that; what neither of these is waited for a CPU
  int64_t blocked_ns = 0;    // of that

  int64_t length_ns() const { return end_ns - begin_ns; }
  bool own_work() const { return part != Part::kWaitAndTransfer && part != Part::kNotCovered; }
};

struct PartsInput {
  std::span<const Segment> segments;
  std::span<const OwnInterval> waits;        // in order, apart from each other
  std::span<const OwnInterval> holes;        // by begin
  std::span<const OwnInterval> collections;  // of garbage, by begin
  std::span<const OwnInterval> steps;        // judged; in order, apart from each other
};

// All of the segments' time in pieces; none crosses the end of a step. What a piece usually lasts
// is the 25th percentile, over the steps, of those of its part, leaf and place in the step's order;
// one stands out above the 75th by one and a half times the distance of the two (Tukey's fence).
// `buffer`: memory to use, what is in it goes.
std::vector<Piece> PiecesOf(const PartsInput& input, std::vector<Piece> buffer = {});

// Moves `ns` of the piece, which has so much left, to another part, also in its step's table.
void Cut(Piece* piece, int64_t ns, Part into, std::vector<PartTable>* tables);

// Of each judged step, the time by part. `steps`: how many.
std::vector<PartTable> TablesOf(std::span<const Piece> pieces, size_t steps);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_PARTS_H_
