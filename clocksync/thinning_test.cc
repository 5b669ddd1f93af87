// SPDX-License-Identifier: Apache-2.0
#include "clocksync/thinning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "clocksync/edge_fit.h"

namespace syncline::clocksync {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kAhead = 500 * kSecond;

// Bursts of eight exchanges every second; ways of 1 us and an exponential delay, a drift of 20 ppm
// that wanders.
std::vector<ProbeSample> Bursts(int seconds, uint64_t seed, int64_t step_ns = 0,
                                int at_second = 0) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> delay(1.0 / 500);
  const auto remote = [&](int64_t t) {
    const auto s = static_cast<double>(t) / 1e9;
    return t + kAhead + static_cast<int64_t>(20'000 * s + 2 * s * s) +
           (t >= at_second * kSecond + kSecond / 2 ? step_ns : 0);
  };
  std::vector<ProbeSample> samples;
  for (int second = 0; second < seconds; ++second) {
    for (int i = 0; i < 8; ++i) {
      const int64_t t1 = second * kSecond + i * 70'000 + 1;
      const int64_t t2 = t1 + 1'000 + static_cast<int64_t>(delay(random));
      const int64_t t3 = t2 + 2'000;
      const int64_t t4 = t3 + 1'000 + static_cast<int64_t>(delay(random));
      samples.push_back({t1, remote(t2), remote(t3), t4, StampSource::kKernel});
    }
  }
  return samples;
}

Corridor CorridorOf(const std::vector<ProbeSample>& samples) {
  return FitCorridor(CollectEdge({.samples = samples}).constraints, {.knot_ns = kSecond / 5});
}

TEST(ThinningTest, LeavesAThirdAtMostAndTheSameBound) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<ProbeSample> all = Bursts(64, seed);
    const std::vector<ProbeSample> thin = Thinned(all);
    EXPECT_LT(thin.size(), all.size() / 3);
    const Corridor before = CorridorOf(all), after = CorridorOf(thin);
    ASSERT_EQ(after.breaks.size(), 0u);
    for (int64_t x = kSecond; x < 63 * kSecond; x += kSecond / 7) {
      const Interval was = before.map.EndsAt(x), is = after.map.EndsAt(x);
      // Knots stand elsewhere: nanoseconds of bend and rounding.
      EXPECT_NEAR(static_cast<double>(is.lo), static_cast<double>(was.lo), 3);
      EXPECT_NEAR(static_cast<double>(is.hi), static_cast<double>(was.hi), 3);
    }
  }
}

TEST(ThinningTest, InPiecesOrAgainItIsTheSame) {
  const std::vector<ProbeSample> all = Bursts(64, 7);
  const std::vector<ProbeSample> at_once = Thinned(all);
  const auto whole_cells = static_cast<ptrdiff_t>(32 * 8);
  std::vector<ProbeSample> in_pieces = Thinned(std::span(all).first(whole_cells));
  const std::vector<ProbeSample> rest = Thinned(std::span(all).subspan(whole_cells));
  in_pieces.insert(in_pieces.end(), rest.begin(), rest.end());
  const auto times = [](const std::vector<ProbeSample>& samples) {
    std::vector<int64_t> begins;
    for (const ProbeSample& s : samples) begins.push_back(s.t1_local_ns);
    return begins;
  };
  EXPECT_EQ(times(in_pieces), times(at_once));
  EXPECT_EQ(times(Thinned(at_once)), times(at_once));
  EXPECT_TRUE(std::is_sorted(at_once.begin(), at_once.end(), [](const auto& a, const auto& b) {
    return a.t1_local_ns < b.t1_local_ns;
  }));
}

TEST(ThinningTest, AStepStaysAsNarrow) {
  const std::vector<ProbeSample> all = Bursts(64, 3, 1'000'000, 20);
  const std::vector<ProbeSample> thin = Thinned(all);
  EXPECT_LT(thin.size(), all.size() / 2);
  const Corridor before = CorridorOf(all), after = CorridorOf(thin);
  ASSERT_EQ(before.breaks.size(), 1u);
  ASSERT_EQ(after.breaks.size(), 1u);
  EXPECT_EQ(after.breaks[0].begin_ns, before.breaks[0].begin_ns);
  EXPECT_EQ(after.breaks[0].end_ns, before.breaks[0].end_ns);
}

TEST(ThinningTest, EverySecondIsStillSampled) {
  const std::vector<ProbeSample> thin = Thinned(Bursts(64, 9));
  int64_t last = 0;
  for (const ProbeSample& s : thin) {
    EXPECT_LT(s.t1_local_ns - last, 2 * kSecond);
    last = s.t1_local_ns;
  }
  EXPECT_GE(last, 63 * kSecond);
}

TEST(ThinningTest, WhatCannotBeUsedIsKeptToBeTold) {
  EXPECT_TRUE(Thinned({}).empty());
  std::vector<ProbeSample> odd(100);  // no stamp at all
  EXPECT_EQ(Thinned(odd).size(), odd.size());
  odd = {{INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN}, {INT64_MIN, 1, 2, INT64_MAX}, {5, 0, 0, 9}};
  EXPECT_EQ(Thinned(odd).size(), odd.size());
  // One way alone.
  std::vector<ProbeSample> one_way = Bursts(16, 4);
  for (ProbeSample& s : one_way) s.t3_remote_ns = s.t4_local_ns = 0;
  EXPECT_LT(Thinned(one_way).size(), one_way.size() / 2);
}

}  // namespace
}  // namespace syncline::clocksync
