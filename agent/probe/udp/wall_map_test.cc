#include "agent/probe/udp/wall_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "agent/probe/udp/schedule.h"

namespace syncline::probe {
namespace {

TEST(WallMap, TheExampleOfTheHeader) {
  WallMap map;
  map.set_rate_ppb_max(500'000);
  map.Add({1000, 5000, 1031});
  EXPECT_FALSE(map.ToRaw(25'000).has_value()) << "no reading after the stamp";
  map.Add({1'000'000, 1'004'000, 1'000'031});  // far: says less
  const auto at = map.ToRaw(25'000);
  ASSERT_TRUE(at.has_value());
  EXPECT_EQ(at->lo_raw_ns, 1000 + 20'000 - 11);
  EXPECT_EQ(at->hi_raw_ns, 1031 + 20'000 + 11);
}

TEST(WallMap, SaysNothingWithoutCloseReadings) {
  WallMap map;
  EXPECT_FALSE(map.ToRaw(0).has_value());
  map.Add({0, 0, 30});
  EXPECT_TRUE(map.ToRaw(-900'000'000).has_value());
  EXPECT_FALSE(map.ToRaw(-1'100'000'000).has_value());
  map.Forget();
  EXPECT_FALSE(map.ToRaw(-900'000'000).has_value());
  map.Add({0, 50'000, 30});
  ASSERT_TRUE(map.ToRaw(50'000).has_value()) << "what was forgotten came back";
  EXPECT_EQ(map.ToRaw(50'000)->hi_raw_ns, 30);
}

TEST(WallMap, NoticesReadingsThatContradictEachOther) {
  WallMap map;
  map.Add({0, 1'000'000, 30});
  map.Add({1000, 1'001'000 + 100, 1030});  // stepped by 100 ns in a microsecond
  EXPECT_FALSE(map.ToRaw(1'000'500).has_value());
}

// Whatever the wall clock's rate does within the limit, the truth is inside, and a constant added
// to the wall clock changes nothing.
TEST(WallMap, ContainsTheTruthUnderAnySlewWithinTheLimit) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    const int64_t rate_max_ppb = random.Between(0, 2) == 0 ? 500'000 : 100'000'000;
    WallMap map;
    map.set_rate_ppb_max(rate_max_ppb);
    WallMap shifted;
    shifted.set_rate_ppb_max(rate_max_ppb);
    const int64_t shift = random.Between(-1'000'000'000'000'000, 1'000'000'000'000'000);
    // Walks through true RAW time in steps, with a new rate in each; wall in picoseconds.
    int64_t raw = 1'000'000;
    int64_t wall_ps = 77'000'000'000;
    std::vector<std::pair<int64_t, int64_t>> stamps;  // raw, wall
    for (int i = 0; i < 20; ++i) {
      const int64_t rate_ppb = random.Between(-rate_max_ppb, rate_max_ppb + 1);
      const int64_t step = random.Between(1, 30'000);
      raw += step;
      wall_ps += step * 1000 + step * rate_ppb / 1'000'000;
      const int64_t wall = wall_ps / 1000;
      if (i % 2 == 1 && i < 19) {
        stamps.emplace_back(raw, wall);
      } else {
        const WallReading reading{raw - random.Between(0, 40), wall, raw + random.Between(0, 40)};
        map.Add(reading);
        shifted.Add({reading.raw_before_ns, wall + shift, reading.raw_after_ns});
      }
    }
    map.Add({raw, wall_ps / 1000, raw + 1});
    shifted.Add({raw, wall_ps / 1000 + shift, raw + 1});
    for (const auto& [at, wall] : stamps) {
      const auto found = map.ToRaw(wall);
      ASSERT_TRUE(found.has_value());
      // A reading has whole nanoseconds: one more on each side.
      EXPECT_LE(found->lo_raw_ns, at + 1);
      EXPECT_GE(found->hi_raw_ns, at - 1);
      const auto again = shifted.ToRaw(wall + shift);
      ASSERT_TRUE(again.has_value());
      EXPECT_EQ(again->lo_raw_ns, found->lo_raw_ns);
      EXPECT_EQ(again->hi_raw_ns, found->hi_raw_ns);
    }
  }
}

}  // namespace
}  // namespace syncline::probe
