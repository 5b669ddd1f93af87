// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_pace.h"

#include <gtest/gtest.h>

#include <array>

namespace syncline::agent {
namespace {

using Depth = DeviceLibrary::Depth;
constexpr int64_t kSecond = 1'000'000'000;

struct Spent {
  std::array<int64_t, 3> readings{};
  int64_t cpu_ns = 0;
};

// What is read in so many seconds, where a reading costs that by depth.
Spent Spend(size_t devices, const std::array<int64_t, 3>& cost_ns, int64_t seconds) {
  Spent spent;
  int64_t now_ns = 0;
  DevicePace pace(devices, now_ns);
  pace.Took(Depth::kAll, now_ns, 0);
  while (true) {
    now_ns += pace.WaitNs(now_ns);
    if (now_ns > seconds * kSecond) return spent;
    const Depth depth = pace.Next(now_ns).value();
    const int64_t cpu_ns = cost_ns[static_cast<size_t>(depth)];
    now_ns += cpu_ns;
    pace.Took(depth, now_ns, cpu_ns);
    ++spent.readings[static_cast<size_t>(depth)];
    spent.cpu_ns += cpu_ns;
  }
}

TEST(DevicePace, WhatCostsLittleIsReadOften) {
  const Spent spent = Spend(1, {1000, 2000, 3000}, 100);
  EXPECT_NEAR(static_cast<double>(spent.readings[0]), 400, 5);
  EXPECT_NEAR(static_cast<double>(spent.readings[1]), 90, 2);
  EXPECT_NEAR(static_cast<double>(spent.readings[2]), 9, 1);
}

TEST(DevicePace, CountersOfAnH100AreReadLessOftenThanItsClock) {
  const Spent spent = Spend(1, {60'000, 6'000'000, 10'000'000}, 100);
  EXPECT_GT(spent.readings[0], 350);
  EXPECT_GT(spent.readings[1], 45);
  EXPECT_LE(spent.cpu_ns, kSecond / 2);
}

TEST(DevicePace, EachDeviceHasItsShareOfAProcessor) {
  const Spent spent = Spend(8, {8 * 60'000, 8 * 6'000'000, 8 * 10'000'000}, 100);
  EXPECT_GT(spent.readings[1], 45);
  EXPECT_LE(spent.cpu_ns, 8 * kSecond / 2);
}

TEST(DevicePace, ADriverThatIsSlowInAllIsAskedRarely) {
  const Spent spent = Spend(1, {50'000'000, 60'000'000, 70'000'000}, 1000);
  EXPECT_GT(spent.readings[0] + spent.readings[1] + spent.readings[2], 50);
  EXPECT_LE(spent.cpu_ns, 1000 * kSecond / 200);
}

TEST(DevicePace, NothingIsReadBeforeItIsDue) {
  DevicePace pace(1, 0);
  EXPECT_EQ(pace.Next(0), Depth::kAll);
  pace.Took(Depth::kAll, 0, 0);
  const int64_t due_ns = pace.WaitNs(0);
  EXPECT_EQ(pace.Next(due_ns - 1), std::nullopt);
  EXPECT_EQ(pace.Next(due_ns), Depth::kLevels);
  for (const int64_t before_ns : {int64_t{1}, int64_t{999'999}, int64_t{1'000'000}}) {
    EXPECT_EQ(pace.WaitMs(due_ns - before_ns), 1) << before_ns;
  }
  EXPECT_EQ(pace.WaitMs(due_ns - 1'000'001), 2);
  EXPECT_EQ(pace.WaitMs(due_ns + 5), 0);
}

}  // namespace
}  // namespace syncline::agent
