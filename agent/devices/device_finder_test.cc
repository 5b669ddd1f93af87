// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "agent/host/fake_process.h"
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
  runner.result = absl::UnavailableError("Cannot start describe");
  EXPECT_EQ(DeviceFinder(&runner, &clock, Given()).Find()->problem(), "Cannot start describe");
  DeviceOptions without = Given();
  without.library.clear();
  without.control = "/dev/null";
  without.places = {"/nowhere"};
  EXPECT_THAT(DeviceFinder(&runner, &clock, without).Find()->problem(),
              HasSubstr("libnvidia-ml.so.1 is not"));
}

// One that says its number, and does not answer in time.
class LateRunner : public FakeProcessRunner {
 public:
  absl::StatusOr<RunResult> Run(const SpawnOptions& options, int limit_ms) override {
    EXPECT_EQ(::write(options.pass_as_3, "1234", 4), 4);
    return FakeProcessRunner::Run(options, limit_ms);
  }
};

TEST(DeviceFinder, ALibraryThatIsSlowMayStillBeUsed) {
  LateRunner runner;
  FakeClock clock;
  runner.result = absl::DeadlineExceededError("Running describe: Process 1234 was killed");
  DeviceOptions given = Given();
  given.proc = "/nowhere";
  DeviceFinder finder(&runner, &clock, given);
  const auto tool = finder.Find();
  EXPECT_EQ(tool->problem(), "");
  EXPECT_EQ(
      tool->detail(),
      "the driver did not answer within 3 s; recordings may begin without samples of devices");
  clock.SleepNs(11'000'000'000);
  finder.Find();
  EXPECT_EQ(runner.runs.size(), 2U);
}

TEST(DeviceFinder, WhereALookHangsInTheDriverNoOtherIsStarted) {
  std::string pattern = ::testing::TempDir() + "finder-XXXXXX";
  const std::filesystem::path root = ::mkdtemp(pattern.data());
  AddFakeProcess(root, 'D', 0);
  LateRunner runner;
  FakeClock clock;
  runner.result = absl::DeadlineExceededError("Running describe: Process 1234 cannot be ended");
  DeviceOptions given = Given();
  given.proc = root;
  DeviceFinder finder(&runner, &clock, given);
  finder.Find();
  clock.SleepNs(11'000'000'000);
  EXPECT_EQ(finder.Find()->problem(),
            "an earlier look at the devices still hangs in the driver (pid 1234)");
  EXPECT_EQ(runner.runs.size(), 1U);
  AddFakeProcess(root, 'Z', 0);
  clock.SleepNs(11'000'000'000);
  finder.Find();
  EXPECT_EQ(runner.runs.size(), 2U);
  std::filesystem::remove_all(root);
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
