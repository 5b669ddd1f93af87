// SPDX-License-Identifier: Apache-2.0
#include "evidence/device_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evidence/code_samples.h"
#include "evidence/write.h"

namespace syncline::evidence {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Text() {
  std::string text;
  AppendDevicesHead(&text);
  AppendLibrary("580.65.06", "/usr/lib/libnvidia-ml.so.1", &text);
  Append(Device{"GPU-8f6d", "NVIDIA H100 80GB", "00000000:1B:00.0", 85'520'809'984, 1980, true},
         &text);
  Append(Device{}, &text);  // does not answer
  DeviceSample sample{.device = 0, .at_ns = 5'000, .until_ns = 6'000};
  sample.values.Set(DeviceValue::kSmMhz, 1980);
  sample.values.Set(DeviceValue::kThermalNs, 0);
  sample.values.Set(DeviceValue::kNvlinkReceivedKib, int64_t{1} << 59);
  sample.values.Set(DeviceValue::kPowerMw, -5);
  Append(sample, &text);
  Append(DeviceProcess{40123, 99, 4026532281, 26, "train me"}, &text);
  Append(DeviceUser{0, 7'000, 0}, &text);
  Append(DeviceError{1, 5'000, 7'000, 79}, &text);
  AppendCost(1234, &text);
  AppendNote("device 1 does not answer", &text);
  AppendEnd(&text);
  return text;
}

TEST(DeviceSamples, WhatIsWrittenReadsBack) {
  const auto found = ParseDeviceSamples(Text());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->damaged_lines, 0U);
  EXPECT_EQ(found->driver_version, "580.65.06");
  EXPECT_EQ(found->library, "/usr/lib/libnvidia-ml.so.1");
  EXPECT_EQ(found->devices.at(0).name, "NVIDIA H100 80GB");
  EXPECT_EQ(found->devices.at(0).bus, "00000000:1B:00.0");
  EXPECT_EQ(found->devices.at(0).memory_bytes, 85'520'809'984);
  EXPECT_EQ(found->devices.at(0).sm_mhz_max, 1980);
  EXPECT_TRUE(found->devices.at(0).errors_watched);
  EXPECT_EQ(found->devices.at(1).memory_bytes, -1);
  EXPECT_FALSE(found->devices.at(1).errors_watched);
  const DeviceValues& values = found->samples.at(0).values;
  EXPECT_EQ(found->samples.at(0).until_ns, 6'000);
  EXPECT_EQ(values.Get(DeviceValue::kSmMhz), 1980);
  EXPECT_EQ(values.Get(DeviceValue::kThermalNs), 0);
  EXPECT_EQ(values.Get(DeviceValue::kNvlinkReceivedKib), int64_t{1} << 59);
  EXPECT_EQ(values.Get(DeviceValue::kPowerMw), std::nullopt);
  EXPECT_EQ(values.Get(DeviceValue::kPowerNs), std::nullopt);
  EXPECT_EQ(found->processes.at(0).name, "train me");
  EXPECT_EQ(found->processes.at(0).own_pid, 26);
  EXPECT_EQ(found->users.at(0).at_ns, 7'000);
  EXPECT_EQ(found->errors.at(0).number, 79);
  EXPECT_EQ(found->cost_ns, 1234);
  EXPECT_THAT(found->notes, ElementsAre("device 1 does not answer"));
  EXPECT_TRUE(found->ended);
}

TEST(DeviceSamples, EachValueHasANameOfItsOwn) {
  for (size_t i = 0; i < kDeviceValues; ++i) {
    DeviceSample sample{.device = 0, .at_ns = 1, .until_ns = 1};
    sample.values.Set(static_cast<DeviceValue>(i), 7);
    std::string text;
    AppendDevicesHead(&text);
    Append(Device{}, &text);
    Append(sample, &text);
    const auto found = ParseDeviceSamples(text);
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->samples.size(), 1U);
    for (size_t j = 0; j < kDeviceValues; ++j) {
      EXPECT_EQ(found->samples[0].values.Get(static_cast<DeviceValue>(j)).has_value(), i == j);
    }
  }
}

TEST(DeviceSamples, WhatIsCutIsReadUpToTheCut) {
  const std::string text = Text();
  for (size_t length = text.find("\nL") + 1; length < text.size(); ++length) {
    const auto found = ParseDeviceSamples(std::string_view(text).substr(0, length));
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->damaged_lines, 0U) << length;
    EXPECT_FALSE(found->ended);
  }
}

TEST(DeviceSamples, DamagedLinesAreCountedAndKeepTheirNumber) {
  std::string text;
  AppendDevicesHead(&text);
  text += "D =a =b\n";  // cut: device 0
  Append(Device{.id = "second"}, &text);
  text +=
      "s 1 1 2 sm_mhz 5 of_a_later_version 3\ns 1 2 1 sm_mhz 5\ns 2 1 2 sm_mhz 5\ns 1 1 2 sm_mhz\n"
      "s 1 1 2 sm_mhz x\nthe library prints\nu 1 1 0\nx 1 1 2 y\n";
  const auto found = ParseDeviceSamples(text);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->damaged_lines, 8U);
  EXPECT_EQ(found->devices.at(1).id, "second");
  ASSERT_EQ(found->samples.size(), 1U);
  EXPECT_EQ(found->samples[0].values.Get(DeviceValue::kSmMhz), 5);
}

TEST(DeviceSamples, WhatNoDeviceCanHaveIsAbsent) {
  const auto found = ParseDeviceSamples(
      "syncline-devices 1\nD =a =b =c 1 1 1\n"
      "s 0 1 2 busy_percent 101 sm_mhz 100001 power_mw 100000001 device_celsius 1001 "
      "energy_mj 1000000000000000001 pcie_replays 1000000000001 thermal_ns 9223372036854775807\n"
      "s 0 3 4 busy_percent 100 sm_mhz 100000 power_mw 100000000 device_celsius 1000 "
      "energy_mj 1000000000000000000\n");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->samples.size(), 2U);
  EXPECT_FALSE(found->samples[0].values.Any());
  EXPECT_EQ(found->samples[1].values.Get(DeviceValue::kBusyPercent), 100);
  EXPECT_EQ(found->samples[1].values.Get(DeviceValue::kEnergyMj), 1'000'000'000'000'000'000);
}

TEST(DeviceSamples, AnotherVersionIsRefused) {
  const auto found = ParseDeviceSamples("syncline-devices 2\n");
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("another version"));
}

}  // namespace
}  // namespace syncline::evidence
