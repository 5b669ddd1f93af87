// SPDX-License-Identifier: Apache-2.0
#include "clocksync/audit.h"

#include <algorithm>
#include <span>

#include "clocksync/arithmetic.h"

namespace syncline::clocksync {
namespace {

constexpr size_t kInstantsMax = 96;          // looked at for hidden steps
constexpr size_t kWidestMax = 32;            // of those, in the middle of the widest gaps
constexpr size_t kPointsMin = 4;             // of each kind, however far away
constexpr size_t kPointsMax = 512;           // of each kind
constexpr int64_t kGapNsMin = 3 * kBillion;  // agents ask every other second at least
constexpr int64_t kGapOfUsual = 3;
constexpr int64_t kWithinBurst = 5'000'000;
constexpr int64_t kAlmostASecond = kBillion * 9 / 10;

// Knots between two breaks.
using Stretch = std::span<const BoundedMap::Knot>;

std::vector<Stretch> Stretches(const Corridor& corridor) {
  const std::vector<BoundedMap::Knot>& knots = corridor.map.knots();
  std::vector<Stretch> stretches;
  size_t first = 0;
  const auto index_of = [&](int64_t x) {
    return static_cast<size_t>(
        std::lower_bound(knots.begin(), knots.end(), x,
                         [](const BoundedMap::Knot& k, int64_t at) { return k.x < at; }) -
        knots.begin());
  };
  for (const Break& gap : corridor.breaks) {
    const size_t last = std::min(index_of(gap.begin_ns) + 1, knots.size());
    if (last > first) stretches.push_back(Stretch(knots).subspan(first, last - first));
    first = std::max(first, index_of(gap.end_ns));
  }
  if (first < knots.size()) stretches.push_back(Stretch(knots).subspan(first));
  return stretches;
}

// The wander that `knot`, `sign` times above the chord from a to b, proves.
int64_t WanderOf(const BoundedMap::Knot& a, const BoundedMap::Knot& t, const BoundedMap::Knot& b,
                 int sign) {
  const auto outer = [sign](const BoundedMap::Knot& k) { return sign > 0 ? k.hi : k.lo; };
  const int64_t inner = sign > 0 ? t.lo : t.hi;
  if (IsUnknown(outer(a)) || IsUnknown(outer(b)) || IsUnknown(inner)) return 0;
  const Int128 left = Int128{t.x} - a.x, right = Int128{b.x} - t.x, all = Int128{b.x} - a.x;
  if (left <= 0 || right <= 0) return 0;
  const Int128 rise = Int128{outer(b)} - outer(a);
  const Int128 above = sign * (Int128{inner} - outer(a) - rise * left / all) - 1;
  if (above <= 0) return 0;
  // 2 D / (left right) in 10^-12 per second. In doubles: for people to read.
  const double wander =
      2e21 * static_cast<double>(above) / static_cast<double>(left) / static_cast<double>(right);
  return wander < 9e18 ? static_cast<int64_t>(wander) : kUnknownHi;
}

int64_t WanderNeeded(const Corridor& corridor) {
  int64_t needed = 0;
  for (const Stretch& knots : Stretches(corridor)) {
    for (size_t step = 1; 2 * step < knots.size(); step *= 2) {
      for (size_t t = step; t + step < knots.size(); ++t) {
        for (int sign : {+1, -1}) {
          needed = std::max(needed, WanderOf(knots[t - step], knots[t], knots[t + step], sign));
        }
      }
    }
  }
  return needed;
}

// Constraints as distances from `t`, each loosened by what theta may bend until there, on one side.
std::vector<Constraint> Side(const std::vector<Constraint>& all, int64_t t, bool before, int sign,
                             int64_t base, const CorridorOptions& options) {
  std::vector<Constraint> side;
  const auto middle = std::lower_bound(all.begin(), all.end(), t,
                                       [](const Constraint& c, int64_t at) { return c.x < at; });
  const auto add = [&](const Constraint& c) {
    const int64_t d = c.x - t;
    const bool far = std::abs(d) > options.window_ns;
    if (side.size() >= (far ? kPointsMin : kPointsMax)) return false;
    const Int128 bend = Int128{d} * d / kBillion * options.wander_ppb_per_s / kBillion / 2 + 1;
    side.push_back({d, Clip(Int128{c.y} - c.x - base + sign * bend)});
    return true;
  };
  if (before) {
    for (auto c = middle; c != all.begin() && add(*std::prev(c)); --c) {
    }
    std::reverse(side.begin(), side.end());
  } else {
    for (auto c = middle; c != all.end() && add(*c); ++c) {
    }
  }
  return side;
}

// theta - base at t, from the constraints on one side of it.
Interval ThetaFrom(const Constraints& all, int64_t t, bool before, int64_t base,
                   const CorridorOptions& options) {
  const std::vector<Constraint> upper = Side(all.upper, t, before, +1, base, options);
  const std::vector<Constraint> lower = Side(all.lower, t, before, -1, base, options);
  Interval theta;
  theta.hi = MaxIntercept(upper, lower, options.rate_ppb_max);
  std::vector<Constraint> up = lower, down = upper;
  for (Constraint& c : up) c.y = Clip(-Int128{c.y});
  for (Constraint& c : down) c.y = Clip(-Int128{c.y});
  const int64_t lo = MaxIntercept(up, down, options.rate_ppb_max);
  theta.lo = lo == kUnknownHi ? kUnknownLo : Clip(-Int128{lo});
  return theta;
}

// Distances between successive instants with a sample that are longer than `longer_than_ns`, widest
// first, and the instants before them.
struct Spacing {
  int64_t begin_ns = 0;
  int64_t length_ns = 0;
};

// In order.
std::vector<int64_t> InstantsOf(const Constraints& all) {
  std::vector<int64_t> xs;
  for (const Constraint& c : all.upper) xs.push_back(c.x);
  for (const Constraint& c : all.lower) xs.push_back(c.x);
  std::sort(xs.begin(), xs.end());
  return xs;
}

std::vector<Spacing> Spacings(const std::vector<int64_t>& xs, int64_t longer_than_ns) {
  std::vector<Spacing> spacings;
  for (size_t i = 1; i < xs.size(); ++i) {
    const int64_t length_ns = xs[i] - xs[i - 1];
    if (length_ns > longer_than_ns) spacings.push_back({xs[i - 1], length_ns});
  }
  std::sort(spacings.begin(), spacings.end(),
            [](const Spacing& a, const Spacing& b) { return a.length_ns > b.length_ns; });
  return spacings;
}

// In the middles of the widest spacings, and evenly between all.
std::vector<int64_t> InstantsForSteps(const std::vector<Spacing>& widest_first) {
  std::vector<int64_t> instants;
  const size_t widest = std::min(widest_first.size(), kWidestMax);
  const size_t stride =
      std::max<size_t>((widest_first.size() - widest) / (kInstantsMax - widest), 1);
  for (size_t i = 0; i < widest_first.size(); i += i < widest ? 1 : stride) {
    instants.push_back(widest_first[i].begin_ns + widest_first[i].length_ns / 2);
  }
  return instants;
}

bool InBreak(const Corridor& corridor, int64_t at) {
  return std::any_of(corridor.breaks.begin(), corridor.breaks.end(),
                     [at](const Break& gap) { return at >= gap.begin_ns && at <= gap.end_ns; });
}

void FindHiddenSteps(const Constraints& all, const Corridor& corridor,
                     const std::vector<Spacing>& spacings, const CorridorOptions& options,
                     EdgeAudit* audit) {
  const int64_t base = all.upper.empty() ? all.lower.front().y - all.lower.front().x
                                         : all.upper.front().y - all.upper.front().x;
  // The fit looks at knots, at most half a second from the step.
  const int64_t slack =
      options.wander_ppb_per_s * (options.window_ns / 2 + kBillion) / kBillion + 2;
  std::vector<int64_t> steps;
  for (int64_t at : InstantsForSteps(spacings)) {
    if (InBreak(corridor, at)) continue;
    const Interval before = ThetaFrom(all, at, true, base, options);
    const Interval after = ThetaFrom(all, at, false, base, options);
    int64_t step = kUnknownHi;
    if (!IsUnknown(before.lo) && !IsUnknown(before.hi) && !IsUnknown(after.lo) &&
        !IsUnknown(after.hi)) {
      step = Clip(std::max(Int128{after.hi} - before.lo, Int128{before.hi} - after.lo) + slack);
    }
    steps.push_back(step);
    if (step > audit->unseen_step_ns_worst) {
      audit->unseen_step_ns_worst = step;
      audit->unseen_step_worst_at_ns = at;
    }
  }
  if (steps.empty()) {
    audit->unseen_step_ns_worst = kUnknownHi;
    steps.push_back(kUnknownHi);
  }
  std::sort(steps.begin(), steps.end());
  audit->unseen_step_ns_median = steps[steps.size() / 2];
}

// Between instants with samples that are a second apart at least: whether quick bursts lie between
// them, or were thinned, makes no difference.
int64_t UsualSpacing(const std::vector<int64_t>& xs) {
  std::vector<int64_t> lengths_ns;
  for (size_t i = 1, last = 0; i < xs.size(); ++i) {
    if (xs[i] - xs[last] < kAlmostASecond) continue;
    lengths_ns.push_back(xs[i] - xs[last]);
    last = i;
  }
  if (lengths_ns.empty()) return 0;
  std::sort(lengths_ns.begin(), lengths_ns.end());
  return lengths_ns[lengths_ns.size() / 2];
}

}  // namespace

std::vector<SampleGap> FindGaps(const Constraints& constraints, const Corridor& corridor) {
  const std::vector<int64_t> instants = InstantsOf(constraints);
  const std::vector<Spacing> spacings = Spacings(instants, kWithinBurst);
  const int64_t least = std::max(kGapNsMin, kGapOfUsual * UsualSpacing(instants));
  std::vector<SampleGap> gaps;
  for (const Spacing& spacing : spacings) {
    if (spacing.length_ns < least) break;
    const Interval at = corridor.map.EndsAt(spacing.begin_ns + spacing.length_ns / 2);
    const bool known = !IsUnknown(at.lo) && !IsUnknown(at.hi);
    gaps.push_back({spacing.begin_ns, spacing.begin_ns + spacing.length_ns,
                    known ? (at.hi - at.lo) / 2 : kUnknownHi});
  }
  std::sort(gaps.begin(), gaps.end(),
            [](const SampleGap& a, const SampleGap& b) { return a.begin_ns < b.begin_ns; });
  return gaps;
}

EdgeAudit AuditEdge(const Constraints& constraints, const Corridor& corridor,
                    const CorridorOptions& options) {
  EdgeAudit audit;
  if (constraints.upper.empty() && constraints.lower.empty()) {
    audit.unseen_step_ns_median = audit.unseen_step_ns_worst = kUnknownHi;
    return audit;
  }
  Constraints sorted = constraints;
  for (std::vector<Constraint>* side : {&sorted.upper, &sorted.lower}) {
    std::sort(side->begin(), side->end(),
              [](const Constraint& a, const Constraint& b) { return a.x < b.x; });
  }
  audit.wander_needed_ppt_per_s = WanderNeeded(corridor);
  const std::vector<Spacing> spacings = Spacings(InstantsOf(sorted), -1);
  FindHiddenSteps(sorted, corridor, spacings, options, &audit);
  return audit;
}

}  // namespace syncline::clocksync
