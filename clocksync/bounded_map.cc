// SPDX-License-Identifier: Apache-2.0
#include "clocksync/bounded_map.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "clocksync/arithmetic.h"

namespace syncline::clocksync {
namespace {

// a * b / c rounded down (b >= 0, c > 0). Most products fit 64 bits, whose division is much faster.
Int128 MulDivFloor(Int128 a, Int128 b, Int128 c) {
  const Int128 product = a * b;
  if (product >= std::numeric_limits<int64_t>::min() &&
      product <= std::numeric_limits<int64_t>::max() && c <= std::numeric_limits<int64_t>::max()) {
    const auto p = static_cast<int64_t>(product);
    const auto d = static_cast<int64_t>(c);
    const int64_t quotient = p / d;
    return quotient - (p % d < 0 ? 1 : 0);
  }
  const Int128 quotient = product / c;
  return quotient - (product % c < 0 ? 1 : 0);
}

Int128 MulDivCeil(Int128 a, Int128 b, Int128 c) { return -MulDivFloor(-a, b, c); }

}  // namespace

int64_t SaturatingAdd(int64_t a, int64_t b) {
  if (IsUnknown(a)) return a;
  if (IsUnknown(b)) return b;
  return Clip(Int128{a} + b);
}

bool KeepLongestAlike(std::vector<BoundedMap::Knot>* knots) {
  const auto sides = [](const BoundedMap::Knot& k) {
    return (IsUnknown(k.lo) ? 0 : 1) + (IsUnknown(k.hi) ? 0 : 1);
  };
  const auto alike = [](const BoundedMap::Knot& a, const BoundedMap::Knot& b) {
    return IsUnknown(a.lo) == IsUnknown(b.lo) && IsUnknown(a.hi) == IsUnknown(b.hi);
  };
  size_t best = 0, best_size = 0;
  for (size_t first = 0, last = 0; first < knots->size(); first = last) {
    while (last < knots->size() && alike((*knots)[first], (*knots)[last])) ++last;
    const int more = best_size == 0 ? 1 : sides((*knots)[first]) - sides((*knots)[best]);
    if (more < 0 || (more == 0 && last - first <= best_size)) continue;
    best = first, best_size = last - first;
  }
  if (best_size == knots->size()) return false;
  *knots = std::vector<BoundedMap::Knot>(knots->begin() + static_cast<ptrdiff_t>(best),
                                         knots->begin() + static_cast<ptrdiff_t>(best + best_size));
  return true;
}

void MakeMonotone(std::vector<BoundedMap::Knot>* knots) {
  for (size_t i = knots->size(); i-- > 1;) {
    (*knots)[i - 1].lo = std::min((*knots)[i - 1].lo, (*knots)[i].lo);
  }
  for (size_t i = 0; i < knots->size(); ++i) {
    BoundedMap::Knot& knot = (*knots)[i];
    if (knot.lo > knot.hi) std::swap(knot.lo, knot.hi);
    knot.est = std::clamp(knot.est, knot.lo, knot.hi);
    if (i == 0) continue;
    knot.est = std::max(knot.est, (*knots)[i - 1].est + 1);
    knot.hi = std::max({knot.hi, knot.est, (*knots)[i - 1].hi});
  }
}

BoundedMap::BoundedMap(std::vector<Knot> knots, int64_t rate_ppb_outside)
    : knots_(std::move(knots)), rate_ppb_outside_(rate_ppb_outside) {}

bool BoundedMap::IsValid(std::span<const Knot> knots) {
  for (size_t i = 0; i < knots.size(); ++i) {
    const Knot& knot = knots[i];
    if (knot.lo > knot.est || knot.est > knot.hi) return false;
    if (i == 0) continue;
    const Knot& last = knots[i - 1];
    if (knot.x <= last.x || knot.lo < last.lo || knot.est <= last.est || knot.hi < last.hi) {
      return false;
    }
    // A side is known everywhere or nowhere.
    if (IsUnknown(knot.lo) != IsUnknown(last.lo) || IsUnknown(knot.hi) != IsUnknown(last.hi)) {
      return false;
    }
  }
  return true;
}

int64_t BoundedMap::Evaluate(Line line, int64_t x) const {
  const auto value = [line](const Knot& knot) { return knot.*line; };
  const auto after = std::upper_bound(knots_.begin(), knots_.end(), x,
                                      [](int64_t at, const Knot& knot) { return at < knot.x; });
  const bool inside = after != knots_.begin() && after != knots_.end();
  if (inside) {
    const Knot& a = *(after - 1);
    const Knot& b = *after;
    if (IsUnknown(value(a))) return value(a);
    const Int128 dy = Int128{value(b)} - value(a);
    const Int128 dx = Int128{x} - a.x;
    const Int128 length = Int128{b.x} - a.x;
    return Clip(value(a) +
                (line == &Knot::hi ? MulDivCeil(dy, dx, length) : MulDivFloor(dy, dx, length)));
  }
  const bool before = after == knots_.begin();
  const Knot& end = before ? knots_.front() : knots_.back();
  if (IsUnknown(value(end))) return value(end);
  const Int128 distance = before ? Int128{end.x} - x : Int128{x} - end.x;
  if (rate_ppb_outside_ < 0 && distance > 0 && line != &Knot::est) {
    return line == &Knot::lo ? kUnknownLo : kUnknownHi;
  }
  const Int128 slack = MulDivCeil(std::abs(rate_ppb_outside_), distance, kBillion);
  const Int128 straight = Int128{value(end)} + (before ? -distance : distance);
  if (line == &Knot::lo) return Clip(straight - slack);
  if (line == &Knot::hi) return Clip(straight + slack);
  if (knots_.size() < 2) return Clip(straight);
  const Knot& a = before ? knots_[0] : knots_[knots_.size() - 2];
  const Knot& b = before ? knots_[1] : knots_[knots_.size() - 1];
  const Int128 drift =
      MulDivFloor((Int128{b.est} - a.est) - (Int128{b.x} - a.x), distance, Int128{b.x} - a.x);
  const Int128 bent = straight + std::clamp(before ? -drift : drift, -slack, slack);
  return Clip(bent);
}

Bounds BoundedMap::At(const Bounds& x) const {
  if (empty()) return {};
  Bounds y;
  if (x.lo != kUnknownLo) y.lo = Evaluate(&Knot::lo, x.lo);
  if (x.hi != kUnknownHi) y.hi = Evaluate(&Knot::hi, x.hi);
  y.est = std::clamp(Evaluate(&Knot::est, x.est), y.lo, y.hi);
  return y;
}

// For lo and hi: an end of the interval of x, rounded outwards by up to 2 ns. Note which line
// bounds which side: x is largest where even the lower line has reached y.
int64_t BoundedMap::Invert(Line line, int64_t y) const {
  const auto value = [line](const Knot& knot) { return knot.*line; };
  if (IsUnknown(value(knots_.front()))) return line == &Knot::lo ? kUnknownHi : kUnknownLo;
  const auto above =
      line == &Knot::hi
          ? std::lower_bound(knots_.begin(), knots_.end(), y,
                             [&](const Knot& k, int64_t at) { return value(k) < at; })
          : std::upper_bound(knots_.begin(), knots_.end(), y,
                             [&](int64_t at, const Knot& k) { return at < value(k); });
  if (above != knots_.begin() && above != knots_.end()) {
    const Knot& a = *(above - 1);
    const Knot& b = *above;
    const Int128 dy = Int128{value(b)} - value(a);
    const Int128 up = Int128{y} - value(a);
    const Int128 length = Int128{b.x} - a.x;
    if (line == &Knot::lo) return Clip(a.x + MulDivCeil(up, length, dy) + 1);
    const Int128 x = a.x + MulDivFloor(up, length, dy);
    return Clip(line == &Knot::hi ? x - 1 : x);
  }
  const bool before = above == knots_.begin();
  const Knot& end = before ? knots_.front() : knots_.back();
  const Int128 distance = before ? Int128{value(end)} - y : Int128{y} - value(end);
  const Int128 straight = Int128{end.x} + (before ? -distance : distance);
  if (rate_ppb_outside_ < 0 && distance > 0 && line != &Knot::est) {
    return line == &Knot::lo ? kUnknownHi : kUnknownLo;
  }
  const int64_t rate = std::abs(rate_ppb_outside_);
  // dy >= dx (1 - rho) and dy <= dx (1 + rho), hence |dx - dy| <= dy rho / (1 - rho).
  const Int128 slack = MulDivCeil(rate, distance, kBillion - rate) + (distance > 0 ? 1 : 0);
  if (line == &Knot::lo) return Clip(straight + slack);
  if (line == &Knot::hi) return Clip(straight - slack);
  if (knots_.size() < 2) return Clip(straight);
  const Knot& a = before ? knots_[0] : knots_[knots_.size() - 2];
  const Knot& b = before ? knots_[1] : knots_[knots_.size() - 1];
  const Int128 drift =
      MulDivFloor((Int128{b.x} - a.x) - (Int128{b.est} - a.est), distance, Int128{b.est} - a.est);
  return Clip(straight + std::clamp(before ? -drift : drift, -slack, slack));
}

Bounds BoundedMap::Inverse(const Bounds& y) const {
  if (empty()) return {};
  Bounds x;
  if (y.lo != kUnknownLo) x.lo = Invert(&Knot::hi, y.lo);
  if (y.hi != kUnknownHi) x.hi = Invert(&Knot::lo, y.hi);
  x.est = std::clamp(Invert(&Knot::est, y.est), x.lo, x.hi);
  return x;
}

Interval BoundedMap::EndsAt(int64_t x) const {
  if (empty()) return {};
  return {Evaluate(&Knot::lo, x), Evaluate(&Knot::hi, x)};
}

Interval BoundedMap::InverseEnds(int64_t y) const {
  if (empty()) return {};
  return {Invert(&Knot::hi, y), Invert(&Knot::lo, y)};
}

FastMap::FastMap(std::span<const Point> points) {
  std::vector<Point> kept;
  for (const Point& point : points) {
    if (!kept.empty() && (point.x <= kept.back().x || point.y <= kept.back().y)) continue;
    kept.push_back(point);
  }
  uint64_t slope = uint64_t{1} << kSlopeBits;
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool last = i + 1 == kept.size();
    if (!last) {
      const Int128 dy = Int128{kept[i + 1].y} - kept[i].y;
      const Int128 dx = Int128{kept[i + 1].x} - kept[i].x;
      // Rounded down, so that a segment never ends above the next one's beginning.
      slope = static_cast<uint64_t>(
          std::min<Int128>((dy << kSlopeBits) / dx, std::numeric_limits<uint64_t>::max()));
    }
    // The last segment's end is its beginning: what lies beyond is for Search(), which saturates.
    segments_.push_back({kept[i].x, kept[last ? i : i + 1].x, kept[i].y, slope});
  }
}

int64_t FastMap::Search(int64_t x, size_t* segment) const {
  if (segments_.empty()) return x;
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), x,
                                      [](int64_t at, const Segment& s) { return at < s.x; });
  const size_t at =
      after == segments_.begin() ? 0 : static_cast<size_t>(after - segments_.begin()) - 1;
  *segment = at;
  const Int128 dx = Int128{x} - segments_[at].x;
  return Clip(segments_[at].y + ((dx * segments_[at].slope) >> kSlopeBits));
}

std::optional<ClockLine> FastMap::LineAt(int64_t x, size_t* segment) const {
  constexpr Int128 kFar = Int128{1} << 59;  // times the steepest slope: less than 2^62
  constexpr uint64_t kSteep = uint64_t{1} << (kSlopeBits + 2);
  if (segments_.empty()) return std::nullopt;
  At(x, segment);
  const Segment& s = segments_[*segment];
  if (s.slope > kSteep || s.y > 4 * kFar || s.y < -4 * kFar) return std::nullopt;
  const auto near = [&s](Int128 at) {
    return Clip(std::clamp(at, Int128{s.x} - kFar, Int128{s.x} + kFar));
  };
  const bool first = *segment == 0;
  const bool last = *segment + 1 == segments_.size();
  const ClockLine line{near(first ? Int128{kUnknownLo} : Int128{s.x}),
                       near(last ? Int128{kUnknownHi} : Int128{s.end} - 1), s.x, s.y,
                       static_cast<int64_t>(s.slope)};
  if (x < line.first || x > line.last) return std::nullopt;
  return line;
}

int64_t FastMap::Inverse(int64_t y) const {
  if (segments_.empty()) return y;
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), y,
                                      [](int64_t at, const Segment& s) { return at < s.y; });
  const size_t at =
      after == segments_.begin() ? 0 : static_cast<size_t>(after - segments_.begin()) - 1;
  const Segment& s = segments_[at];
  const Int128 slope = std::max<uint64_t>(s.slope, 1);
  const Int128 scaled = (Int128{y} - s.y) << kSlopeBits;
  Int128 x = s.x + (scaled >= 0 ? (scaled + slope - 1) / slope : scaled / slope);
  if (at + 1 < segments_.size()) x = std::min<Int128>(x, s.end);
  return Clip(x);
}

BoundedMap Shifted(const BoundedMap& map, int64_t by_ns) {
  const auto shifted = [by_ns](int64_t end_ns) {
    return IsUnknown(end_ns) ? end_ns : Clip(Int128{end_ns} + by_ns);
  };
  std::vector<BoundedMap::Knot> knots;
  for (BoundedMap::Knot knot : map.knots()) {
    const Int128 est = Int128{knot.est} + by_ns;
    if (est != Clip(est)) continue;
    knot.lo = shifted(knot.lo);
    knot.est = static_cast<int64_t>(est);
    knot.hi = shifted(knot.hi);
    knots.push_back(knot);
  }
  KeepLongestAlike(&knots);  // an end may have become unknown
  return BoundedMap(std::move(knots), map.rate_ppb_outside());
}

}  // namespace syncline::clocksync
