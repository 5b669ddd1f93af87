// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/parts.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace syncline::analysis::why {
namespace {

// Walks along intervals in the order of their begins, which may overlap.
class Walker {
 public:
  explicit Walker(std::span<const OwnInterval> intervals) : intervals_(intervals) {}

  // Whether `at_ns` lies in one; and the next instant, behind it, at which that may change.
  bool At(int64_t at_ns, int64_t* change_ns) {
    while (next_ < intervals_.size() && intervals_[next_].begin_ns <= at_ns) {
      end_ns_ = std::max(end_ns_, intervals_[next_++].end_ns);
    }
    const bool inside = at_ns < end_ns_;
    if (inside) *change_ns = std::min(*change_ns, end_ns_);
    if (!inside && next_ < intervals_.size()) {
      *change_ns = std::min(*change_ns, intervals_[next_].begin_ns);
    }
    return inside;
  }

 private:
  std::span<const OwnInterval> intervals_;
  size_t next_ = 0;
  int64_t end_ns_ = INT64_MIN;
};

Part PartOf(const Segment& segment) {
  if (segment.in_loader) return Part::kInput;
  return segment.works ? Part::kCompute : Part::kHostCode;
}

// The judged step that an instant lies in, for instants in order.
class StepFinder {
 public:
  explicit StepFinder(std::span<const OwnInterval> steps) : steps_(steps) {}

  int32_t At(int64_t at_ns, int64_t* change_ns) {
    while (next_ < steps_.size() && steps_[next_].end_ns <= at_ns) ++next_;
    if (next_ == steps_.size()) return -1;
    if (at_ns < steps_[next_].begin_ns) {
      *change_ns = std::min(*change_ns, steps_[next_].begin_ns);
      return -1;
    }
    *change_ns = std::min(*change_ns, steps_[next_].end_ns);
    return static_cast<int32_t>(next_);
  }

 private:
  std::span<const OwnInterval> steps_;
  size_t next_ = 0;
};

// Numbers the kinds of pieces, from 0: by part, leaf, and the how manyth of these in its step it
// is.
class Kinds {
 public:
  // For pieces in order.
  uint32_t Of(const Piece& piece) {
    const uint64_t key = uint64_t{piece.leaf} << 8 | static_cast<uint8_t>(piece.part);
    Row& row = rows_[key];
    if (row.step != piece.step) row.seen = 0;
    row.step = piece.step;
    if (row.seen == row.kinds.size()) row.kinds.push_back(count_++);
    return row.kinds[row.seen++];
  }
  uint32_t count() const { return count_; }

 private:
  struct Row {
    int32_t step = -1;
    size_t seen = 0;              // in that step
    std::vector<uint32_t> kinds;  // by place in the step's order
  };
  std::unordered_map<uint64_t, Row> rows_;
  uint32_t count_ = 0;
};

void SetUsual(std::vector<Piece>* pieces) {
  Kinds kinds;
  std::vector<uint32_t> kind_of(pieces->size());
  for (size_t i = 0; i < pieces->size(); ++i) {
    Piece& piece = (*pieces)[i];
    piece.usual_ns = piece.unusual_ns = piece.length_ns();
    if (piece.step >= 0) kind_of[i] = kinds.Of(piece);
  }
  std::vector<std::vector<int64_t>> lengths(kinds.count());
  for (size_t i = 0; i < pieces->size(); ++i) {
    const Piece& piece = (*pieces)[i];
    if (piece.step >= 0) lengths[kind_of[i]].push_back(piece.length_ns());
  }
  for (std::vector<int64_t>& all : lengths) {
    const auto quarter = all.begin() + static_cast<ptrdiff_t>((all.size() - 1) / 4);
    const auto three_quarters = all.begin() + static_cast<ptrdiff_t>((all.size() - 1) * 3 / 4);
    std::nth_element(all.begin(), three_quarters, all.end());
    std::nth_element(all.begin(), quarter, three_quarters);
    all = {*quarter, *three_quarters + (*three_quarters - *quarter) * 3 / 2};
  }
  for (size_t i = 0; i < pieces->size(); ++i) {
    Piece& piece = (*pieces)[i];
    if (piece.step < 0) continue;
    piece.usual_ns = lengths[kind_of[i]][0];
    piece.unusual_ns = lengths[kind_of[i]][1];
  }
}

}  // namespace

std::vector<Piece> PiecesOf(const PartsInput& input, std::vector<Piece> buffer) {
  Walker holes(input.holes);
  Walker collections(input.collections);
  Walker waits(input.waits);
  StepFinder steps(input.steps);
  std::vector<Piece> pieces = std::move(buffer);
  pieces.clear();
  pieces.reserve(input.segments.size() + input.segments.size() / 8);
  for (const Segment& segment : input.segments) {
    for (int64_t at_ns = segment.begin_ns; at_ns < segment.end_ns;) {
      Piece piece{at_ns, segment.end_ns};
      piece.leaf = segment.leaf;
      const bool hole = holes.At(at_ns, &piece.end_ns);
      const bool collecting = collections.At(at_ns, &piece.end_ns);
      const bool waiting = waits.At(at_ns, &piece.end_ns);
      piece.step = steps.At(at_ns, &piece.end_ns);
      piece.part = hole         ? Part::kNotCovered
                   : collecting ? Part::kGarbageCollection
                   : waiting    ? Part::kWaitAndTransfer
                                : PartOf(segment);
      at_ns = piece.end_ns;
      pieces.push_back(piece);
    }
  }
  SetUsual(&pieces);
  return pieces;
}

void Cut(Piece* piece, int64_t ns, Part into, std::vector<PartTable>* tables) {
  piece->taken_ns += ns;
  if (into == Part::kThrottled) piece->throttled_ns += ns;
  if (into == Part::kBlocked) piece->blocked_ns += ns;
  if (piece->step < 0) return;
  PartTable& table = (*tables)[static_cast<size_t>(piece->step)];
  table[static_cast<size_t>(piece->part)] -= ns;
  table[static_cast<size_t>(into)] += ns;
}

std::vector<PartTable> TablesOf(std::span<const Piece> pieces, size_t steps) {
  std::vector<PartTable> tables(steps, PartTable{});
  for (const Piece& piece : pieces) {
    if (piece.step < 0) continue;
    tables[static_cast<size_t>(piece.step)][static_cast<size_t>(piece.part)] += piece.length_ns();
  }
  return tables;
}

}  // namespace syncline::analysis::why
