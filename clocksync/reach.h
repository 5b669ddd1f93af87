// SPDX-License-Identifier: Apache-2.0
// How far the truth may lie from where Locate() draws a time, for tables of millions of times.
//
// Asking Locate() for each of them takes longer than writing them, and reaches hardly change from
// one to the next. So a piece of the clock's time is asked for once, and all times in it have the
// largest reach there is in it: never less than Locate() says, and more by what the reach changes
// within a quarter of a millisecond, and by a few ns.
//
// Why the largest is known: the estimate and both ends are straight lines between the instants at
// which a map bends (ClockModel::BendsOf), so their distance is largest at an end of the piece or
// at a bend. What rounding to ns may change of that is added.
//
// Memory: some KiB per clock. Thread-safety: one thread.
#ifndef SYNCLINE_CLOCKSYNC_REACH_H_
#define SYNCLINE_CLOCKSYNC_REACH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "clocksync/clock_model.h"
#include "common/time.h"

namespace syncline::clocksync {

// The truth lies in [est - lo_ns, est + hi_ns].
struct Reach {
  int64_t lo_ns = 0;
  int64_t hi_ns = 0;
};

class ReachFinder {
 public:
  // `model` outlives this; nullptr: nothing is known.
  explicit ReachFinder(const ClockModel* model) : model_(model) {}

  // nullopt: unknown.
  std::optional<Reach> At(NodeTime time) {
    const size_t index = size_t{time.clock.node} * kKinds + static_cast<size_t>(time.clock.kind);
    if (index < clocks_.size() && clocks_[index] != nullptr && time.clock.device == 0) [[likely]] {
      const int64_t number = time.ns >> kPieceBits;
      const Piece& piece = (*clocks_[index])[static_cast<uint64_t>(number) % kPieces];
      if (piece.number == number && piece.made) [[likely]]
        return piece.reach;
    }
    return Find(time);
  }

 private:
  static constexpr size_t kKinds = 6;
  static constexpr int kPieceBits = 18;  // ns
  static constexpr size_t kPieces = 64;  // remembered, of a clock
  struct Piece {
    int64_t number = 0;
    bool made = false;
    std::optional<Reach> reach;
  };
  using Pieces = std::array<Piece, kPieces>;

  std::optional<Reach> Find(NodeTime time);
  // nullopt: Locate() must be asked for each time in it.
  std::optional<Piece> MakePiece(ClockId clock, int64_t number);

  const ClockModel* model_;
  std::vector<std::unique_ptr<Pieces>> clocks_;             // by node and kind
  std::vector<std::optional<std::vector<int64_t>>> bends_;  // beside clocks_
};

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_REACH_H_
