// SPDX-License-Identifier: Apache-2.0
#include "clocksync/corridor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace syncline::clocksync {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr double kNone = 1e300;

// The largest theta at d = 0 by trying every pair of constraints (and every slope limit) as a
// vertex of the feasible set: slow, in doubles, obviously right. kNone: infeasible or unlimited.
double BruteForce(const std::vector<Constraint>& upper, const std::vector<Constraint>& lower,
                  double rate) {
  std::vector<Constraint> all = upper;
  all.insert(all.end(), lower.begin(), lower.end());
  double best = -kNone;
  const auto consider = [&](double theta, double slope) {
    if (std::abs(slope) > rate + 1e-15) return;
    for (const Constraint& u : upper) {
      if (theta + slope * static_cast<double>(u.x) > static_cast<double>(u.y) + 1e-6) return;
    }
    for (const Constraint& l : lower) {
      if (theta + slope * static_cast<double>(l.x) < static_cast<double>(l.y) - 1e-6) return;
    }
    best = std::max(best, theta);
  };
  for (const Constraint& a : all) {
    for (double slope : {-rate, rate}) {
      consider(static_cast<double>(a.y) - slope * static_cast<double>(a.x), slope);
    }
    for (const Constraint& b : all) {
      if (a.x == b.x) continue;
      const double slope = static_cast<double>(b.y - a.y) / static_cast<double>(b.x - a.x);
      consider(static_cast<double>(a.y) - slope * static_cast<double>(a.x), slope);
    }
  }
  return best == -kNone ? kNone : best;
}

TEST(CorridorTest, LinearProgramAgreesWithBruteForce) {
  std::mt19937_64 random(1);
  const auto draw = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  };
  int feasible = 0, one_sided = 0;
  for (int round = 0; round < 3000; ++round) {
    // Around a line with delays; sometimes all to one side of d = 0, sometimes nearly parallel.
    const int64_t slope_ppm = draw(-150, 150);
    const int64_t from = round % 3 == 0 ? 1'000'000 : -1'000'000'000;
    const auto value = [&](int64_t x) { return x * slope_ppm / 1'000'000; };
    std::vector<Constraint> upper, lower;
    for (int i = draw(1, 12); i-- > 0;) {
      const int64_t x = draw(from, 1'000'000'000);
      upper.push_back({x, value(x) + draw(0, 100'000)});
    }
    for (int i = draw(1, 12); i-- > 0;) {
      const int64_t x = draw(from, 1'000'000'000);
      lower.push_back({x, value(x) - draw(0, 100'000)});
    }
    const auto by_x = [](const Constraint& a, const Constraint& b) { return a.x < b.x; };
    std::sort(upper.begin(), upper.end(), by_x);
    std::sort(lower.begin(), lower.end(), by_x);
    const double expected = BruteForce(upper, lower, 200e-6);
    if (expected == kNone) continue;
    ++feasible;
    one_sided += round % 3 == 0;
    EXPECT_NEAR(static_cast<double>(MaxIntercept(upper, lower, 200'000)), expected, 2.0)
        << "round " << round;
  }
  EXPECT_GT(feasible, 2500);
  EXPECT_GT(one_sided, 800);
}

TEST(CorridorTest, AConstraintThatIsUnknownLimitsNothing) {
  const std::vector<Constraint> upper = {{-kSecond, 5}, {kSecond, 5}};
  EXPECT_EQ(MaxIntercept(upper, {{0, kUnknownLo}}, 200'000), 5);
}

TEST(CorridorTest, WorkedExampleOfTheHeader) {
  const Constraints constraints{.upper = {{0, 1060}}, .lower = {{100, 1070}}};
  const Corridor corridor = FitCorridor(constraints, {.rate_ppb_max = 1, .wander_ppb_per_s = 0});
  const Bounds y = corridor.map.At(50);
  EXPECT_NEAR(y.lo - 50, 970, 3);
  EXPECT_NEAR(y.hi - 50, 1060, 3);
  EXPECT_TRUE(corridor.breaks.empty());
}

// Truth: y = x + 1000 + 50 ppm, with delays; `step` from `at` on.
Constraints Line(int64_t step, int64_t at) {
  Constraints c;
  for (int64_t x = 0; x < 10 * kSecond; x += kSecond / 20) {
    const auto y = [&](int64_t t) { return t + 1000 + t / 20'000 + (t >= at ? step : 0); };
    c.upper.push_back({x, y(x) + 10'000});
    c.lower.push_back({x + 30'000, y(x + 30'000) - 10'000});
  }
  return c;
}

TEST(CorridorTest, MoreConstraintsNeverLoosen) {
  Constraints some = Line(0, 0), more = some;
  for (int64_t x = kSecond / 40; x < 10 * kSecond; x += kSecond / 2) {
    more.upper.push_back({x, x + 1000 + x / 20'000 + 3'000});
  }
  std::sort(more.upper.begin(), more.upper.end(),
            [](const Constraint& a, const Constraint& b) { return a.x < b.x; });
  const CorridorOptions options{.knot_ns = kSecond / 4};
  const BoundedMap loose = FitCorridor(some, options).map, tight = FitCorridor(more, options).map;
  for (int64_t x = 0; x < 9 * kSecond; x += kSecond / 7) {
    EXPECT_LE(tight.At(x).hi, loose.At(x).hi + 2);
    EXPECT_GE(tight.At(x).lo, loose.At(x).lo - 2);
  }
}

TEST(CorridorTest, AStepIsFoundAndNotInterpolatedOver) {
  const int64_t step = 500'000, at = 5 * kSecond + 10'000'000;
  const Corridor corridor = FitCorridor(Line(step, at), {});
  ASSERT_EQ(corridor.breaks.size(), 1u);
  EXPECT_LE(corridor.breaks[0].begin_ns, at);
  EXPECT_GE(corridor.breaks[0].end_ns, at);
  EXPECT_LE(corridor.breaks[0].end_ns - corridor.breaks[0].begin_ns, kSecond / 5);
  EXPECT_NEAR(corridor.breaks[0].step_ns, step, 4'000);  // 50 ppm of the gap
  for (int64_t x = 0; x < 10 * kSecond; x += 1'234'567) {
    const int64_t truth = x + 1000 + x / 20'000 + (x >= at ? step : 0);
    const Bounds y = corridor.map.At(x);
    EXPECT_LE(y.lo, truth) << x;
    EXPECT_GE(y.hi, truth) << x;
  }
}

TEST(CorridorTest, AStepWithinTheBoundCannotBeSeen) {
  const Corridor corridor = FitCorridor(Line(9'000, 5 * kSecond), {});
  EXPECT_TRUE(corridor.breaks.empty());
  for (int64_t x = 0; x < 10 * kSecond; x += 1'234'567) {
    const int64_t truth = x + 1000 + x / 20'000 + (x >= 5 * kSecond ? 9'000 : 0);
    EXPECT_LE(corridor.map.At(x).lo, truth) << x;
    EXPECT_GE(corridor.map.At(x).hi, truth) << x;
  }
}

// Followed back over 16 years, a contradiction of 100 ns within one is more than a number holds.
TEST(CorridorTest, AContradictionFarAwayIsFoundWithoutOverflow) {
  const int64_t far = 500'000'000 * kSecond;
  const Constraints constraints{.upper = {{0, 1000}, {far + 1, far + 1 + 1000}},
                                .lower = {{0, 900}, {far, far + 1100}}};
  const Epochs fitted = FitEpochs(constraints, {.wander_ppb_per_s = 0});
  ASSERT_EQ(fitted.epochs.size() + fitted.contradicting, 2u);
  for (const Epoch& epoch : fitted.epochs) {
    for (const BoundedMap::Knot& knot : epoch) {
      EXPECT_LE(knot.lo, knot.est) << knot.x;
      EXPECT_LE(knot.est, knot.hi) << knot.x;
    }
  }
  EXPECT_GE(fitted.epochs[0][0].lo, 0);
}

TEST(CorridorTest, AFalseStampIsLeftOutAndCounted) {
  Constraints c = Line(0, 0);
  c.lower[100].y += 80'000;
  const Corridor corridor = FitCorridor(c, {});
  EXPECT_TRUE(corridor.breaks.empty());
  EXPECT_GE(corridor.contradicting, 1u);
  EXPECT_LE(corridor.contradicting, 4u);
}

TEST(CorridorTest, AClockThatGoesBackKeepsItsLongerStretch) {
  Constraints c = Line(-3 * kSecond, 7 * kSecond);
  const Corridor corridor = FitCorridor(c, {});
  ASSERT_EQ(corridor.breaks.size(), 1u);
  EXPECT_TRUE(corridor.breaks[0].backwards);
  EXPECT_LE(corridor.map.At(3 * kSecond).hi - corridor.map.At(3 * kSecond).lo, 21'000);
  EXPECT_EQ(corridor.map.At(9 * kSecond).hi, kUnknownHi);
}

TEST(CorridorTest, OneDirectionBoundsOneSide) {
  Constraints c = Line(0, 0);
  c.lower.clear();
  const Corridor corridor = FitCorridor(c, {});
  EXPECT_EQ(corridor.map.At(kSecond).lo, kUnknownLo);
  EXPECT_NE(corridor.map.At(kSecond).hi, kUnknownHi);
  EXPECT_TRUE(FitCorridor({}, {}).map.empty());
}

// Of a stretch that has constraints on one side alone the other is unknown. What is left must be a
// map that its file's reader takes.
TEST(CorridorTest, WhereOneSideIsUnknownNothingIsClaimed) {
  constexpr int64_t kSecond = 1'000'000'000;
  const auto known = [](int64_t x) { return BoundedMap::Knot{x, x, x + 5, x + 10}; };
  const auto one_sided = [](int64_t x) { return BoundedMap::Knot{x, kUnknownLo, x + 5, x + 10}; };
  Epochs epochs;
  epochs.epochs = {{one_sided(0), one_sided(kSecond)},
                   {known(2 * kSecond), known(3 * kSecond), known(4 * kSecond)}};
  const Corridor corridor = JoinEpochs(epochs, {GapRule{}}, 200'000);
  EXPECT_TRUE(BoundedMap::IsValid(corridor.map.knots()));
  EXPECT_EQ(corridor.map.knots().front().x, 2 * kSecond);
  EXPECT_EQ(corridor.map.At(kSecond), (Bounds{kUnknownLo, kSecond + 5, kUnknownHi}));
}

// Clock y may go on at its own rate until it has reached what is known of it behind the gap.
TEST(CorridorTest, InAGapTheKnownSideAloneIsCutWhereItMustBe) {
  for (const int64_t a_lo : {kUnknownLo, int64_t{900'000'000}}) {
    const Epoch before = {{.x = kSecond, .lo = a_lo, .est = kSecond, .hi = kSecond}};
    const Epoch behind = {{.x = 2 * kSecond, .est = 1'200'000'000, .hi = 1'200'000'000}};
    const Corridor corridor = JoinEpochs({.epochs = {before, behind}}, {GapRule{}}, 200'000);
    for (int64_t x = kSecond; x < 2 * kSecond; x += 10'000'000) {
      EXPECT_GE(corridor.map.At(x).hi, std::min<int64_t>(x, 1'200'000'000)) << x;
    }
  }
}

TEST(BoundedMapTest, InverseContainsWhatMapsThere) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<BoundedMap::Knot> knots;
    int64_t x = 0, y = 1'000'000;
    for (int i = 0; i < 6; ++i) {
      const auto half = static_cast<int64_t>(random() % 1000);
      knots.push_back({x, y - half, y, y + half});
      x += 1'000'000 + static_cast<int64_t>(random() % 1000);
      y += 1'000'000 + static_cast<int64_t>(random() % 1000);
    }
    MakeMonotone(&knots);
    ASSERT_TRUE(BoundedMap::IsValid(knots));
    const BoundedMap map(knots, 200'000);
    for (int64_t at : {-5'000'000, 0, 1, 123'456, 3'000'000, 5'000'000, 9'000'000}) {
      const Bounds there = map.At(at);
      for (int64_t reading : {there.lo, there.est, there.hi}) {
        const Bounds back = map.Inverse(Bounds::Exactly(reading));
        EXPECT_LE(back.lo, at);
        EXPECT_GE(back.hi, at);
      }
      EXPECT_NEAR(map.Inverse(there).est, at, 2);
    }
  }
}

TEST(FastMapTest, NeverGoesBackAcrossSegments) {
  std::mt19937_64 random(3);
  std::vector<FastMap::Point> points;
  int64_t x = -50'000, y = 7;
  for (int i = 0; i < 200; ++i) {
    points.push_back({x, y});
    x += 1 + static_cast<int64_t>(random() % 1000);
    y += 1 + static_cast<int64_t>(random() % 1000);
  }
  const FastMap map(points);
  int64_t last = kUnknownLo;
  for (int64_t at = -60'000; at < x + 5000; ++at) {
    const int64_t now = map.At(at);
    ASSERT_GE(now, last) << at;
    last = now;
  }
  for (const FastMap::Point& point : points) EXPECT_EQ(map.At(point.x), point.y);

  size_t segment = 0;
  size_t lines = 0;
  for (int64_t at = -60'000; at < x + 5000;) {
    const auto line = map.LineAt(at, &segment);
    if (!line.has_value()) {  // it is steep there
      ++at;
      continue;
    }
    ++lines;
    ASSERT_LE(line->first, at);
    for (; at <= std::min(line->last, x + 5000); ++at) ASSERT_EQ(line->At(at), map.At(at)) << at;
  }
  EXPECT_GT(lines, points.size() / 2);
}

TEST(FastMapTest, WhereALineCouldOverflowThereIsNone) {
  const FastMap::Point steep[] = {{0, 0}, {10, 1000}, {20, 1010}};
  const FastMap map(steep);
  size_t segment = 0;
  EXPECT_FALSE(map.LineAt(5, &segment).has_value());
  EXPECT_TRUE(map.LineAt(15, &segment).has_value());
  EXPECT_FALSE(map.LineAt(int64_t{1} << 60, &segment).has_value());
  EXPECT_FALSE(FastMap().LineAt(0, &segment).has_value());
}

}  // namespace
}  // namespace syncline::clocksync
