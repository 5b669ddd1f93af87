// SPDX-License-Identifier: Apache-2.0
#include "analysis/device_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis {
namespace {

using evidence::DeviceSample;
using evidence::DeviceValue;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

// One device, read every 200 ms from `from_ms` to `to_ms`, each time within 2 ms; held back by its
// temperature for `percent` of all time.
evidence::DeviceSamples Samples(int64_t from_ms, int64_t to_ms, int64_t percent) {
  evidence::DeviceSamples samples;
  samples.devices = {{.name = "H100"}};
  for (int64_t ms = from_ms; ms <= to_ms; ms += 200) {
    evidence::DeviceSample sample{.device = 0, .at_ns = ms * kMs, .until_ns = (ms + 2) * kMs};
    sample.values.Set(DeviceValue::kThermalNs, (ms + 1) * kMs / 100 * percent);
    sample.values.Set(DeviceValue::kEnergyMj, ms * 700);
    sample.values.Set(DeviceValue::kSmMhz, ms);
    samples.samples.push_back(sample);
  }
  return samples;
}

TEST(HealthOf, TheTruthLiesBetweenTheReadingsInsideAndAround) {
  for (const int64_t percent : {0, 3, 41, 100}) {
    const auto all = HealthOf(Samples(0, 20'000, percent), {5'050 * kMs, 15'150 * kMs});
    ASSERT_EQ(all.size(), 1U);
    const WindowShare& share = all[0].held_back.at(DeviceValue::kThermalNs);
    const double truth = static_cast<double>(percent) / 100;
    EXPECT_LE(share.lo, truth + 1e-9);
    EXPECT_GE(share.hi, truth - 1e-9);
    EXPECT_NEAR(share.est, truth, 1e-6);
    EXPECT_LE(share.hi - share.lo, 2 * 0.4 / 10.1);
    EXPECT_FALSE(all[0].held_back.contains(DeviceValue::kPowerNs));
  }
}

// All that a throttled time may do: it was all of it in the part that no reading bounds.
TEST(HealthOf, WhereReadingsEndTheRestMayHaveBeenHeldBack) {
  const auto all = HealthOf(Samples(1'000, 9'000, 10), {0, 10'000 * kMs});
  const WindowShare& share = all.at(0).held_back.at(DeviceValue::kThermalNs);
  EXPECT_NEAR(share.lo, 0.08, 1e-6);
  EXPECT_NEAR(share.est, 0.1, 1e-6);
  EXPECT_NEAR(share.hi, 0.08 + 0.1002 + 0.1, 1e-3);
}

TEST(HealthOf, ValuesAreThoseInsideTheWindow) {
  const auto all = HealthOf(Samples(0, 3'000, 0), {900 * kMs, 2'100 * kMs});
  const ValueSpread& mhz = all.at(0).values.at(DeviceValue::kSmMhz);
  EXPECT_EQ(mhz.min, 1'000);
  EXPECT_EQ(mhz.max, 2'000);
  EXPECT_EQ(mhz.mean, 1'500);
  EXPECT_EQ(all[0].samples, 6U);
  const CounterGrowth& energy = all[0].grown.at(DeviceValue::kEnergyMj);
  EXPECT_EQ(energy.amount, (2'200 - 800) * 700);
  EXPECT_EQ(energy.inside, (2'000 - 1'000) * 700);
  EXPECT_EQ(energy.beside_ns, 102 * kMs);
  EXPECT_EQ(all[0].readings_end_ns, std::nullopt);
  EXPECT_THAT(all[0].values, Not(Contains(Key(DeviceValue::kPowerMw))));
}

// Energy is read rarely: what was drawn beside the window is not its power.
TEST(HealthOf, PowerIsByTheCounterOfEnergyOnlyWhereItsReadingsAreNear) {
  const evidence::DeviceSamples samples = Samples(0, 30'000, 0);
  EXPECT_EQ(HealthOf(samples, {5'001 * kMs, 15'001 * kMs}).at(0).mean_power_mw, 700'000);
  EXPECT_EQ(HealthOf(samples, {900 * kMs, 2'100 * kMs}).at(0).mean_power_mw, std::nullopt);
  EXPECT_EQ(HealthOf(Samples(5'000, 7'000, 0), {0, 10'000 * kMs}).at(0).mean_power_mw, std::nullopt)
      << "of a small part of it";
}

TEST(HealthOf, CountersOfPcieThatWrapAreLeftOut) {
  evidence::DeviceSamples samples = Samples(0, 2'000, 0);
  for (DeviceSample& sample : samples.samples) {
    sample.values.Set(DeviceValue::kPcieSentBytes, sample.at_ns);
    sample.values.Set(DeviceValue::kPcieReceivedBytes, sample.at_ns);
    sample.values.Set(DeviceValue::kPcieReplays, sample.at_ns / kMs);
  }
  const auto all = HealthOf(samples, {0, 2'000 * kMs});
  EXPECT_THAT(all.at(0).grown, Contains(Key(DeviceValue::kPcieReplays)));
  EXPECT_THAT(all[0].grown, Not(Contains(Key(DeviceValue::kPcieSentBytes))));
  EXPECT_THAT(all[0].grown, Not(Contains(Key(DeviceValue::kPcieReceivedBytes))));
}

TEST(HealthOf, ReadingsThatEndEarlyAreSaid) {
  EXPECT_EQ(HealthOf(Samples(0, 200, 0), {0, 7'000 * kMs}).at(0).readings_end_ns, 202 * kMs);
  EXPECT_EQ(HealthOf(Samples(0, 5'000, 0), {0, 7'000 * kMs}).at(0).readings_end_ns, std::nullopt);
  EXPECT_EQ(HealthOf(Samples(0, 600, 0), {0, 1'000 * kMs}).at(0).readings_end_ns, 602 * kMs);
  const auto none = HealthOf(Samples(0, 200, 0), {1'000 * kMs, 7'000 * kMs});
  EXPECT_EQ(none.at(0).samples, 0U);
  EXPECT_EQ(none[0].readings_end_ns, std::nullopt);
}

TEST(HealthOf, WhoWasFoundBeforeTheWindowCountsOnlyWhereNobodyLookedInIt) {
  evidence::DeviceSamples samples = Samples(0, 10'000, 0);
  samples.processes = {{.pid = 7}, {.pid = 8}};
  samples.users = {{0, 900 * kMs, 0}, {0, 2'900 * kMs, 1}};
  const auto used = [&](int64_t from_ms, int64_t to_ms) {
    std::vector<int32_t> pids;
    const auto found = HealthOf(samples, {from_ms * kMs, to_ms * kMs});
    for (const auto& user : found.at(0).users) pids.push_back(user.pid);
    return pids;
  };
  EXPECT_THAT(used(1'000, 1'500), ElementsAre(7));
  EXPECT_THAT(used(1'000, 3'000), ElementsAre(8));
  EXPECT_THAT(used(3'000, 3'500), ElementsAre(8));
  EXPECT_THAT(used(3'000, 6'000), IsEmpty()) << "it was looked for, and nobody was found";
}

// NVML's "reliability" is a limit of voltage in some devices, and not said to be one.
TEST(HeldBackBy, SaysNoMoreThanTheDriver) {
  EXPECT_STREQ(HeldBackBy(DeviceValue::kReliabilityNs), "by its reliability limit");
}

TEST(HealthOf, ACounterThatBeginsAnewSaysNothing) {
  evidence::DeviceSamples samples = Samples(0, 2'000, 50);
  samples.samples[5].values.Set(DeviceValue::kThermalNs, 0);
  EXPECT_THAT(HealthOf(samples, {0, 2'000 * kMs}).at(0).held_back, IsEmpty());
}

TEST(HealthOf, WhatLiesOutsideIsNotCounted) {
  evidence::DeviceSamples samples = Samples(0, 2'000, 50);
  samples.processes = {{.pid = 7, .start_ticks = 5, .pid_namespace_inode = 3, .own_pid = 1},
                       {.pid = 8, .name = "other"}};
  samples.users = {{0, 4'900 * kMs, 0}, {0, 5'900 * kMs, 0}, {0, 5'900 * kMs, 1}, {0, 1, 1}};
  samples.errors = {{0, 1'000 * kMs, 1'200 * kMs, 31}, {0, 5'800 * kMs, 6'000 * kMs, 79}};
  const auto all = HealthOf(samples, {5'000 * kMs, 7'000 * kMs});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all[0].held_back, IsEmpty());
  EXPECT_THAT(all[0].values, IsEmpty());
  ASSERT_EQ(all[0].users.size(), 2U);
  EXPECT_EQ(all[0].users[0].process, (ProcessKey{0, 3, 1, 5}));
  EXPECT_EQ(all[0].users[1].process, ProcessKey{});
  ASSERT_EQ(all[0].errors.size(), 1U);
  EXPECT_EQ(all[0].errors[0].number, 79);
  EXPECT_EQ(all[0].errors[0].from_ns, 800 * kMs);
  EXPECT_EQ(all[0].errors[0].until_ns, 1'000 * kMs);
}

TEST(HealthOf, ADeviceOfWhichNothingIsSaidIsNotThere) {
  evidence::DeviceSamples samples;
  samples.devices = {{.name = "silent"}, {.name = "lost"}, {.name = "used"}};
  EXPECT_THAT(HealthOf(samples, {0, 1}), IsEmpty());
  samples.errors = {{1, 5, 7, 79}};
  samples.processes = {{.pid = 7}};
  samples.users = {{2, 6, 0}};
  const auto all = HealthOf(samples, {0, 10});
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].device.name, "lost");
  EXPECT_EQ(all[0].samples, 0U);
  EXPECT_THAT(all[0].errors, SizeIs(1));
  EXPECT_THAT(all[0].held_back, IsEmpty());
  EXPECT_THAT(all[1].users, SizeIs(1));
}

// What damage can do to the greatest amounts: all casts stay within their types.
TEST(HealthOf, TheGreatestAmountsAreNumbers) {
  evidence::DeviceSamples samples;
  samples.devices = {{}};
  for (const int64_t amount : {int64_t{0}, int64_t{1'000'000'000'000'000'000}}) {
    DeviceSample sample{.device = 0, .at_ns = amount > 0 ? 2 : 0, .until_ns = amount > 0 ? 2 : 0};
    sample.values.Set(DeviceValue::kEnergyMj, amount);
    sample.values.Set(DeviceValue::kThermalNs, amount);
    samples.samples.push_back(sample);
  }
  const auto all = HealthOf(samples, {0, 2});
  EXPECT_EQ(all.at(0).mean_power_mw, std::nullopt);
  EXPECT_EQ(all[0].held_back.at(DeviceValue::kThermalNs).hi, 1);
}

}  // namespace
}  // namespace syncline::analysis
