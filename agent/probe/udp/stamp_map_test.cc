// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/stamp_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "agent/probe/udp/schedule.h"

namespace syncline::probe {
namespace {

using Answer = StampMap::Answer;

// REALTIME is RAW + 4000, read with a bracket of `width`.
ClockReading ReadingAt(int64_t raw_ns, int64_t step_ns = 0, int64_t width_ns = 31) {
  return {raw_ns, raw_ns + 4000 + step_ns, raw_ns + width_ns};
}

TEST(StampMap, TheExampleOfTheHeader) {
  StampMap map;
  map.set_rate_ppb_max(500'000);
  map.Add({1000, 5000, 1031});
  const StampMap::Stamp stamp{.clock_ns = 25'000, .before_raw_ns = 2000, .fetched_raw_ns = 21'000};
  EXPECT_EQ(map.ToRaw(stamp).answer, Answer::kNoReadings) << "none after";
  map.Add({21'000, 25'015, 21'015});
  const auto at = map.ToRaw(stamp);
  ASSERT_EQ(at.answer, Answer::kKnown);
  EXPECT_EQ(at.lo_raw_ns, 21'000 - 15 - 1);
  EXPECT_EQ(at.hi_raw_ns, 1031 + 20'000 + 11);
}

// A clock may have been steered faster when it was read than it is now, and the other way round.
TEST(StampMap, TheFasterOfTheTwoRatesHolds) {
  const StampMap::Stamp stamp{.clock_ns = 25'000, .before_raw_ns = 2000, .fetched_raw_ns = 21'000};
  for (const int64_t at_reading_ppb : {0, 100'000, 5'000'000}) {
    for (const int64_t now_ppb : {0, 100'000, 5'000'000}) {
      StampMap map;
      map.Add({1000, 5000, 1031, at_reading_ppb});
      map.Add({21'000, 25'000, 21'000, now_ppb});
      map.set_rate_ppb_max(now_ppb);
      const auto at = map.ToRaw(stamp);
      ASSERT_EQ(at.answer, Answer::kKnown);
      // 20,000 ns at that rate, and one for the rounding.
      const int64_t error = std::max(at_reading_ppb, now_ppb) / 50'000 * 1'005 / 1'000 + 1;
      EXPECT_NEAR(static_cast<double>(at.hi_raw_ns), 21'031.0 + static_cast<double>(error), 1);
    }
  }
}

TEST(StampMap, SaysNothingWithoutReadingsOnBothSides) {
  constexpr int64_t kFetched = 10'000'000;
  const StampMap::Stamp received{.clock_ns = kFetched - 5000 + 4000, .fetched_raw_ns = kFetched};
  StampMap map;
  EXPECT_EQ(map.ToRaw(received).answer, Answer::kNoReadings);
  map.Add(ReadingAt(kFetched));
  EXPECT_EQ(map.ToRaw(received).answer, Answer::kNoReadings) << "none before";
  StampMap far = map;
  far.Add(ReadingAt(kFetched - StampMap::kReachNs - 1));
  EXPECT_EQ(far.ToRaw(received).answer, Answer::kNoReadings) << "too long before";
  StampMap close = map;
  close.Add(ReadingAt(kFetched - 5000 - 1500));
  EXPECT_EQ(close.ToRaw(received).answer, Answer::kNoReadings) << "perhaps not before";
  close.Add(ReadingAt(kFetched - 5000 - 2500));
  EXPECT_EQ(close.ToRaw(received).answer, Answer::kKnown);
  close.Forget();
  EXPECT_EQ(close.ToRaw(received).answer, Answer::kNoReadings);
}

TEST(StampMap, NoticesReadingsThatContradictEachOther) {
  for (const int64_t step : {-100, 100}) {
    StampMap map;
    map.Add(ReadingAt(0));
    map.Add(ReadingAt(1000, step));
    const StampMap::Stamp stamp{.clock_ns = 4500, .before_raw_ns = 100, .fetched_raw_ns = 900};
    EXPECT_EQ(map.ToRaw(stamp).answer, Answer::kContradiction);
  }
}

// One step anywhere between the first reading and the last, also of a stamp that was taken already
// (as the testbed does it), of any size: the truth is inside, or nothing is said.
TEST(StampMap, ContainsTheTruthWhateverSteps) {
  Random random(11);
  int known = 0;
  int contradictions = 0;
  for (int round = 0; round < 200'000; ++round) {
    StampMap map;
    map.set_rate_ppb_max(500'000);
    const int64_t size = int64_t{1} << random.Between(0, 20);
    const int64_t step = random.Between(-size, size + 1);
    const int64_t step_at = random.Between(0, 60'000);
    const auto wall = [&](int64_t raw) { return raw + 7'000'000 + (raw >= step_at ? step : 0); };
    const auto read = [&](int64_t raw) {
      map.Add({raw - random.Between(0, 40), wall(raw), raw + random.Between(0, 40)});
    };
    read(random.Between(1'000, 20'000));
    read(random.Between(20'100, 25'000));
    const int64_t before = 25'100;
    const int64_t stamped = random.Between(before, 40'000);
    const int64_t fetched = random.Between(stamped, 45'000);
    read(random.Between(45'100, 59'000));
    const bool shifted_when_fetched = random.Between(0, 2) == 0;
    const int64_t stamp = shifted_when_fetched ? stamped + wall(fetched) - fetched : wall(stamped);
    const auto at =
        map.ToRaw({.clock_ns = stamp, .before_raw_ns = before, .fetched_raw_ns = fetched + 50});
    contradictions += at.answer == Answer::kContradiction ? 1 : 0;
    if (at.answer != Answer::kKnown) continue;
    ++known;
    ASSERT_LE(at.lo_raw_ns, stamped) << "step " << step << " at " << step_at;
    ASSERT_GE(at.hi_raw_ns, stamped) << "step " << step << " at " << step_at;
  }
  EXPECT_GT(known, 50'000);
  EXPECT_GT(contradictions, 20'000);
}

// Whatever the wall clock's rate does within the limit, the truth is inside, and a constant added
// to the wall clock changes nothing.
TEST(StampMap, ContainsTheTruthUnderAnySlewWithinTheLimit) {
  Random random(7);
  int known = 0;
  for (int round = 0; round < 2000; ++round) {
    const int64_t rate_max_ppb = random.Between(0, 2) == 0 ? 500'000 : 100'000'000;
    StampMap map;
    map.set_rate_ppb_max(rate_max_ppb);
    StampMap shifted;
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
        const ClockReading reading{raw - random.Between(0, 40), wall, raw + random.Between(0, 40)};
        map.Add(reading);
        shifted.Add({reading.raw_before_ns, wall + shift, reading.raw_after_ns});
      }
    }
    for (const auto& [at, wall] : stamps) {
      StampMap::Stamp stamp{.clock_ns = wall, .before_raw_ns = at - 40, .fetched_raw_ns = at + 41};
      const auto found = map.ToRaw(stamp);
      if (found.answer == Answer::kNoReadings) continue;  // too close to one that is not counted
      ++known;
      // A reading has whole nanoseconds: one more on each side.
      EXPECT_LE(found.lo_raw_ns, at + 1);
      EXPECT_GE(found.hi_raw_ns, at - 1);
      stamp.clock_ns += shift;
      const auto again = shifted.ToRaw(stamp);
      EXPECT_EQ(again.lo_raw_ns, found.lo_raw_ns);
      EXPECT_EQ(again.hi_raw_ns, found.hi_raw_ns);
    }
  }
  EXPECT_GT(known, 10'000);
}

}  // namespace
}  // namespace syncline::probe
