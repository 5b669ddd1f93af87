// SPDX-License-Identifier: Apache-2.0
// From stretches that each fit to one map: what may have happened in the gaps between them.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

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

// How long a line with slope 1 + rate takes to rise by `rise`.
Int128 RisenBy(Int128 rise, int64_t rate_ppb) {
  return rise * kBillion / (Int128{kBillion} + rate_ppb);
}

// Neither clock goes back, so in a gap y is never before where it was at its beginning, nor after
// where it is at its end. Where that cuts a line, the line gets a knot.
std::vector<BoundedMap::Knot> GapKnots(const BoundedMap::Knot& a, const BoundedMap::Knot& b,
                                       const GapRule& rule) {
  std::vector<int64_t> instants = {a.x + 1, b.x - 1};
  const bool know_hi = a.hi != kUnknownHi && b.hi != kUnknownHi;
  const bool know_lo = a.lo != kUnknownLo && b.lo != kUnknownLo;
  const auto add_around = [&](Int128 x) {
    const auto meets = static_cast<int64_t>(std::clamp<Int128>(x, a.x, b.x));
    for (int64_t near : {-1, 0, 1}) instants.push_back(meets + near);
  };
  if (rule.steps) {
    if (know_hi) add_around(a.x + RisenBy(Int128{b.hi} - a.hi, rule.rate_ppb_hi));
    if (know_lo) add_around(b.x - RisenBy(Int128{b.lo} - a.lo, rule.rate_ppb_hi));
  } else {
    if (know_hi) {
      instants.push_back(Meeting(a.x, a.hi, rule.rate_ppb_hi, b.x, b.hi, rule.rate_ppb_lo));
    }
    if (know_lo) {
      instants.push_back(Meeting(a.x, a.lo, rule.rate_ppb_lo, b.x, b.lo, rule.rate_ppb_hi));
    }
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

// What is left of a limit of theta after dx, when the rate may have been any of -rate to rate.
int64_t Loosened(int64_t limit, int64_t dx, int64_t rate_ppb_max, int sign) {
  if (IsUnknown(limit)) return limit;
  return Clip(Int128{limit} + sign * (Int128{dx} * rate_ppb_max / kBillion + 1));
}

struct ThetaLimit {
  int64_t x = 0;
  int64_t lo = kUnknownLo;
  int64_t hi = kUnknownHi;
};

// Of each instant with constraints the limits of theta, in order.
std::vector<ThetaLimit> ThetaLimits(const Constraints& constraints) {
  std::map<int64_t, ThetaLimit> limits;
  for (const Constraint& c : constraints.upper) {
    int64_t& hi = limits.try_emplace(c.x, ThetaLimit{.x = c.x}).first->second.hi;
    hi = std::min(hi, Clip(Int128{c.y} - c.x));
  }
  for (const Constraint& c : constraints.lower) {
    int64_t& lo = limits.try_emplace(c.x, ThetaLimit{.x = c.x}).first->second.lo;
    lo = std::max(lo, Clip(Int128{c.y} - c.x));
  }
  std::vector<ThetaLimit> in_order;
  for (const auto& [x, limit] : limits) in_order.push_back(limit);
  return in_order;
}

// `limit` is no wider than what `near` leaves of it.
void Narrow(const ThetaLimit& near, int64_t rate_ppb_max, ThetaLimit* limit) {
  const int64_t dx = limit->x > near.x ? limit->x - near.x : near.x - limit->x;
  limit->lo = std::max(limit->lo, Loosened(near.lo, dx, rate_ppb_max, -1));
  limit->hi = std::min(limit->hi, Loosened(near.hi, dx, rate_ppb_max, +1));
}

// Through the middles of the limits, the narrow ones above all.
class BestLine {
 public:
  BestLine(const std::vector<ThetaLimit>& limits, int64_t rate_ppb_max) : first_(limits.front()) {
    double weights = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
    base_ = Middle(first_);
    for (const ThetaLimit& limit : limits) {
      const auto x = static_cast<double>(limit.x - first_.x);
      const auto y = static_cast<double>(Middle(limit) - base_);
      const bool known = !IsUnknown(limit.lo) && !IsUnknown(limit.hi);
      const double width = known ? static_cast<double>(limit.hi - limit.lo) + 1 : 1;
      const double weight = 1 / (width * width);
      weights += weight;
      sum_x += weight * x, sum_y += weight * y, sum_xx += weight * x * x, sum_xy += weight * x * y;
    }
    const double spread = weights * sum_xx - sum_x * sum_x;
    const double rate_max = static_cast<double>(rate_ppb_max) * 1e-9;
    slope_ = spread > 0 ? (weights * sum_xy - sum_x * sum_y) / spread : 0;
    slope_ = std::clamp(slope_, -rate_max, rate_max);
    rise_ = (sum_y - slope_ * sum_x) / weights;
  }

  int64_t At(const ThetaLimit& limit) const {
    const double rise = rise_ + slope_ * static_cast<double>(limit.x - first_.x);
    return std::clamp(base_ + static_cast<int64_t>(std::llround(rise)), limit.lo, limit.hi);
  }

 private:
  static int64_t Middle(const ThetaLimit& limit) {
    if (IsUnknown(limit.lo) || IsUnknown(limit.hi)) {
      return std::clamp<int64_t>(0, limit.lo, limit.hi);
    }
    return limit.lo + (limit.hi - limit.lo) / 2;
  }

  const ThetaLimit first_;
  int64_t base_ = 0;
  double slope_ = 0, rise_ = 0;
};

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

Corridor FitVaryingRate(const Constraints& constraints, int64_t rate_ppb_max) {
  std::vector<ThetaLimit> limits = ThetaLimits(constraints);
  if (limits.empty()) return {};
  for (size_t i = 1; i < limits.size(); ++i) Narrow(limits[i - 1], rate_ppb_max, &limits[i]);
  for (size_t i = limits.size() - 1; i > 0; --i) Narrow(limits[i], rate_ppb_max, &limits[i - 1]);
  for (const ThetaLimit& limit : limits) {
    if (limit.lo > limit.hi) return {.gave_up = true};
  }
  const BestLine line(limits, rate_ppb_max);
  const auto add = [](int64_t x, int64_t theta) {
    return IsUnknown(theta) ? theta : Clip(Int128{x} + theta);
  };
  Epochs epochs;
  for (const ThetaLimit& limit : limits) {
    epochs.epochs.push_back({{.x = limit.x,
                              .lo = add(limit.x, limit.lo),
                              .est = add(limit.x, line.At(limit)),
                              .hi = add(limit.x, limit.hi)}});
  }
  Corridor corridor =
      JoinEpochs(std::move(epochs), {{false, -rate_ppb_max, rate_ppb_max, 0}}, rate_ppb_max);
  corridor.breaks.clear();  // nothing broke
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
