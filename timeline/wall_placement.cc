// SPDX-License-Identifier: Apache-2.0
#include "timeline/wall_placement.h"

#include <cstdlib>

namespace syncline::timeline {
namespace {

// Readings of a busy host bracket to within some 10 us. Where the interval is wider than this, a
// step of the clock is what widens it, not the readings.
constexpr int64_t kUndecidedNs = 1'000'000;
constexpr int64_t kPieceNs = 10'000'000;
constexpr int kRoundsMax = 4;
constexpr int64_t kWallMaxNs = int64_t{1} << 62;  // no date; from a damaged file
// Of a piece, wall clock against trace clock: ten times what the kernel may slew one against the
// other in it, which is nothing (both are slewed alike).
constexpr int64_t kBendMaxNs = 2'000;

}  // namespace

WallPlacement::WallPlacement(const clocksync::ClockModel* model, Placement* placement,
                             std::optional<int64_t> wall_offset_ns)
    : model_(model), placement_(placement), wall_offset_ns_(wall_offset_ns) {
  clock_ = placement->clock();
  clock_.kind = ClockKind::kRealtime;
  if (model_ != nullptr && !model_->Knows(clock_)) model_ = nullptr;
}

std::optional<int64_t> WallPlacement::TraceClockNs(int64_t realtime_ns) const {
  const NodeTime wall{clock_, realtime_ns};
  NodeTime trace = model_->Unlocate(placement_->clock(), model_->Locate(wall).est);
  // Locate() interpolates over a step; Difference() knows the stretches. It counts in RAW, whose
  // rate is a little different: what is left after one round is small, after two nothing.
  for (int round = 0; round < kRoundsMax; ++round) {
    const DurationEstimate apart = model_->Difference(trace, wall);
    if (!apart.bounded() || apart.hi_ns - apart.lo_ns > kUndecidedNs) return std::nullopt;
    if (apart.est_ns == 0) break;
    trace.ns += apart.est_ns;
  }
  return trace.ns;
}

void WallPlacement::FindPiece(int64_t realtime_ns) {
  Piece piece;
  piece.begin_ns = realtime_ns - realtime_ns % kPieceNs;
  piece.end_ns = piece.begin_ns + kPieceNs;
  const std::optional<int64_t> begin = TraceClockNs(piece.begin_ns);
  const std::optional<int64_t> end = TraceClockNs(piece.end_ns);
  if (begin.has_value() && end.has_value()) {
    piece.trace_begin_ns = *begin;
    piece.trace_length_ns = *end - *begin;
    if (std::abs(piece.trace_length_ns - kPieceNs) <= kBendMaxNs) {
      piece_ = piece;
      return;
    }
  }
  bent_ = piece;
}

std::optional<TimelineTime> WallPlacement::At(int64_t realtime_ns) {
  if (realtime_ns < 0 || realtime_ns > kWallMaxNs) return std::nullopt;
  if (model_ == nullptr) {
    if (!wall_offset_ns_.has_value()) return std::nullopt;
    return placement_->At(realtime_ns - *wall_offset_ns_);
  }
  const auto inside = [&](const Piece& piece) {
    return realtime_ns >= piece.begin_ns && realtime_ns < piece.end_ns;
  };
  if (!inside(piece_) && !inside(bent_)) FindPiece(realtime_ns);
  if (inside(piece_)) {
    const int64_t into_ns = realtime_ns - piece_.begin_ns;  // less than 2^24: no overflow below
    return placement_->At(piece_.trace_begin_ns + into_ns * piece_.trace_length_ns / kPieceNs);
  }
  const std::optional<int64_t> trace_ns = TraceClockNs(realtime_ns);
  if (!trace_ns.has_value()) return std::nullopt;
  return placement_->At(*trace_ns);
}

std::optional<int64_t> WallPlacement::BoundNs(int64_t realtime_ns) const {
  if (model_ == nullptr) return std::nullopt;
  const TimelineEstimate where = model_->Locate({clock_, realtime_ns});
  if (!where.bounded()) return std::nullopt;
  const std::optional<int64_t> trace_ns = TraceClockNs(realtime_ns);
  // The placement may believe no bound of the model.
  if (trace_ns.has_value() && !placement_->BoundNs(*trace_ns).has_value()) return std::nullopt;
  return where.bound_ns();
}

// The kernel slews both clocks alike.
std::optional<bool> WallPlacement::WasSetBetween(int64_t begin_ns, int64_t end_ns) const {
  constexpr int64_t kReadingsNs = 100'000;  // more than readings are wrong by
  if (model_ == nullptr) return std::nullopt;
  const std::optional<int64_t> begin = TraceClockNs(begin_ns);
  const std::optional<int64_t> end = TraceClockNs(end_ns);
  if (!begin.has_value() || !end.has_value()) return std::nullopt;
  return std::abs((*end - *begin) - (end_ns - begin_ns)) >= kReadingsNs;
}

}  // namespace syncline::timeline
