// SPDX-License-Identifier: Apache-2.0
#include "instrumentation/device/device_clock.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

constexpr uint32_t kMonotonic = 1, kRaw = 2, kRealtime = 4, kBoottime = 8;

TEST(DeviceClock, IsTheOneByWhichTheStampWasDuringTheCall) {
  const device_times before{{1'000, 5'000, 90'000, 1'000}};
  const device_times after{{1'100, 5'100, 90'100, 1'100}};
  EXPECT_EQ(device_clocks_of(5'050, &before, &after), kRaw);
  EXPECT_EQ(device_clocks_of(90'000, &before, &after), kRealtime);
  EXPECT_EQ(device_clocks_of(1'100, &before, &after), kMonotonic | kBoottime);
  EXPECT_EQ(device_clocks_of(5'101, &before, &after), 0u);
  EXPECT_EQ(device_clocks_of(0, &before, &after), 0u);
}

TEST(DeviceClock, ALongCallCannotTellClocksApartThatAreNear) {
  const device_times before{{1'000, 1'500, 90'000, 9'000}};
  const device_times after{{3'000, 3'500, 92'000, 11'000}};
  EXPECT_EQ(device_clocks_of(2'000, &before, &after), kMonotonic | kRaw);
}

TEST(DeviceClock, PlacesBetweenReadingsOfTheTraceClock) {
  for (const int clock : {0, 1, 2, 3}) {
    device_times before;
    device_times stamped;
    device_times after;
    device_times_now(&before);
    device_times_now(&stamped);
    device_times_now(&after);
    const device_placed placed = device_clock_place(1u << clock, stamped.ns[clock]);
    EXPECT_GE(placed.ns + placed.bound_ns, before.ns[0]) << clock;
    EXPECT_LE(placed.ns, after.ns[0] + placed.bound_ns) << clock;
    if (clock == 0) EXPECT_EQ(placed.bound_ns, 0u);
  }
}

TEST(DeviceClock, TheBoundHoldsByWhicheverClockItIs) {
  device_times now;
  device_times_now(&now);
  const uint64_t stamp = now.ns[0];
  const device_placed either = device_clock_place(kMonotonic | kRealtime, stamp);
  const device_placed by_realtime = device_clock_place(kRealtime, stamp);
  const uint64_t apart =
      either.ns > by_realtime.ns ? either.ns - by_realtime.ns : by_realtime.ns - either.ns;
  EXPECT_EQ(either.ns, stamp);
  EXPECT_GE(either.bound_ns + 1'000'000, apart);
  EXPECT_GT(either.bound_ns, 1'000'000'000u);  // they are years apart
}

TEST(DeviceClock, TheBoundGrowsWithTheAgeOfTheStamp) {
  device_times now;
  device_times_now(&now);
  const uint64_t second = 1'000'000'000;
  EXPECT_GE(device_clock_place(kRaw, now.ns[1] - 2 * second).bound_ns, 1'000'000u);
}

}  // namespace
