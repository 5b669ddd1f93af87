// SPDX-License-Identifier: Apache-2.0
// Models of wall clocks that are slewed at any time: the truth lies in what they say.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "clocksync/builder.h"
#include "clocksync/clock_model.h"
#include "clocksync/corridor.h"

namespace syncline::clocksync {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kEpoch = 1'790'857'026'000'000'000;

// Runs at a new rate of up to `rate_ppb_max` every 37 ms.
class SlewedClock {
 public:
  SlewedClock(int64_t offset_ns, int64_t rate_ppb_max, uint32_t seed) : offset_ns_(offset_ns) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int64_t> rate(-rate_ppb_max, rate_ppb_max);
    for (int i = 0; i < 1'000; ++i) rates_.push_back(rate(random));
  }
  int64_t At(int64_t ns) const {
    __int128 drift = 0;
    for (int64_t begin = 0, i = 0; begin < ns; begin += kPieceNs, ++i) {
      drift += __int128{rates_[static_cast<size_t>(i)]} * std::min(kPieceNs, ns - begin);
    }
    return kEpoch + offset_ns_ + ns + static_cast<int64_t>(drift / 1'000'000'000);
  }

 private:
  static constexpr int64_t kPieceNs = 37 * kMs;
  int64_t offset_ns_;
  std::vector<int64_t> rates_;
};

BuildOptions Options(const std::vector<std::string>& nodes) {
  return {.reference = nodes[0],
          .zero_reference_raw_ns = kEpoch,
          .rate_ppb_max = 500'000,
          .wall_clocks = true};
}

// Everybody enters, the last one a little later, and leaves up to 200 us after that.
class WallClocksTest : public testing::TestWithParam<uint32_t> {};

TEST_P(WallClocksTest, TheTruthIsInside) {
  std::mt19937 random(GetParam());
  const size_t count = 2 + GetParam() % 5;
  BuildInput input;
  std::vector<SlewedClock> clocks;
  for (size_t i = 0; i < count; ++i) {
    input.nodes.push_back("rank " + std::to_string(i));
    clocks.emplace_back(static_cast<int64_t>(random() % 40) * kMs - 20 * kMs, 249'000, random());
  }
  const auto at = [&](size_t node, int64_t ns) {
    return NodeTime{{static_cast<uint32_t>(node), ClockKind::kRealtime}, clocks[node].At(ns)};
  };
  std::vector<int64_t> instants;
  int64_t now = 5 * kMs;
  for (int i = 0; i < 60; ++i) {
    now += static_cast<int64_t>(random() % 120) * kMs;
    instants.push_back(now);
    std::vector<int64_t> entered;
    for (size_t n = 0; n < count; ++n)
      entered.push_back(now + static_cast<int64_t>(random() % kMs));
    const int64_t last = *std::max_element(entered.begin(), entered.end());
    for (size_t r = 0; r < count; ++r) {
      const int64_t left = last + 1'000 + static_cast<int64_t>(random() % 200'000);
      for (size_t s = 0; s < count; ++s) {
        if (s != r) input.causal.push_back({at(s, entered[s]), at(r, left)});
      }
    }
  }
  const auto result = BuildModel(input, Options(input.nodes));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->events.empty()) << result->events.front().text;
  std::vector<int64_t> bounds;
  for (int64_t ns = 0; ns < now + 100 * kMs; ns += 777'777) {
    const int64_t truth = clocks[0].At(ns) - kEpoch;
    for (size_t n = 1; n < count; ++n) {
      const TimelineEstimate where = result->model.Locate(at(n, ns));
      ASSERT_TRUE(where.bounded());
      ASSERT_LE(where.lo.ns, truth) << "node " << n << " at " << ns;
      ASSERT_GE(where.hi.ns, truth) << "node " << n << " at " << ns;
      bounds.push_back(where.bound_ns());
      const DurationEstimate apart =
          result->model.Difference(at(n, ns), at((n + 1) % count, ns + 200'000));
      const int64_t length = clocks[0].At(ns + 200'000) - clocks[0].At(ns);
      ASSERT_LE(apart.lo_ns, length) << "node " << n << " at " << ns;
      ASSERT_GE(apart.hi_ns, length) << "node " << n << " at " << ns;
    }
  }
  std::sort(bounds.begin(), bounds.end());
  RecordProperty("bound_median_ns", std::to_string(bounds[bounds.size() / 2]));
  EXPECT_LT(bounds[bounds.size() / 2], kMs / 4);
}
INSTANTIATE_TEST_SUITE_P(Seeds, WallClocksTest, testing::Range<uint32_t>(0, 10));

// Between two constraints theta may have gone both ways.
TEST(FitVaryingRateTest, LimitsFromBothSidesMeetInBetween) {
  const Corridor corridor =
      FitVaryingRate({.upper = {{0, 100}, {1'000'000, 1'000'100}}, .lower = {{0, 0}}}, 500'000);
  EXPECT_TRUE(corridor.breaks.empty());
  const Bounds middle = corridor.map.At(500'000);
  EXPECT_NEAR(static_cast<double>(middle.hi - 500'000), 100 + 250, 3);
  EXPECT_NEAR(static_cast<double>(middle.lo - 500'000), -250, 3);
  EXPECT_GE(middle.est, middle.lo);
  EXPECT_LE(middle.est, middle.hi);
}

TEST(FitVaryingRateTest, OfOneSideAloneTheOtherStaysUnknown) {
  const Corridor corridor = FitVaryingRate({.upper = {{0, 100}, {1'000'000, 1'000'100}}}, 500'000);
  EXPECT_NEAR(static_cast<double>(corridor.map.At(500'000).hi - 500'000), 100 + 250, 3);
  EXPECT_EQ(corridor.map.At(500'000).lo, kUnknownLo);
}

TEST(FitVaryingRateTest, AContradictionGivesNothing) {
  // 600 ns in a millisecond: more than 500 ppm.
  const Corridor corridor =
      FitVaryingRate({.upper = {{0, 0}}, .lower = {{1'000'000, 1'000'600}}}, 500'000);
  EXPECT_TRUE(corridor.gave_up);
  EXPECT_TRUE(corridor.map.empty());
  EXPECT_TRUE(FitVaryingRate({}, 500'000).map.empty());
}

}  // namespace
}  // namespace syncline::clocksync
