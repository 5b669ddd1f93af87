// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace syncline::analysis::why {
namespace {

using testing::ElementsAre;

timeline::ProcessDevices StepsOf(timeline::StepsBy by, int64_t first_ns) {
  timeline::ProcessDevices devices;
  devices.steps_by = by;
  for (int64_t i = 0; i < 3; ++i) {
    timeline::ProgramStep& step = devices.steps.emplace_back();
    step.name = "Optimizer.step#SGD.step to the next";
    step.begin = {first_ns + i * 100};
    step.end = {first_ns + (i + 1) * 100};
  }
  return devices;
}

std::vector<std::string> NamesOf(const timeline::ProcessDevices& devices) {
  std::vector<std::string> names;
  for (const timeline::ProgramStep& step : devices.steps) names.push_back(step.name);
  return names;
}

TEST(NameSteps, NamesAStepByItsFirstCollective) {
  timeline::ProcessDevices devices = StepsOf(timeline::StepsBy::kOptimizer, 1000);
  // Before the first step, two in the first one, and one at the last one's begin.
  const std::vector<NumberedLaunch> launches = {
      {{1200}, 44}, {{999}, 41}, {{1080}, 43}, {{1050}, 42}, {{1310}, 45}};
  NameSteps(launches, &devices);
  EXPECT_THAT(NamesOf(devices),
              ElementsAre("the step of collective 42", "the step of collective 42, and 1",
                          "the step of collective 44"));
}

TEST(NameSteps, KnowsNoStepBeforeTheFirstCollective) {
  timeline::ProcessDevices devices = StepsOf(timeline::StepsBy::kOptimizer, 1000);
  const std::vector<NumberedLaunch> launches = {{{1250}, 9}};
  NameSteps(launches, &devices);
  EXPECT_THAT(NamesOf(devices), ElementsAre("", "", "the step of collective 9"));
}

TEST(NameSteps, LeavesStepsThatHaveNames) {
  timeline::ProcessDevices devices = StepsOf(timeline::StepsBy::kProfiler, 0);
  devices.steps[0].name = "ProfilerStep#1";
  const std::vector<NumberedLaunch> launches = {{{50}, 7}};
  NameSteps(launches, &devices);
  EXPECT_EQ(devices.steps[0].name, "ProfilerStep#1");
}

}  // namespace
}  // namespace syncline::analysis::why
