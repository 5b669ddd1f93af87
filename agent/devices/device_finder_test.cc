// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/probe/fake_clock.h"
#include "agent/recording/fakes.h"

namespace syncline::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceOptions Given() { return {.command = {"describe"}, .library = "/lib/fake.so"}; }

TEST(DeviceFinder, SaysWhatTheLibrarySays) {
  FakeProcessRunner runner;
  FakeClock clock;
  runner.result->output =
      "syncline-devices 1\nL =580.65.06 =/lib/fake.so\nD =a =NVIDIA%20H100 =b 1 2 1\n"
      "D =c =NVIDIA%20H100 =d 1 2 1\nD = = = -1 -1 0\n";
  DeviceFinder finder(&runner, &clock, Given());
  const auto tool = finder.Find();
  ASSERT_TRUE(tool.has_value());
  EXPECT_EQ(tool->name(), "nvml");
  EXPECT_EQ(tool->version(), "580.65.06");
  EXPECT_EQ(tool->path(), "/lib/fake.so");
  EXPECT_EQ(tool->detail(), "3 devices: NVIDIA H100, one that does not answer");
  EXPECT_EQ(tool->problem(), "");
  EXPECT_THAT(runner.runs, ElementsAre(ElementsAre("describe", "/lib/fake.so")));
  finder.Find();
  EXPECT_EQ(runner.runs.size(), 1U);
  clock.SleepNs(601'000'000'000);
  finder.Find();
  EXPECT_EQ(runner.runs.size(), 2U);
}

TEST(DeviceFinder, SaysWhyALibraryDoesNotWork) {
  FakeProcessRunner runner;
  FakeClock clock;
  runner.result->output = "syncline-devices 1\nN =NVML%20does%20not%20start\n";
  runner.result->exit_code = 1;
  EXPECT_EQ(DeviceFinder(&runner, &clock, Given()).Find()->problem(), "NVML does not start");
  DeviceFinder again(&runner, &clock, Given());
  again.Find();
  clock.SleepNs(11'000'000'000);
  runner.result->exit_code = 0;
  EXPECT_EQ(again.Find()->problem(), "");
  runner.result = absl::DeadlineExceededError("it was killed after 3000 ms");
  EXPECT_THAT(DeviceFinder(&runner, &clock, Given()).Find()->problem(), HasSubstr("3000 ms"));
  DeviceOptions without = Given();
  without.library.clear();
  without.control = "/dev/null";
  without.places = {"/nowhere"};
  EXPECT_THAT(DeviceFinder(&runner, &clock, without).Find()->problem(),
              HasSubstr("libnvidia-ml.so.1 is not"));
}

TEST(DeviceFinder, SaysNothingWhereThereIsNoDevice) {
  FakeProcessRunner runner;
  FakeClock clock;
  DeviceOptions without = Given();
  without.library.clear();
  without.control = "/nowhere/nvidiactl";
  EXPECT_FALSE(DeviceFinder(&runner, &clock, without).Find().has_value());
  EXPECT_TRUE(runner.runs.empty());
}

}  // namespace
}  // namespace syncline::agent
