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
  cool.held_back = {{DeviceValue::kThermalNs, {0, 0, 0.01}}};
  cool.window_ns = 60'000'000'000;
  cool.samples = 300;
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
  EXPECT_THAT(text, HasSubstr("devices, of the window: 41.0 % (node-1 GPU 1), 0 % (node-1 GPU "
                              "0); node-1 GPU 1 by its temperature"));
  EXPECT_THAT(text, Not(HasSubstr("GPU errors")));
  report.health[1].held_back[DeviceValue::kThermalNs] = {0.01, 0, 0.02};
  report.health[0].errors = {{79, 3'000'000'000, 3'200'000'000}};
  report.health[0].grown = {{DeviceValue::kUncorrectedErrors, {2, 2, 0}},
                            {DeviceValue::kPcieReplays, {}}};
  text = TextReport(report, {.width = 200});
  EXPECT_THAT(text, Not(HasSubstr("Held back")));
  EXPECT_THAT(text, HasSubstr("node-1 GPU 0: XID 79 between 3.000 s and 3.200 s of the window"));
  EXPECT_THAT(text, HasSubstr("node-1 GPU 0: 2 memory errors not corrected"));
  EXPECT_THAT(text, Not(HasSubstr("PCIe")));
}

std::string Section(const analysis::Report& report) {
  return TextReport(report, {.width = 200, .sections = {"device-health"}});
}

TEST(DeviceHealthText, WhatIsNotKnownIsNotCalledNothing) {
  analysis::Report report = TwoDevices();
  analysis::DeviceHealth& health = report.health[0];
  health.held_back = {{DeviceValue::kThermalNs, {0, 0, 0.97}},
                      {DeviceValue::kPowerNs, {0.1, 0.09, 0.11}},
                      {DeviceValue::kSyncBoostNs, {0, 0, 0.02}}};
  health.readings_end_ns = 200'000'000;
  std::string text = Section(report);
  EXPECT_THAT(text, ContainsRegex("node-1 GPU 0 +rank 0 .* 9.0 % to 97.0 %\n"));
  EXPECT_THAT(text, HasSubstr("GPU 0 was held back by its power limit 10.0 % (9.0 % to 11.0 %)"));
  EXPECT_THAT(text, HasSubstr("GPU 0 may have been held back by its temperature up to 97.0 %\n"));
  EXPECT_THAT(text, HasSubstr("node-1 GPU 0: its readings end at 200 ms of the window"));
  health.held_back = {{DeviceValue::kLowUseNs, {0.5, 0.5, 0.5}}};
  health.readings_end_ns.reset();
  health.samples = 0;
  text = Section(report);
  EXPECT_THAT(text, ContainsRegex("node-1 GPU 0 +rank 0 .* -\n"));
  EXPECT_THAT(text, HasSubstr("node-1 GPU 0: it has no readings in the window"));
  EXPECT_THAT(TextReport(report, {.width = 200}), Not(HasSubstr("(node-1 GPU 0)")));
}

TEST(DeviceHealthText, WhatMayLieBesideTheWindowIsSaidSo) {
  analysis::Report report = TwoDevices();
  analysis::DeviceHealth& health = report.health[0];
  health.errors = {{79, -200'000'000, 1'000'000},
                   {31, 59'900'000'000, 60'100'000'000},
                   {48, -1'000'000, 60'001'000'000}};
  health.grown = {{DeviceValue::kUncorrectedErrors, {7, 0, 150'000'000}},
                  {DeviceValue::kCorrectedErrors, {5, 2, 150'000'000}},
                  {DeviceValue::kPcieReplays, {3, 3, 900'000'000}}};
  const std::string text = Section(report);
  for (const char* line :
       {"XID 79 between 200 ms before the window and 1.00 ms of it",
        "XID 31 between 59.900 s of the window and 100 ms after its end",
        "XID 48 between 1.00 ms before the window and 1.00 ms after its end",
        "up to 7 memory errors not corrected, in the window or at most 150 ms beside it",
        "2 to 5 memory errors corrected, in the window or at most 150 ms beside it",
        ": 3 packets sent again over PCIe\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(DeviceHealthText, ALimitOfPowerThatChangesIsARange) {
  analysis::Report report = TwoDevices();
  report.health[1].values[DeviceValue::kPowerLimitMw] = {300'000, 700'000, 600'000, 700'000};
  EXPECT_THAT(Section(report), HasSubstr(" 450 of 300 to 700 "));
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
  EXPECT_EQ(hot["readings_end_ns"], nullptr);
}

}  // namespace
}  // namespace syncline::report
