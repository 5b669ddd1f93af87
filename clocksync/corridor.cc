// SPDX-License-Identifier: Apache-2.0
#include "clocksync/corridor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "clocksync/arithmetic.h"
#include "clocksync/hull.h"

namespace syncline::clocksync {
namespace {

using Int128 = __int128;
using Points = std::vector<Constraint>;  // x: distance or instant; y: theta, less some base

constexpr int64_t kKnotNsMin = 20'000'000;
constexpr int64_t kKnotNsMax = 1'000'000'000;
constexpr size_t kBreaksMax = 200;      // of one edge; beyond, the fit gives up
constexpr int64_t kKnotsMax = 100'000;  // 28 hours at one a second, then they stand wider
constexpr int kPointsBeyondWindow = 4;  // so that sparse samples still make an interval
constexpr size_t kSpikePointsMax = 4;   // a run this short between two that agree is a false stamp

// The lower convex hull of points sorted by x; of equal x the lowest.
void LowerHull(const Points& points, Points* result) {
  Points& hull = *result;
  hull.clear();
  for (const Constraint& p : points) {
    if (!hull.empty() && hull.back().x == p.x) {
      if (hull.back().y <= p.y) continue;
      hull.pop_back();
    }
    while (hull.size() >= 2) {
      const Constraint& a = hull[hull.size() - 2];
      const Constraint& b = hull.back();
      const Int128 left = Int128{b.y - a.y} * (p.x - a.x);
      if (left < Int128{p.y - a.y} * (b.x - a.x)) break;
      hull.pop_back();
    }
    hull.push_back(p);
  }
}

// Both hulls are of upper constraints: those of theta, and those of -theta (the lower ones,
// mirrored).

// Whether the line through (0, value) with slope rise / run keeps above every lower constraint.
bool LineClears(const Points& mirrored, int64_t value, Int128 rise, Int128 run) {
  return std::all_of(mirrored.begin(), mirrored.end(), [&](const Constraint& p) {
    return (-Int128{p.y} - value) * run <= rise * p.x;
  });
}

// The best bound that one upper and one lower constraint on the same side of d = 0 give together:
// the lower one, farther away, limits the slope with which the upper one is followed back to d = 0.
Int128 BestMixedBound(const Points& upper, const Points& mirrored) {
  Int128 best = kUnknownHi;
  for (const Constraint& u : upper) {
    for (const Constraint& l : mirrored) {
      const bool right = l.x > u.x && u.x > 0;
      const bool left = l.x < u.x && u.x < 0;
      if (!right && !left) continue;
      const Int128 numerator = Int128{u.y} * l.x + Int128{l.y} * u.x;
      const Int128 denominator = Int128{l.x} - u.x;
      best = std::min(best,
                      right ? CeilDiv(numerator, denominator) : CeilDiv(-numerator, -denominator));
    }
  }
  return best;
}

int64_t MaxInterceptOfHulls(const Points& upper, const Points& mirrored, int64_t rate_ppb_max) {
  const auto right = std::lower_bound(upper.begin(), upper.end(), 0,
                                      [](const Constraint& p, int64_t x) { return p.x < x; });
  Int128 best = kUnknownHi;
  if (right != upper.end() && (right->x == 0 || right != upper.begin())) {
    const Constraint& q = *right;
    const Constraint& p = q.x == 0 ? q : *(right - 1);
    const Int128 run = std::max<Int128>(Int128{q.x} - p.x, 1);
    const Int128 rise = Int128{q.y} - p.y;
    best = CeilDiv(Int128{p.y} * run - rise * p.x, run);
    // The usual case: the hull's own edge is a line that satisfies everything.
    const bool in_rate = (rise < 0 ? -rise : rise) * kBillion <= run * rate_ppb_max;
    if (q.x != 0 && in_rate && LineClears(mirrored, Clip(best), rise, run)) return Clip(best);
  }
  for (const Constraint& p : upper) {
    best = std::min(best, p.y + CeilDiv(Int128{rate_ppb_max} * std::abs(p.x), kBillion));
  }
  return Clip(std::min(best, BestMixedBound(upper, mirrored)));
}

// w d^2 / 2 in ns, rounded up; d in ns, w in ppb per second. In doubles, whose error is far below
// the nanosecond that is added: this is asked once for each point of each window.
int64_t Bend(int64_t d, int64_t wander_ppb_per_s) {
  if (wander_ppb_per_s == 0) return 0;
  const double distance = static_cast<double>(d);
  const double bend = distance * distance * static_cast<double>(wander_ppb_per_s) * 0.5e-18;
  return bend < 1e18 ? static_cast<int64_t>(bend) + 1 : int64_t{1'000'000'000'000'000'000};
}

struct Point {
  int64_t x = 0;
  int64_t theta = 0;
  bool is_upper = false;
};

// The points around an instant as distances from it, each loosened by what theta may bend until
// there, and their hulls. Kept from one instant to the next for its memory.
struct Window {
  Points upper, mirrored;  // mirrored: lower constraints as upper ones of -theta
  Points upper_hull, mirrored_hull;

  void Clear() {
    upper.clear();
    mirrored.clear();
  }
  void Add(const Point& p, int64_t center, int64_t wander) {
    const int64_t bend = Bend(p.x - center, wander);
    (p.is_upper ? upper : mirrored)
        .push_back({p.x - center, (p.is_upper ? p.theta : -p.theta) + bend});
  }
  void MakeHulls() {
    LowerHull(upper, &upper_hull);
    LowerHull(mirrored, &mirrored_hull);
  }
};

class Fitter {
 public:
  Fitter(const Constraints& constraints, const CorridorOptions& options) : options_(options) {
    const Constraint& first =
        constraints.upper.empty() ? constraints.lower.front() : constraints.upper.front();
    base_ = first.y - first.x;
    for (const Constraint& c : constraints.upper) points_.push_back({c.x, c.y - c.x - base_, true});
    for (const Constraint& c : constraints.lower)
      points_.push_back({c.x, c.y - c.x - base_, false});
    std::stable_sort(points_.begin(), points_.end(),
                     [](const Point& a, const Point& b) { return a.x < b.x; });
    const int64_t span = points_.back().x - points_.front().x;
    // Few points do not need many knots, however far apart they are.
    const auto knots_max = std::min(kKnotsMax, 64 + 16 * static_cast<int64_t>(points_.size()));
    knot_ns_ = options.knot_ns > 0
                   ? options.knot_ns
                   : std::max(std::clamp(span / 64, kKnotNsMin, kKnotNsMax), span / knots_max);
    // A line between two knots is off by at most w D^2 / 8; 1 for the rounding of the knots.
    slack_ = CeilSlack();
    has_upper_ = !constraints.upper.empty();
    has_lower_ = !constraints.lower.empty();
  }

  Epochs Fit() {
    Epochs result;
    size_t first = 0;
    while (first < points_.size()) {
      if (result.epochs.size() + result.contradicting >= kBreaksMax) {
        result.gave_up = true;
        break;
      }
      Epoch epoch;
      const std::optional<int64_t> infeasible = FitKnots(first, points_.size(), &epoch);
      if (!infeasible) {
        result.epochs.push_back(std::move(epoch));
        break;
      }
      const Split split = FindBreak(first, *infeasible);
      if (split.spike) {
        result.contradicting += split.right - split.left;
        points_.erase(points_.begin() + static_cast<ptrdiff_t>(split.left),
                      points_.begin() + static_cast<ptrdiff_t>(split.right));
        continue;
      }
      epoch.clear();
      if (!FitKnots(first, split.left, &epoch)) result.epochs.push_back(std::move(epoch));
      first = split.right;
    }
    return result;
  }

 private:
  // Points [.., left) fit and [right, ..) begin anew; what is between may belong to either.
  struct Split {
    size_t left = 0;
    size_t right = 0;
    bool spike = false;  // [left, right) contradict both sides, which agree
  };

  int64_t CeilSlack() const { return Bend(knot_ns_ / 2, options_.wander_ppb_per_s) + 1; }

  static size_t IndexAt(const std::vector<Point>& points, int64_t x, size_t first, size_t last) {
    const auto begin = points.begin();
    return static_cast<size_t>(
        std::lower_bound(begin + static_cast<ptrdiff_t>(first),
                         begin + static_cast<ptrdiff_t>(last), x,
                         [](const Point& p, int64_t at) { return p.x < at; }) -
        begin);
  }

  // Points [first, last) less those that others imply.
  std::vector<Point> Thinned(size_t first, size_t last) const {
    std::vector<Point> thin;
    for (const bool upper : {true, false}) {
      std::vector<Limit> limits;
      for (size_t i = first; i < last; ++i) {
        const Point& p = points_[i];
        if (p.is_upper == upper) limits.push_back({p.x, upper ? p.theta : -p.theta});
      }
      for (size_t corner : CornersOfHull(limits, options_.wander_ppb_per_s)) {
        const Limit& limit = limits[corner];
        thin.push_back({limit.x, upper ? limit.theta_ns : -limit.theta_ns, upper});
      }
    }
    std::stable_sort(thin.begin(), thin.end(),
                     [](const Point& a, const Point& b) { return a.x < b.x; });
    return thin;
  }

  // What is within the window around t, and beyond it until there are a few of either kind to each
  // side.
  void FillWindow(const std::vector<Point>& points, int64_t t) const {
    const size_t last = points.size();
    size_t from = IndexAt(points, t - options_.window_ns, 0, last);
    size_t to = IndexAt(points, t + options_.window_ns + 1, 0, last);
    int uppers = 0, lowers = 0;
    const auto enough = [&] {
      return (uppers >= kPointsBeyondWindow || !has_upper_) &&
             (lowers >= kPointsBeyondWindow || !has_lower_);
    };
    const auto count = [&](const Point& p) { ++(p.is_upper ? uppers : lowers); };
    const size_t middle = IndexAt(points, t, 0, last);
    for (size_t i = from; i < middle && !enough(); ++i) count(points[i]);
    while (from > 0 && !enough()) count(points[--from]);
    uppers = lowers = 0;
    for (size_t i = middle; i < to && !enough(); ++i) count(points[i]);
    while (to < last && !enough()) count(points[to++]);
    window_.Clear();
    for (size_t i = from; i < to; ++i) window_.Add(points[i], t, options_.wander_ppb_per_s);
    window_.MakeHulls();
  }

  // Knots over points [first, last); the instant of the first knot where no line fits.
  std::optional<int64_t> FitKnots(size_t first, size_t last, Epoch* epoch) const {
    if (first >= last) return std::nullopt;
    const int64_t begin = points_[first].x;
    const int64_t end = points_[last - 1].x;
    const std::vector<Point> thin = Thinned(first, last);
    for (int64_t t = begin;;) {
      FillWindow(thin, t);
      const Points& upper = window_.upper_hull;
      const Points& mirrored = window_.mirrored_hull;
      const int64_t hi = MaxInterceptOfHulls(upper, mirrored, options_.rate_ppb_max);
      const int64_t lo = MaxInterceptOfHulls(mirrored, upper, options_.rate_ppb_max);
      BoundedMap::Knot knot{.x = t};
      // Far from t, constraints that contradict each other by little do so by any amount at t.
      if (hi != kUnknownHi) knot.hi = Clip(Int128{t} + base_ + hi + slack_);
      if (lo != kUnknownHi) knot.lo = Clip(Int128{t} + base_ - lo - slack_);
      if (knot.lo > knot.hi) return t;
      knot.est = knot.hi == kUnknownHi   ? knot.lo
                 : knot.lo == kUnknownLo ? knot.hi
                                         : std::midpoint(knot.lo, knot.hi);
      epoch->push_back(knot);
      if (t == end) return std::nullopt;
      // No last piece shorter than a knot.
      t = end - t < 2 * knot_ns_ ? (end - t <= knot_ns_ ? end : t + (end - t) / 2) : t + knot_ns_;
    }
  }

  // Whether one line fits all points [from, to) but those of [skip, skip_end).
  bool Fits(size_t from, size_t to, size_t skip = 0, size_t skip_end = 0) const {
    if (from >= to) return true;
    const int64_t center = points_[from].x + (points_[to - 1].x - points_[from].x) / 2;
    window_.Clear();
    for (size_t i = from; i < to; ++i) {
      if (i < skip || i >= skip_end) window_.Add(points_[i], center, options_.wander_ppb_per_s);
    }
    window_.MakeHulls();
    const auto clearance = [&](double slope) {  // concave
      double up = std::numeric_limits<double>::infinity(), down = up;
      for (const Constraint& p : window_.upper_hull) {
        up = std::min(up, static_cast<double>(p.y) - slope * static_cast<double>(p.x));
      }
      for (const Constraint& p : window_.mirrored_hull) {
        down = std::min(down, static_cast<double>(p.y) + slope * static_cast<double>(p.x));
      }
      return up + down;
    };
    double left = -static_cast<double>(options_.rate_ppb_max) * 1e-9, right = -left;
    for (int i = 0; i < 100; ++i) {
      const double a = left + (right - left) / 3, b = right - (right - left) / 3;
      (clearance(a) < clearance(b) ? left : right) = clearance(a) < clearance(b) ? a : b;
    }
    return clearance((left + right) / 2) >= -1.0;
  }

  // Around `t` no line fits the points from `first` on: where does the first fit end?
  Split FindBreak(size_t first, int64_t t) const {
    const size_t from = IndexAt(points_, t - 2 * options_.window_ns, first, points_.size());
    const auto region_end = [&](int64_t x) {
      return std::min(points_.size(),
                      IndexAt(points_, x + 2 * options_.window_ns, first, points_.size()) + 1);
    };
    size_t to = region_end(t);
    while (Fits(from, to) && to < points_.size()) to = std::min(points_.size(), 2 * to - from);
    // The longest prefix that fits, then the longest run from there on, then how far that reaches
    // back.
    const auto longest = [&](size_t begin, size_t end) {
      size_t good = begin + 1, bad = end + 1;
      while (bad - good > 1) {
        const size_t middle = good + (bad - good) / 2;
        (Fits(begin, middle) ? good : bad) = middle;
      }
      return good;
    };
    Split split;
    split.right = std::max(longest(from, to), first + 1);
    if (split.right >= points_.size()) split.right = points_.size() - 1;
    const size_t next_to = region_end(points_[split.right].x);
    const size_t run_end = longest(split.right, next_to);
    if (run_end < next_to && run_end - split.right <= kSpikePointsMax &&
        Fits(from, next_to, split.right, run_end)) {
      return {.left = split.right, .right = run_end, .spike = true};
    }
    size_t good = split.right, bad = from;
    while (good - bad > 1) {
      const size_t middle = bad + (good - bad) / 2;
      (Fits(middle, run_end) ? good : bad) = middle;
    }
    split.left = std::max(good, first + 1);
    return split;
  }

  CorridorOptions options_;
  std::vector<Point> points_;  // sorted by x
  int64_t base_ = 0;
  int64_t knot_ns_ = 0;
  int64_t slack_ = 0;
  bool has_upper_ = false;
  bool has_lower_ = false;
  mutable Window window_;
};

}  // namespace

int64_t MaxIntercept(const std::vector<Constraint>& upper, const std::vector<Constraint>& lower,
                     int64_t rate_ppb_max) {
  Window window{.upper = upper, .mirrored = lower};
  for (Constraint& p : window.mirrored) p.y = Clip(-Int128{p.y});
  window.MakeHulls();
  return MaxInterceptOfHulls(window.upper_hull, window.mirrored_hull, rate_ppb_max);
}

Epochs FitEpochs(const Constraints& constraints, const CorridorOptions& options) {
  if (constraints.upper.empty() && constraints.lower.empty()) return {};
  return Fitter(constraints, options).Fit();
}

}  // namespace syncline::clocksync
