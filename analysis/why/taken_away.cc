// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/taken_away.h"

#include <algorithm>
#include <utility>

namespace syncline::analysis::why {
namespace {

class Cutter {
 public:
  Cutter(std::vector<Piece>* pieces, std::vector<PartTable>* tables)
      : pieces_(*pieces), tables_(*tables) {}

  // Moves on to the pieces that a growth may be cut out of: they end behind `reach_ns` and begin
  // before the growth's end.
  void MoveTo(const OwnInterval& interval, int64_t reach_ns) {
    interval_ = interval;
    while (end_ < pieces_.size() && pieces_[end_].begin_ns < interval.end_ns) ++end_;
    first_ = end_;
    while (first_ > 0 && pieces_[first_ - 1].end_ns > reach_ns) --first_;
  }

  // Out of what the pieces of the interval last longer than usual, the largest excess first.
  // `helpers`: of compute alone; else only of pieces that stand out: how long the others last
  // varies by itself as well. Returns what is left of `ns`.
  int64_t CutExcess(int64_t ns, Part into, bool helpers) {
    std::vector<std::pair<int64_t, size_t>> excesses;
    for (size_t i = end_; ns > 0 && i > first_; --i) {
      const Piece& piece = pieces_[i - 1];
      if (piece.end_ns <= interval_.begin_ns) break;
      if (!piece.own_work()) continue;
      if (helpers ? piece.part != Part::kCompute : piece.length_ns() <= piece.unusual_ns) continue;
      const int64_t until_now_ns = std::min(piece.end_ns, interval_.end_ns) - piece.begin_ns;
      const int64_t excess_ns =
          std::min(piece.length_ns() - piece.usual_ns, until_now_ns) - piece.taken_ns;
      if (excess_ns > 0) excesses.emplace_back(excess_ns, i - 1);
    }
    // Mostly the first few of many are enough.
    std::make_heap(excesses.begin(), excesses.end());
    while (ns > 0 && !excesses.empty()) {
      std::pop_heap(excesses.begin(), excesses.end());
      const auto [excess_ns, index] = excesses.back();
      excesses.pop_back();
      ns -= Cut(index, std::min(ns, excess_ns), into);
    }
    return ns;
  }

  // Out of all own work of the interval, from each piece in proportion: what happens in every step
  // is usual, and no piece stands out. Returns what is left of `ns`.
  int64_t CutEvenly(int64_t ns, Part into) {
    std::vector<std::pair<size_t, int64_t>> rooms;
    int64_t all_ns = 0;
    for (size_t i = end_; ns > 0 && i > first_; --i) {
      const Piece& piece = pieces_[i - 1];
      if (piece.end_ns <= interval_.begin_ns) break;
      if (!piece.own_work()) continue;
      const int64_t inside_ns =
          std::min(piece.end_ns, interval_.end_ns) - std::max(piece.begin_ns, interval_.begin_ns);
      const int64_t room_ns = std::min(inside_ns, piece.length_ns() - piece.taken_ns);
      if (room_ns > 0) rooms.emplace_back(i - 1, room_ns);
      all_ns += std::max<int64_t>(0, room_ns);
    }
    const int64_t wanted_ns = std::min(ns, all_ns);
    int64_t seen_ns = 0;  // of `all_ns`
    int64_t cut_ns = 0;
    for (const auto& [index, room_ns] : rooms) {
      seen_ns += room_ns;
      // Rounded so that all of it is cut in the end. Both are below 2^40: a window lasts minutes.
      const auto until_now_ns =
          static_cast<int64_t>(static_cast<double>(wanted_ns) * static_cast<double>(seen_ns) /
                               static_cast<double>(all_ns));
      cut_ns += Cut(index, std::min(room_ns, until_now_ns - cut_ns), into);
    }
    return ns - cut_ns;
  }

  // Out of any own work, backwards from the interval's end. Returns what is left of `ns`.
  int64_t CutBackwards(int64_t ns, Part into) {
    for (size_t i = end_; ns > 0 && i > first_; --i) {
      const Piece& piece = pieces_[i - 1];
      if (!piece.own_work()) continue;
      const int64_t room_ns =
          std::min(piece.end_ns, interval_.end_ns) - piece.begin_ns - piece.taken_ns;
      if (room_ns > 0) ns -= Cut(i - 1, std::min(ns, room_ns), into);
    }
    return ns;
  }

 private:
  int64_t Cut(size_t index, int64_t ns, Part into) {
    why::Cut(&pieces_[index], ns, into, &tables_);
    return ns;
  }

  std::vector<Piece>& pieces_;
  std::vector<PartTable>& tables_;
  OwnInterval interval_;
  size_t first_ = 0;
  size_t end_ = 0;
};

}  // namespace

Unplaced TakeAway(std::span<const Growth> growths, std::vector<Piece>* pieces,
                  std::vector<PartTable>* tables) {
  Unplaced unplaced;
  Cutter cutter(pieces, tables);
  for (const Growth& growth : growths) {
    // It is booked when the thread runs again: it may have begun so long before the interval.
    cutter.MoveTo(growth.interval, growth.interval.begin_ns - growth.run_queue_ns);
    const std::pair<int64_t, Part> kinds[] = {
        {growth.throttled_ns, Part::kThrottled},
        {growth.run_queue_ns - growth.throttled_ns, Part::kWaitingForCpu}};
    for (const auto& [ns, part] : kinds) {
      int64_t left_ns = cutter.CutExcess(ns, part, /*helpers=*/false);
      left_ns = cutter.CutEvenly(left_ns, part);
      left_ns = cutter.CutBackwards(left_ns, part);
      unplaced.ns += left_ns;
      unplaced.judged_ns += static_cast<int64_t>(static_cast<double>(left_ns) * growth.judged);
    }
    // The driver is not in the run queue while it waits for a thread that is: only what makes
    // compute longer than usual can be that.
    cutter.CutExcess(growth.helpers_throttled_ns, Part::kThrottled, /*helpers=*/true);
    cutter.CutExcess(growth.helpers_ns - growth.helpers_throttled_ns, Part::kWaitingForCpu,
                     /*helpers=*/true);
  }
  return unplaced;
}

}  // namespace syncline::analysis::why
