// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/stretches.h"

#include <algorithm>

namespace syncline::analysis::why {
namespace {

// The part of `value_ns`, which is no more than `whole_ns`, that falls on `part_ns` of it.
int64_t Share(int64_t value_ns, int64_t part_ns, int64_t whole_ns) {
  return static_cast<int64_t>(static_cast<__int128>(value_ns) * part_ns / whole_ns);
}

void Add(const Piece& piece, int64_t begin_ns, int64_t end_ns, Stretch* stretch) {
  const auto between = [&](int64_t value_ns) {
    const auto until = [&](int64_t at_ns) {
      return at_ns == piece.end_ns ? value_ns
                                   : Share(value_ns, at_ns - piece.begin_ns, piece.length_ns());
    };
    return until(end_ns) - until(begin_ns);
  };
  const int64_t taken_ns = between(piece.taken_ns);
  const int64_t throttled_ns = std::min(between(piece.throttled_ns), taken_ns);
  const int64_t blocked_ns = std::min(between(piece.blocked_ns), taken_ns - throttled_ns);
  stretch->end_ns = end_ns;
  stretch->parts[static_cast<size_t>(Part::kThrottled)] += throttled_ns;
  stretch->parts[static_cast<size_t>(Part::kBlocked)] += blocked_ns;
  stretch->parts[static_cast<size_t>(Part::kWaitingForCpu)] += taken_ns - throttled_ns - blocked_ns;
  stretch->parts[static_cast<size_t>(piece.part)] += end_ns - begin_ns - taken_ns;
}

}  // namespace

std::vector<Stretch> StretchesOf(std::span<const Piece> pieces, std::vector<int64_t> marks) {
  std::sort(marks.begin(), marks.end());
  std::vector<Stretch> stretches;
  auto mark = marks.begin();
  for (const Piece& piece : pieces) {
    for (int64_t at_ns = piece.begin_ns; at_ns < piece.end_ns;) {
      bool begins = stretches.empty() || stretches.back().step != piece.step;
      for (; mark != marks.end() && *mark <= at_ns; ++mark) begins |= *mark == at_ns;
      if (begins) stretches.push_back({at_ns, at_ns, piece.step, {}});
      const int64_t end_ns = mark == marks.end() ? piece.end_ns : std::min(piece.end_ns, *mark);
      Add(piece, at_ns, end_ns, &stretches.back());
      at_ns = end_ns;
    }
  }
  return stretches;
}

}  // namespace syncline::analysis::why
