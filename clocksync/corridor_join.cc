// SPDX-License-Identifier: Apache-2.0
// From stretches that each fit to one map: what may have happened in the gaps between them.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "clocksync/arithmetic.h"
#include "clocksync/corridor.h"

namespace syncline::clocksync {
namespace {

// theta at x when it leaves `end` with a rate of `rate_ppb`, as a reading of clock y.
int64_t Advance(int64_t y, int64_t dx, int64_t rate_ppb) {
  if (y == kUnknownLo || y == kUnknownHi) return y;
  return Clip(Int128{y} + dx + CeilDiv(Int128{dx} * rate_ppb, kBillion));
}

// The interval at x in the gap between knots a and b.
BoundedMap::Knot GapKnot(const BoundedMap::Knot& a, const BoundedMap::Knot& b, int64_t x,
                         const GapRule& rule) {
  const int64_t from_a = x - a.x, to_b = x - b.x;
  BoundedMap::Knot knot{.x = x};
  const int64_t hi_a = Advance(a.hi, from_a, rule.rate_ppb_hi);
  const int64_t lo_a = SaturatingAdd(Advance(a.lo, from_a, rule.rate_ppb_lo), -1);
  const int64_t hi_b = Advance(b.hi, to_b, rule.rate_ppb_lo);
  const int64_t lo_b = SaturatingAdd(Advance(b.lo, to_b, rule.rate_ppb_hi), -1);
  knot.hi = rule.steps ? std::max(hi_a, hi_b) : std::min(hi_a, hi_b);
  knot.lo = rule.steps ? std::min(lo_a, lo_b) : std::max(lo_a, lo_b);
  const Int128 rise = Int128{b.est} - a.est;
  knot.est = Clip(a.est + rise * from_a / (Int128{b.x} - a.x));
  knot.est = std::clamp(knot.est, std::min(knot.lo, knot.hi), std::max(knot.lo, knot.hi));
  return knot;
}

// Where a line leaving a.y with rate_a meets one arriving at b.y with rate_b, inside the gap.
int64_t Meeting(int64_t a_x, int64_t a_y, int64_t rate_a, int64_t b_x, int64_t b_y,
                int64_t rate_b) {
  const Int128 rise = (Int128{b_y} - a_y) - (Int128{b_x} - a_x);  // of theta
  const Int128 numerator = rise * kBillion - Int128{rate_b} * (b_x - a_x);
  const Int128 denominator = Int128{rate_a} - rate_b;
  if (denominator == 0) return a_x + (b_x - a_x) / 2;
  return Clip(std::clamp<Int128>(a_x + numerator / denominator, a_x + 1, b_x - 1));
}

// The instant at which a line that leaves (from, 0) with slope 1 + rate has risen by `rise`.
int64_t RisenBy(int64_t rise, int64_t rate_ppb) {
  return Clip(Int128{rise} * kBillion / (Int128{kBillion} + rate_ppb));
}

// Neither clock goes back, so in a gap y is never before where it was at its beginning, nor after
// where it is at its end. Where that cuts a line, the line gets a knot.
std::vector<BoundedMap::Knot> GapKnots(const BoundedMap::Knot& a, const BoundedMap::Knot& b,
                                       const GapRule& rule) {
  std::vector<int64_t> instants = {a.x + 1, b.x - 1};
  const bool two_sided = a.lo != kUnknownLo && a.hi != kUnknownHi;
  if (two_sided && rule.steps) {
    const int64_t meets_hi = a.x + RisenBy(b.hi - a.hi, rule.rate_ppb_hi);
    const int64_t meets_lo = b.x - RisenBy(b.lo - a.lo, rule.rate_ppb_hi);
    for (int64_t near : {-1, 0, 1}) {
      instants.push_back(meets_hi + near);
      instants.push_back(meets_lo + near);
    }
  } else if (two_sided) {
    instants.push_back(Meeting(a.x, a.hi, rule.rate_ppb_hi, b.x, b.hi, rule.rate_ppb_lo));
    instants.push_back(Meeting(a.x, a.lo, rule.rate_ppb_lo, b.x, b.lo, rule.rate_ppb_hi));
  }
  std::sort(instants.begin(), instants.end());
  instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
  std::vector<BoundedMap::Knot> knots;
  for (int64_t x : instants) {
    if (x <= a.x || x >= b.x) continue;
    BoundedMap::Knot knot = GapKnot(a, b, x, rule);
    knot.hi = std::min(knot.hi, b.hi);
    knot.lo = std::max(knot.lo, a.lo);
    knots.push_back(knot);
  }
  return knots;
}

// The rate of theta at one end of an epoch, from the spans that end there: by the mean value
// theorem it is the mean rate of a span to within wander times length.
struct RateAtEnd {
  int64_t lo = 0;
  int64_t est = 0;
  int64_t hi = 0;
};

RateAtEnd RateOf(const Epoch& epoch, bool last, const GapRule& rule) {
  RateAtEnd rate{rule.rate_ppb_lo, (rule.rate_ppb_lo + rule.rate_ppb_hi) / 2, rule.rate_ppb_hi};
  for (size_t span = 1; span < epoch.size(); span *= 2) {
    const BoundedMap::Knot& a = last ? epoch[epoch.size() - 1 - span] : epoch[0];
    const BoundedMap::Knot& b = last ? epoch[epoch.size() - 1] : epoch[span];
    if (IsUnknown(a.lo) || IsUnknown(a.hi) || IsUnknown(b.lo) || IsUnknown(b.hi)) break;
    const Int128 dx = Int128{b.x} - a.x;
    const auto mean = [dx](Int128 dy) { return Clip((dy - dx) * kBillion / dx); };
    const int64_t bend = Clip(dx * rule.wander_ppb_per_s / kBillion + 1);
    const RateAtEnd seen{SaturatingAdd(mean(Int128{b.lo} - a.hi), -bend),
                         mean(Int128{b.est} - a.est),
                         SaturatingAdd(mean(Int128{b.hi} - a.lo), bend)};
    if (Int128{seen.hi} - seen.lo < Int128{rate.hi} - rate.lo) rate = seen;
  }
  return rate;
}

// What lies between two epochs.
Break BreakBetween(const Epoch& before, const Epoch& after, const GapRule& rule) {
  const BoundedMap::Knot& a = before.back();
  const BoundedMap::Knot& b = after.front();
  const int64_t dx = b.x - a.x;
  const RateAtEnd from = RateOf(before, true, rule);
  const RateAtEnd to = RateOf(after, false, rule);
  const int64_t bend = Clip(Int128{dx} * rule.wander_ppb_per_s / kBillion + 1);
  // Where clock y would stand at b.x without a step.
  const int64_t hi = Advance(a.hi, dx, SaturatingAdd(std::max(from.hi, to.hi), bend));
  const int64_t lo =
      SaturatingAdd(Advance(a.lo, dx, SaturatingAdd(std::min(from.lo, to.lo), -bend)), -1);
  const auto minus = [](int64_t x, int64_t y, int64_t unknown) {
    return IsUnknown(x) || IsUnknown(y) ? unknown : Clip(Int128{x} - y);
  };
  Break gap{.begin_ns = a.x, .end_ns = b.x};
  gap.begin_y_ns = IsUnknown(a.lo) ? a.est : a.lo;
  gap.end_y_ns = IsUnknown(b.hi) ? b.est : b.hi;
  gap.step_ns_min = minus(b.lo, hi, kUnknownLo);
  gap.step_ns_max = minus(b.hi, lo, kUnknownHi);
  const Int128 drifted = Int128{dx} * (from.est / 2 + to.est / 2) / kBillion;
  gap.step_ns = std::clamp(Clip(Int128{b.est} - b.x - a.est + a.x - drifted), gap.step_ns_min,
                           gap.step_ns_max);
  gap.backwards = b.hi < a.lo;
  if (gap.backwards) {
    // It went on from a, or came to b, for as long as the gap is.
    gap.begin_y_ns = std::max(gap.begin_y_ns, Advance(a.hi, dx, rule.rate_ppb_hi));
    gap.end_y_ns = SaturatingAdd(Advance(b.lo, -dx, rule.rate_ppb_hi), -1);
  }
  return gap;
}

// The constraints with x in (after, before).
Constraints Between(const Constraints& all, int64_t after, int64_t before) {
  Constraints some;
  const auto inside = [&](const Constraint& c) { return c.x > after && c.x < before; };
  std::copy_if(all.upper.begin(), all.upper.end(), std::back_inserter(some.upper), inside);
  std::copy_if(all.lower.begin(), all.lower.end(), std::back_inserter(some.lower), inside);
  return some;
}

}  // namespace

Corridor JoinEpochs(Epochs epochs, const std::vector<GapRule>& gaps, int64_t rate_ppb_outside) {
  Corridor corridor;
  corridor.contradicting = epochs.contradicting;
  corridor.gave_up = epochs.gave_up;
  std::vector<BoundedMap::Knot> knots, best;
  bool cut = corridor.gave_up;
  for (size_t i = 0; i < epochs.epochs.size(); ++i) {
    const Epoch& epoch = epochs.epochs[i];
    if (!knots.empty()) {
      const BoundedMap::Knot a = knots.back(), b = epoch.front();
      GapRule rule = gaps.size() == 1 ? gaps[0] : gaps[i - 1];
      const bool torn = GapKnot(a, b, b.x, rule).lo > b.hi || GapKnot(a, b, b.x, rule).hi < b.lo;
      if (!rule.steps && torn) rule.steps = true;
      const Break gap = BreakBetween(epochs.epochs[i - 1], epoch, rule);
      corridor.breaks.push_back(gap);
      if (gap.backwards || corridor.gave_up) {
        cut = true;
        if (knots.size() > best.size()) best = std::move(knots);
        knots.clear();
      } else {
        for (const BoundedMap::Knot& knot : GapKnots(a, b, rule)) knots.push_back(knot);
      }
    }
    knots.insert(knots.end(), epoch.begin(), epoch.end());
  }
  if (best.size() > knots.size()) knots = std::move(best);
  cut |= KeepLongestAlike(&knots);
  MakeMonotone(&knots);
  corridor.map = BoundedMap(std::move(knots), cut ? -rate_ppb_outside : rate_ppb_outside);
  return corridor;
}

Corridor FitCorridor(const Constraints& constraints, const CorridorOptions& options,
                     std::span<const Interval> known_gaps) {
  const GapRule rule{true, -options.rate_ppb_max, options.rate_ppb_max, options.wander_ppb_per_s};
  if (known_gaps.empty()) {
    return JoinEpochs(FitEpochs(constraints, options), {rule}, options.rate_ppb_max);
  }
  Epochs all;
  for (size_t i = 0; i <= known_gaps.size(); ++i) {
    const int64_t after = i == 0 ? kUnknownLo : known_gaps[i - 1].hi;
    const int64_t before = i == known_gaps.size() ? kUnknownHi : known_gaps[i].lo;
    Epochs some = FitEpochs(Between(constraints, after, before), options);
    all.contradicting += some.contradicting;
    all.gave_up |= some.gave_up;
    std::move(some.epochs.begin(), some.epochs.end(), std::back_inserter(all.epochs));
  }
  return JoinEpochs(std::move(all), {rule}, options.rate_ppb_max);
}

}  // namespace syncline::clocksync
