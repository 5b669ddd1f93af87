// SPDX-License-Identifier: Apache-2.0
#include "export/report/device_health_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/report/text_report.h"

namespace syncline::report {
namespace {

using evidence::DeviceValue;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

analysis::Report TwoDevices() {
  analysis::Report report;
  report.nodes.resize(1);
  report.nodes[0].name = "node-1";
  analysis::DeviceHealth cool;
  cool.device.name = "NVIDIA H100 80GB HBM3";
  cool.users = {{.name = "python", .pid = 11, .rank = 0}};
  cool.values = {{DeviceValue::kSmMhz, {1980, 1980, 1980, 1980}},
                 {DeviceValue::kPowerMw, {600'000, 610'000, 610'000, 620'000}},
                 {DeviceValue::kBusyPercent, {90, 97, 96, 100}}};
  cool.held_back = {{DeviceValue::kThermalNs, {0, 0, 0.04}}};
  analysis::DeviceHealth hot = cool;
  hot.number = 1;
  hot.users = {{.name = "python", .pid = 12, .rank = 1}, {.name = "other", .pid = 99}};
  hot.values[DeviceValue::kSmMhz] = {1170, 1200, 1300, 1980};
  hot.values[DeviceValue::kPowerLimitMw] = {700'000, 700'000, 700'000, 700'000};
  hot.mean_power_mw = 450'400;
  hot.held_back = {{DeviceValue::kThermalNs, {0.41, 0.401, 0.42}},
                   {DeviceValue::kLowUseNs, {0.9, 0.9, 0.9}}};
  report.health = {cool, hot};
  return report;
}

TEST(DeviceHealthText, WhoIsHeldBackMostComesFirst) {
  const std::string text = TextReport(TwoDevices(), {.width = 120, .sections = {"device-health"}});
  EXPECT_THAT(text, ContainsRegex("node-1 GPU 1 +rank 1, other \\(pid 99\\) +96 % +1170 to 1980 +"
                                  "450 of 700 +- +41.0 %\n +node-1 GPU 0 +rank 0 +96 % +1980 +"
                                  "610 +- +0 %\n"));
  EXPECT_THAT(text, HasSubstr("node-1 GPU 1 was held back by its temperature 41.0 % (40.1 % to "
                              "42.0 %), because it had little to do 90.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("GPU 0 was held back")));
}

TEST(DeviceHealthText, OneLineOfWhatIsNotable) {
  analysis::Report report = TwoDevices();
  std::string text = TextReport(report, {.width = 200});
  EXPECT_THAT(text, HasSubstr("devices, of the window: 41.0 % (node-1 GPU 1), 0.0 % (node-1 GPU "
                              "0); node-1 GPU 1 by its temperature"));
  EXPECT_THAT(text, Not(HasSubstr("GPU errors")));
  report.health[1].held_back[DeviceValue::kThermalNs] = {0.01, 0, 0.02};
  report.health[0].errors = {{79, 3'000'000'000, 3'200'000'000}};
  report.health[0].grown = {{DeviceValue::kUncorrectedErrors, 2}, {DeviceValue::kPcieReplays, 0}};
  text = TextReport(report, {.width = 200});
  EXPECT_THAT(text, Not(HasSubstr("Held back")));
  EXPECT_THAT(text, HasSubstr("node-1 GPU 0: XID 79 between 3.000 s and 3.200 s of the window"));
  EXPECT_THAT(text, HasSubstr("node-1 GPU 0: 2 memory errors, not corrected"));
  EXPECT_THAT(text, Not(HasSubstr("PCIe")));
}

TEST(DeviceHealthText, WhatIsNotKnownIsAbsentInJson) {
  nlohmann::ordered_json json;
  DeviceHealthInJson(TwoDevices(), &json);
  const auto& hot = json["device_health"][1];
  EXPECT_EQ(hot["node"], "node-1");
  EXPECT_EQ(hot["device"], 1);
  EXPECT_EQ(hot["users"][0]["rank"], 1);
  EXPECT_EQ(hot["values"]["sm_mhz"]["min"], 1170);
  EXPECT_FALSE(hot["values"].contains("device_celsius"));
  EXPECT_DOUBLE_EQ(hot["held_back"]["thermal_ns"]["lo"], 0.401);
  EXPECT_EQ(json["device_health"][0]["mean_power_mw"], nullptr);
}

}  // namespace
}  // namespace syncline::report
