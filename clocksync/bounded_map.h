// SPDX-License-Identifier: Apache-2.0
// A clock as a function of another, with an interval: knots joined by straight lines, integers
// only.
//
// At x the other clock reads `est`, and the truth lies in [lo, hi]. The makers of a map guarantee
// that this holds on the straight lines between knots too (they add what the truth may bend between
// two knots). All roundings go outwards for lo and hi. lo, est and hi do not decrease, so a map can
// be inverted, and maps can be chained: the image of an interval is an interval.
//
// Outside its knots the estimate goes on with the slope of the outermost piece, and the interval
// widens by `rate_ppb_outside` of the distance (negative: nothing is known there). Saturates to
// kUnknownLo/kUnknownHi instead of overflowing.
#ifndef SYNCLINE_CLOCKSYNC_BOUNDED_MAP_H_
#define SYNCLINE_CLOCKSYNC_BOUNDED_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "clocksync/clock_line.h"
#include "common/time.h"

namespace syncline::clocksync {

// A reading of a clock, known to lie in [lo, hi].
struct Bounds {
  int64_t lo = kUnknownLo;
  int64_t est = 0;
  int64_t hi = kUnknownHi;

  static Bounds Exactly(int64_t value) { return {value, value, value}; }
  bool operator==(const Bounds&) const = default;
};

struct Interval {
  int64_t lo = kUnknownLo;
  int64_t hi = kUnknownHi;
};

// a + b that sticks to the ends of the range, which mean "unknown".
int64_t SaturatingAdd(int64_t a, int64_t b);

class BoundedMap {
 public:
  struct Knot {
    int64_t x = 0;
    int64_t lo = kUnknownLo;
    int64_t est = 0;
    int64_t hi = kUnknownHi;
    bool operator==(const Knot&) const = default;
  };

  BoundedMap() = default;
  // Knots with increasing x; lo <= est <= hi, none of them decreasing. See IsValid().
  BoundedMap(std::vector<Knot> knots, int64_t rate_ppb_outside);

  // Whether `knots` may make a map: what a reader of a file must check first.
  static bool IsValid(std::span<const Knot> knots);

  const std::vector<Knot>& knots() const { return knots_; }
  int64_t rate_ppb_outside() const { return rate_ppb_outside_; }
  bool empty() const { return knots_.empty(); }

  // The other clock when this one reads x; unknown when the map is empty.
  Bounds At(const Bounds& x) const;
  Bounds At(int64_t x) const { return At(Bounds::Exactly(x)); }
  // This clock when the other one reads y.
  Bounds Inverse(const Bounds& y) const;
  // The same without the estimate.
  Interval EndsAt(int64_t x) const;
  Interval InverseEnds(int64_t y) const;

 private:
  using Line = int64_t Knot::*;  // lo, est or hi
  int64_t Evaluate(Line line, int64_t x) const;
  int64_t Invert(Line line, int64_t y) const;

  std::vector<Knot> knots_;
  int64_t rate_ppb_outside_ = 0;
};

// A map's side is known everywhere or nowhere. Where it is not (a clock went back there, or nothing
// was read for too long), keeps the longest stretch of knots that are known alike. Whether that was
// less than all.
bool KeepLongestAlike(std::vector<BoundedMap::Knot>* knots);

// Widens knots until lo and hi do not decrease and est increases.
void MakeMonotone(std::vector<BoundedMap::Knot>* knots);

// The strictly increasing estimate alone, made for speed: a multiplication per evaluation.
class FastMap {
 public:
  struct Point {
    int64_t x = 0;
    int64_t y = 0;
  };

  FastMap() = default;
  // Points increasing in x and y; at least one. Those that do not increase are left out.
  explicit FastMap(std::span<const Point> points);

  // Monotone: a <= b implies At(a) <= At(b).
  int64_t At(int64_t x) const {
    size_t segment = 0;
    return At(x, &segment);
  }
  // Looks at `*segment` first and leaves there where it looked last.
  int64_t At(int64_t x, size_t* segment) const {
    if (*segment < segments_.size()) [[likely]] {
      const Segment& s = segments_[*segment];
      // Inside the segment neither the difference nor the product can overflow.
      if (x >= s.x && x < s.end) [[likely]] {
        const auto dx = static_cast<uint64_t>(x) - static_cast<uint64_t>(s.x);
        const auto dy =
            static_cast<uint64_t>((static_cast<unsigned __int128>(dx) * s.slope) >> kSlopeBits);
        return static_cast<int64_t>(static_cast<uint64_t>(s.y) + dy);
      }
    }
    return Search(x, segment);
  }
  // The line that At() follows where x lies on it; nullopt where it is too far from all points, or
  // too steep. `segment` as above.
  std::optional<ClockLine> LineAt(int64_t x, size_t* segment) const;
  // The smallest x with At(x) >= y, to within a nanosecond.
  int64_t Inverse(int64_t y) const;

 private:
  // Of a slope's fraction: 2^-48 is off by a nanosecond only after days; slopes reach 65,535.
  static constexpr int kSlopeBits = ClockLine::kSlopeBits;
  struct Segment {
    int64_t x = 0;    // begins; the first reaches back to minus infinity
    int64_t end = 0;  // begin of the next one
    int64_t y = 0;
    uint64_t slope = 0;  // in 2^-48
  };
  int64_t Search(int64_t x, size_t* segment) const;

  std::vector<Segment> segments_;
};

// The same with `by_ns` added to all that it says. Knots whose estimate no longer fits are left
// out.
BoundedMap Shifted(const BoundedMap& map, int64_t by_ns);

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_BOUNDED_MAP_H_
