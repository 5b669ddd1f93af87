// SPDX-License-Identifier: Apache-2.0
#include "analysis/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace syncline::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using timeline::DeviceWorkBuilder;

class Program {
 public:
  Program& Step(const std::string& name, int64_t begin, int64_t end) {
    builder_.OnEvent({.category = "user_annotation",
                      .name = name,
                      .device = "",
                      .collective = "",
                      .operator_name = "",
                      .begin = {begin},
                      .end = {end},
                      .launched = {}});
    return *this;
  }
  Program& Work(const std::string& category, const std::string& name, int64_t begin, int64_t end,
                std::optional<int64_t> launched, const std::string& op = "",
                const std::string& device = "GPU 0") {
    DeviceWorkBuilder::Event event{.category = category,
                                   .name = name,
                                   .device = device,
                                   .collective = "",
                                   .operator_name = op,
                                   .begin = {begin},
                                   .end = {end},
                                   .launched = {}};
    if (launched.has_value()) event.launched = TimelineTime{*launched};
    builder_.OnEvent(event);
    return *this;
  }
  Program& Kernel(int64_t begin, int64_t end, std::optional<int64_t> launched,
                  const std::string& op = "") {
    return Work("kernel", "gemm", begin, end, launched, op);
  }
  // Of a table of spans, without a launch.
  Program& Row(int64_t begin, int64_t end, std::optional<int64_t> step) {
    builder_.OnEvent({.category = "kernel",
                      .name = "gemm",
                      .device = "GPU 0",
                      .collective = "",
                      .operator_name = "",
                      .step = step,
                      .begin = {begin},
                      .end = {end},
                      .launched = {}});
    return *this;
  }
  Program& Mark(const std::string& name, int64_t number, int64_t begin, int64_t end,
                const std::string& device = "") {
    builder_.OnMark(
        {.name = name, .number = number, .device = device, .begin = {begin}, .end = {end}});
    return *this;
  }
  std::vector<DeviceReport> Report(const std::optional<timeline::Interval>& cut = std::nullopt) {
    return DevicesOf(builder_.Take(), cut);
  }

 private:
  DeviceWorkBuilder builder_;
};

// "NAME begin-end: computing communication copies unlaunched unstarted unknown".
std::string Text(const DeviceStep& step) {
  std::string text =
      step.name + " " + std::to_string(step.begin.ns) + "-" + std::to_string(step.end.ns) + ":";
  for (const int64_t ns : {step.use.computing_ns, step.use.communication_ns, step.use.copies_ns,
                           step.use.unlaunched_ns, step.use.unstarted_ns, step.use.unknown_ns}) {
    text += " " + std::to_string(ns);
  }
  const int64_t sum =
      step.use.computing_ns + step.use.communication_ns + step.use.copies_ns + step.use.idle_ns();
  EXPECT_EQ(sum, step.duration_ns()) << text;
  return text;
}

std::vector<std::string> Texts(const DeviceReport& report) {
  std::vector<std::string> texts;
  for (const DeviceStep& step : report.steps) texts.push_back(Text(step));
  return texts;
}

TEST(DevicesTest, WorkIsOfTheStepThatLaunchedIt) {
  // The device is a step behind: it works at step 1 while the program is in step 2.
  const auto reports = Program()
                           .Step("ProfilerStep#1", 0, 100)
                           .Step("ProfilerStep#2", 100, 200)
                           .Kernel(90, 150, 10)
                           .Kernel(150, 170, 50)
                           .Kernel(190, 250, 120)
                           .Report();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_TRUE(reports[0].has_steps);
  // 170 to 190 is idle though the work was launched at 120.
  EXPECT_THAT(Texts(reports[0]), ElementsAre("ProfilerStep#1 90-190: 80 0 0 0 20 0",
                                             "ProfilerStep#2 190-250: 60 0 0 0 0 0"));
}

TEST(DevicesTest, AStepMayBeginWithWorkWithoutALength) {
  const auto reports = Program()
                           .Step("ProfilerStep#1", 0, 100)
                           .Kernel(20, 20, 10)
                           .Kernel(50, 60, 40)
                           .Kernel(80, 80, 70)
                           .Kernel(90, 95, 85)
                           .Report();
  EXPECT_THAT(Texts(reports[0]), ElementsAre("ProfilerStep#1 20-95: 15 0 0 35 25 0"));
}

TEST(DevicesTest, OfACutOnlyWhatIsInItCounts) {
  const auto program = [](bool steps) {
    Program made;
    if (steps) made.Step("ProfilerStep#1", 0, 100).Step("ProfilerStep#2", 100, 200);
    return made.Kernel(20, 30, 10, "aten::mm")
        .Kernel(120, 140, 110, "aten::add")
        .Kernel(160, 190, 150, "aten::add")
        .Report(timeline::Interval{{100}, {180}});
  };
  for (const bool steps : {true, false}) {
    const DeviceReport report = program(steps)[0];
    EXPECT_EQ(report.work, 2);
    ASSERT_THAT(report.operators, SizeIs(1));
    EXPECT_EQ(report.operators[0].name, "aten::add");
    EXPECT_EQ(report.outside_steps, 0);
  }
  EXPECT_THAT(Texts(program(true)[0]), IsEmpty());  // no step is wholly in it
  EXPECT_THAT(Texts(program(false)[0]), ElementsAre(" 100-180: 40 0 0 20 20 0"));
}

TEST(DevicesTest, WhatOverlapsCountsOnce) {
  // A collective from 10 to 60, under a kernel from 20 to 40 and a copy from 50 to 80; a fill in
  // the kernel.
  const auto reports = Program()
                           .Work("kernel", "ncclDevKernel_AllReduce", 10, 60, 1)
                           .Kernel(20, 40, 1)
                           .Work("gpu_memcpy", "copy", 50, 80, 1)
                           .Work("gpu_memset", "fill", 25, 30, 1)
                           .Report();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_FALSE(reports[0].has_steps);
  EXPECT_THAT(Texts(reports[0]), ElementsAre(" 10-80: 20 30 20 0 0 0"));
}

TEST(DevicesTest, IdleIsSplitAtTheLaunchOfWhatEndsIt) {
  const auto reports = Program()
                           .Kernel(0, 10, -5)
                           .Kernel(30, 40, 22)             // launched in the middle of the gap
                           .Kernel(60, 70, 35)             // before the gap
                           .Kernel(90, 100, std::nullopt)  // nobody knows
                           .Kernel(120, 130, 125)          // launched after it began: all of it
                           .Report();
  EXPECT_THAT(Texts(reports[0]), ElementsAre(" 0-130: 50 0 0 32 28 20"));
  EXPECT_EQ(reports[0].without_launch, 1);
}

TEST(DevicesTest, StepsByTheOptimizerWhereNothingElseMarksThem) {
  auto made = [] {
    Program program;
    program.Step("Optimizer.step#SGD.step", 40, 50)
        .Step("Optimizer.step#Adam.step", 60, 65)  // a second optimizer makes no step
        .Step("Optimizer.step#SGD.step", 90, 100)
        .Step("Optimizer.step#SGD.step", 140, 150);
    for (const int64_t launch : {20, 60, 110, 160}) program.Kernel(launch + 1, launch + 5, launch);
    return program;
  };
  const auto reports = made().Report();
  EXPECT_EQ(reports[0].steps_by, timeline::StepsBy::kOptimizer);
  EXPECT_THAT(Texts(reports[0]), ElementsAre("Optimizer.step#SGD.step 61-111: 4 0 0 45 1 0",
                                             "Optimizer.step#SGD.step 111-115: 4 0 0 0 0 0"));
  EXPECT_EQ(reports[0].outside_steps, 2);
  // Only steps that are whole in what was asked for.
  const auto cut = made().Report(timeline::Interval{{61}, {112}});
  EXPECT_THAT(Texts(cut[0]), ElementsAre("Optimizer.step#SGD.step 61-111: 4 0 0 45 1 0"));
}

TEST(DevicesTest, AQueueThatBeginsALaterStepFirst) {
  const auto reports = Program()
                           .Step("ProfilerStep#1", 0, 100)
                           .Step("ProfilerStep#2", 100, 200)
                           .Step("ProfilerStep#3", 200, 300)
                           .Kernel(150, 160, 110)  // step 2, on a queue of its own
                           .Kernel(155, 190, 50)   // step 1
                           .Kernel(210, 220, 205)
                           .Report();
  // Step 1 has no time of its own.
  EXPECT_THAT(Texts(reports[0]), ElementsAre("ProfilerStep#2 155-210: 35 0 0 15 5 0",
                                             "ProfilerStep#3 210-220: 10 0 0 0 0 0"));
}

TEST(DevicesTest, DevicesAreApartAndOperatorsAddedUp) {
  const auto reports = Program()
                           .Kernel(0, 10, -1, "aten::mm")
                           .Work("kernel", "add", 10, 30, -1, "aten::mm")
                           .Kernel(30, 31, -1)  // no operator is recorded then
                           .Kernel(32, 33, 7)   // outside of the one that is
                           .Work("cpu_op", "aten::mm", 5, 10, std::nullopt, "", "")
                           .Work("kernel", "gemm", 5, 6, -1, "aten::mm", "GPU 1")
                           .Report();
  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_EQ(reports[0].device, "GPU 0");
  ASSERT_THAT(reports[0].operators, SizeIs(2));
  EXPECT_EQ(reports[0].operators[0].name, "aten::mm");
  EXPECT_EQ(reports[0].operators[0].count, 2);
  EXPECT_EQ(reports[0].operators[0].total_ns, 30);
  EXPECT_EQ(reports[0].operators[0].longest_kernel, "add");
  EXPECT_EQ(reports[0].operators[1].name, "");
  EXPECT_EQ(reports[0].outside_operators, 1);
  EXPECT_EQ(reports[0].without_operators, 1);
  EXPECT_EQ(reports[1].device, "GPU 1");
  EXPECT_EQ(reports[1].work, 1);
}

TEST(DevicesTest, WithoutDevicesNothing) {
  EXPECT_THAT(Program().Step("ProfilerStep#1", 0, 10).Report(), IsEmpty());
}

std::vector<std::string> NamesOf(const DeviceReport& report) {
  std::vector<std::string> names;
  for (const DeviceStep& step : report.steps) {
    names.push_back(step.name + " " + std::to_string(step.begin.ns) + "-" +
                    std::to_string(step.end.ns));
  }
  return names;
}

TEST(DevicesTest, StepsAreThoseThatTheProgramMarksMost) {
  const auto reports = Program()
                           .Mark("epoch", 0, 0, 100)
                           .Mark("train", 7, 0, 40)
                           .Mark("train", 8, 50, 90)
                           .Kernel(20, 30, 10)
                           .Kernel(60, 70, 55)
                           .Kernel(80, 85, 45)
                           .Report();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].steps_by, timeline::StepsBy::kMark);
  EXPECT_THAT(NamesOf(reports[0]), ElementsAre("train 7 20-60", "train 8 60-70"));
  EXPECT_EQ(reports[0].outside_steps, 1u);
}

TEST(DevicesTest, ADevicesOwnStepsHoldWhatBeginsInThem) {
  const auto reports = Program()
                           .Mark("train", 7, 0, 40)
                           .Mark("1", 0, 100, 200, "GPU 0")
                           .Mark("2", 0, 200, 300, "GPU 0")
                           .Mark("1", 0, 150, 250, "GPU 1")
                           .Kernel(110, 120, std::nullopt)
                           .Kernel(210, 220, std::nullopt)
                           .Kernel(310, 320, std::nullopt)
                           .Work("kernel", "gemm", 160, 170, std::nullopt, "", "GPU 1")
                           .Report();
  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_EQ(reports[0].steps_by, timeline::StepsBy::kDevice);
  EXPECT_THAT(NamesOf(reports[0]), ElementsAre("1 110-210", "2 210-220"));
  EXPECT_EQ(reports[0].outside_steps, 1u);
  EXPECT_THAT(NamesOf(reports[1]), ElementsAre("1 160-170"));
}

TEST(DevicesTest, ATableSaysTheStepOfEachRow) {
  const auto reports =
      Program().Row(50, 60, 2).Row(10, 20, 1).Row(30, 40, std::nullopt).Row(15, 25, 1).Report();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].steps_by, timeline::StepsBy::kTable);
  EXPECT_THAT(NamesOf(reports[0]), ElementsAre("step 1 10-50", "step 2 50-60"));
  EXPECT_EQ(reports[0].outside_steps, 1u);
  EXPECT_EQ(reports[0].without_launch, 4u);
}

}  // namespace
}  // namespace syncline::analysis
