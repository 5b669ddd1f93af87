// SPDX-License-Identifier: Apache-2.0
#include "timeline/device_collectives.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace syncline::timeline {
namespace {

constexpr int64_t kMs = 1'000'000;

// Collectives of a device whose clock is `apart_ns` ahead of the host's and gains `ppm`, with the
// host's times at which they truly began.
struct Made {
  std::vector<DeviceCollective> collectives;
  std::vector<int64_t> begins_ns;
};

Made Make(std::mt19937_64* random, int64_t apart_ns, int64_t ppm, bool with_since) {
  std::uniform_int_distribution<int64_t> gap_ns(0, 20 * kMs);
  std::uniform_int_distribution<int64_t> short_ns(1'000, 400'000);
  Made made;
  int64_t at_ns = 1'000 * kMs;
  const auto device = [&](int64_t host_ns) {
    return host_ns + apart_ns + host_ns / 1'000'000 * ppm;
  };
  for (int i = 0; i < 200; ++i) {
    at_ns += gap_ns(*random);
    const int64_t asked_ns = at_ns;
    const int64_t begin_ns = asked_ns + short_ns(*random);
    const int64_t end_ns = begin_ns + short_ns(*random);
    const int64_t seen_ns = end_ns + short_ns(*random);
    DeviceCollective one;
    one.begin_device_ns = device(begin_ns);
    one.end_device_ns = device(end_ns);
    if (with_since) one.since_ns = asked_ns;
    one.ahead_ns = seen_ns - one.end_device_ns;
    one.watched_ns = one.duration_ns();
    made.collectives.push_back(one);
    made.begins_ns.push_back(begin_ns);
    at_ns = end_ns;
  }
  return made;
}

TEST(DeviceCollectivesTest, TheTrueTimeLiesWithinTheBound) {
  std::mt19937_64 random(7);
  for (const int64_t ppm : {-400, -50, 0, 50, 400}) {
    for (const int64_t apart_ns : {-3'600'000 * kMs, int64_t{0}, 1'700'000'000'000 * kMs}) {
      Made made = Make(&random, apart_ns, ppm, true);
      ASSERT_EQ(PlaceDeviceClock(made.collectives), ClockPlacing::kPlaced);
      int64_t widest_ns = 0;
      for (size_t i = 0; i < made.begins_ns.size(); ++i) {
        const DeviceCollective& one = made.collectives[i];
        ASSERT_LE(std::abs(*one.begin_ns - made.begins_ns[i]), one.bound_ns) << ppm << " " << i;
        widest_ns = std::max(widest_ns, one.bound_ns);
      }
      // Asking and seeing took 0.2 ms each in the mean, and some take next to nothing.
      EXPECT_LT(widest_ns, 400'000);
    }
  }
}

TEST(DeviceCollectivesTest, AClockOfOtherUnitsOrRateIsNotPlaced) {
  std::mt19937_64 random(8);
  // 1 % faster; and ticks of 10 ns.
  Made faster = Make(&random, 0, 10'000, true);
  EXPECT_EQ(PlaceDeviceClock(faster.collectives), ClockPlacing::kContradiction);
  Made ticks = Make(&random, 0, 0, true);
  for (DeviceCollective& one : ticks.collectives) {
    const int64_t seen_ns = one.ahead_ns + one.end_device_ns;
    one.begin_device_ns /= 10;
    one.end_device_ns /= 10;
    one.ahead_ns = seen_ns - one.end_device_ns;
  }
  EXPECT_EQ(PlaceDeviceClock(ticks.collectives), ClockPlacing::kContradiction);
}

TEST(DeviceCollectivesTest, WithoutATimeBeforeNothingIsPlaced) {
  std::mt19937_64 random(9);
  Made made = Make(&random, 0, 0, false);
  EXPECT_EQ(PlaceDeviceClock(made.collectives), ClockPlacing::kNothingKnown);
  EXPECT_FALSE(made.collectives[0].begin_ns.has_value());
  // One is enough for all, with what the clocks may drift apart.
  made.collectives[100].since_ns = made.begins_ns[100];
  ASSERT_EQ(PlaceDeviceClock(made.collectives), ClockPlacing::kPlaced);
  EXPECT_LE(std::abs(*made.collectives[0].begin_ns - made.begins_ns[0]),
            made.collectives[0].bound_ns);
  EXPECT_GT(made.collectives[0].bound_ns, made.collectives[100].bound_ns);
}

TEST(DeviceCollectivesTest, ACoarseClockIsPlacedWithinItsSteps) {
  std::mt19937_64 random(10);
  constexpr int64_t kStepNs = 1 << 20;
  Made made = Make(&random, 0, 0, true);
  for (DeviceCollective& one : made.collectives) {
    const int64_t seen_ns = one.ahead_ns + one.end_device_ns;
    one.begin_device_ns = one.begin_device_ns / kStepNs * kStepNs;
    one.end_device_ns = one.end_device_ns / kStepNs * kStepNs;
    one.watched_ns = one.duration_ns();
    one.ahead_ns = seen_ns - one.end_device_ns;
  }
  EXPECT_EQ(ClockStepNs(made.collectives), kStepNs);
  ASSERT_EQ(PlaceDeviceClock(made.collectives), ClockPlacing::kPlaced);
  for (size_t i = 0; i < made.begins_ns.size(); ++i) {
    const DeviceCollective& one = made.collectives[i];
    EXPECT_LE(std::abs(*one.begin_ns - made.begins_ns[i]), one.bound_ns) << i;
  }
}

TEST(DeviceCollectivesTest, StampsThatComeAllAtOnceAreOfOthers) {
  std::mt19937_64 random(11);
  Made made = Make(&random, 0, 0, true);
  for (DeviceCollective& one : made.collectives) one.watched_ns = 1'000;
  EXPECT_EQ(PlaceDeviceClock(made.collectives), ClockPlacing::kOthersStamps);
  // Now and then the thread that looks for them is late.
  for (size_t i = 0; i < made.collectives.size(); ++i) {
    if (i % 4 != 0) made.collectives[i].watched_ns = made.collectives[i].duration_ns();
  }
  EXPECT_EQ(PlaceDeviceClock(made.collectives), ClockPlacing::kPlaced);
}

TEST(DeviceCollectivesTest, NoneAtAllIsFine) {
  EXPECT_EQ(PlaceDeviceClock({}), ClockPlacing::kPlaced);
}

}  // namespace
}  // namespace syncline::timeline
