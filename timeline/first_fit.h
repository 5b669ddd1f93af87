// SPDX-License-Identifier: Apache-2.0
// Lanes beside each other, each used up to an instant: which is the first that is free at another
// one? With thousands of lanes looking at each of them costs more than all the rest, so they are
// the leaves of a tree whose inner nodes hold the least of what is below them.
//
//   lanes used up to  7 3 9 5     free at 4: the second one, since min(7, 3) <= 4 leads to the left
//   tree        [1]:  3           and there to the right
//          [2], [3]:  3     5
//        [4] to [7]:  7 3   9 5
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_FIRST_FIT_H_
#define SYNCLINE_TIMELINE_FIRST_FIT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/time.h"

namespace syncline::timeline {

class FirstFit {
 public:
  // Of a lane that is in use, until nobody knows when.
  static constexpr TimelineTime kInUse{kUnknownHi};

  size_t size() const { return size_; }

  // The first lane that is used up to `time` or less; size(): there is none.
  size_t Find(TimelineTime time) const {
    const int64_t latest_ns = std::min(time.ns, kInUse.ns - 1);
    if (size_ == 0 || least_ns_[1] > latest_ns) return size_;
    size_t at = 1;
    while (at < room()) at = least_ns_[2 * at] <= latest_ns ? 2 * at : 2 * at + 1;
    return at - room();
  }

  void Set(size_t lane, TimelineTime used_until) {
    size_t at = room() + lane;
    least_ns_[at] = used_until.ns;
    while ((at /= 2) > 0) least_ns_[at] = std::min(least_ns_[2 * at], least_ns_[2 * at + 1]);
  }

  // One more, behind the others; in use.
  void Add() {
    if (size_ == room()) Grow();
    ++size_;
  }

 private:
  size_t room() const { return least_ns_.size() / 2; }

  void Grow() {
    std::vector<int64_t> more(std::max<size_t>(2, 4 * room()), kInUse.ns);
    const size_t first = more.size() / 2;
    for (size_t i = 0; i < size_; ++i) more[first + i] = least_ns_[room() + i];
    for (size_t i = first; i-- > 1;) more[i] = std::min(more[2 * i], more[2 * i + 1]);
    least_ns_ = std::move(more);
  }

  size_t size_ = 0;
  std::vector<int64_t> least_ns_;  // [1]: the root; the second half: the lanes
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_FIRST_FIT_H_
