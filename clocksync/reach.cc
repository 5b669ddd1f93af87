// SPDX-License-Identifier: Apache-2.0
#include "clocksync/reach.h"

#include <algorithm>

namespace syncline::clocksync {
namespace {

// Locate() rounds each end outwards twice, and the estimate between: by so much may the reach of an
// instant exceed that of the straight line.
constexpr int64_t kRoundingNs = 4;

std::optional<Reach> ReachAt(const ClockModel& model, NodeTime time) {
  const TimelineEstimate where = model.Locate(time);
  if (!where.bounded()) return std::nullopt;
  return Reach{where.est.ns - where.lo.ns, where.hi.ns - where.est.ns};
}

}  // namespace

std::optional<ReachFinder::Piece> ReachFinder::MakePiece(ClockId clock, int64_t number) {
  const std::vector<int64_t>& bends =
      *bends_[size_t{clock.node} * kKinds + static_cast<size_t>(clock.kind)];
  const int64_t begin_ns = number * (int64_t{1} << kPieceBits);
  const int64_t last_ns = begin_ns + (int64_t{1} << kPieceBits) - 1;
  Piece piece{number, true, ReachAt(*model_, {clock, begin_ns})};
  bool alike = true;
  const auto widen = [&](int64_t ns) {
    const std::optional<Reach> reach = ReachAt(*model_, {clock, ns});
    alike &= reach.has_value() == piece.reach.has_value();
    if (!alike || !reach.has_value()) return;
    piece.reach->lo_ns = std::max(piece.reach->lo_ns, reach->lo_ns);
    piece.reach->hi_ns = std::max(piece.reach->hi_ns, reach->hi_ns);
  };
  widen(last_ns);
  // A bend lies between two readings: both sides of it count.
  for (auto bend = std::lower_bound(bends.begin(), bends.end(), begin_ns - 1);
       bend != bends.end() && *bend <= last_ns + 1; ++bend) {
    for (const int64_t ns : {*bend - 1, *bend, *bend + 1}) {
      widen(std::clamp(ns, begin_ns, last_ns));
    }
  }
  if (!alike) return std::nullopt;
  if (piece.reach.has_value()) {
    piece.reach->lo_ns += kRoundingNs;
    piece.reach->hi_ns += kRoundingNs;
  }
  return piece;
}

std::optional<Reach> ReachFinder::Find(NodeTime time) {
  constexpr int64_t kFarthestNs = int64_t{1} << 62;  // beyond it a piece's ends could overflow
  if (model_ == nullptr) return std::nullopt;
  const bool plain = time.clock.device == 0 && model_->Knows(time.clock) &&
                     time.ns > -kFarthestNs && time.ns < kFarthestNs;
  if (!plain) return ReachAt(*model_, time);
  const size_t index = size_t{time.clock.node} * kKinds + static_cast<size_t>(time.clock.kind);
  if (index >= clocks_.size()) {
    clocks_.resize(index + 1);
    bends_.resize(index + 1);
  }
  if (clocks_[index] == nullptr) {
    clocks_[index] = std::make_unique<Pieces>();
    bends_[index] = model_->BendsOf(time.clock);
  }
  if (!bends_[index].has_value()) return ReachAt(*model_, time);
  const int64_t number = time.ns >> kPieceBits;
  const std::optional<Piece> made = MakePiece(time.clock, number);
  if (!made.has_value()) return ReachAt(*model_, time);
  (*clocks_[index])[static_cast<uint64_t>(number) % kPieces] = *made;
  return made->reach;
}

}  // namespace syncline::clocksync
