// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/stretches.h"

#include <algorithm>

namespace syncline::analysis::why {
namespace {

// `part_ns` of what `whole_ns` of a piece hold. Both are below 2^40: a window lasts minutes.
int64_t Share(int64_t value_ns, int64_t part_ns, int64_t whole_ns) {
  return static_cast<int64_t>(static_cast<double>(value_ns) * static_cast<double>(part_ns) /
                              static_cast<double>(whole_ns));
}

// What the piece had up to `until_ns` of its length.
struct Had {
  int64_t throttled_ns = 0;
  int64_t waiting_ns = 0;
};

Had HadUntil(const Piece& piece, int64_t until_ns) {
  const int64_t waiting_ns = piece.taken_ns - piece.throttled_ns;
  if (until_ns == piece.length_ns()) return {piece.throttled_ns, waiting_ns};
  return {Share(piece.throttled_ns, until_ns, piece.length_ns()),
          Share(waiting_ns, until_ns, piece.length_ns())};
}

void Add(const Piece& piece, int64_t begin_ns, int64_t end_ns, Stretch* stretch) {
  const Had before = HadUntil(piece, begin_ns - piece.begin_ns);
  const Had after = HadUntil(piece, end_ns - piece.begin_ns);
  const int64_t throttled_ns = after.throttled_ns - before.throttled_ns;
  const int64_t waiting_ns = after.waiting_ns - before.waiting_ns;
  stretch->end_ns = end_ns;
  stretch->parts[static_cast<size_t>(Part::kThrottled)] += throttled_ns;
  stretch->parts[static_cast<size_t>(Part::kWaitingForCpu)] += waiting_ns;
  stretch->parts[static_cast<size_t>(piece.part)] += end_ns - begin_ns - throttled_ns - waiting_ns;
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
