// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::merge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

evidence::Evidence TwoProcesses() {
  evidence::Evidence evidence;
  evidence.processes = {
      {evidence::Relation::kRecorded, 4711, 1, 7, 5, 10, 0, "python", {0}},
      {evidence::Relation::kOther, 99, 1, 6, 0, 0, 0, "stress-ng", {}},
  };
  evidence.groups = {{1, "/job/rank0"}};
  evidence.threads = {{0, 4711, 10, "python"}, {0, 4712, 0, "gloo"}};
  return evidence;
}

std::vector<std::pair<int64_t, double>> PointsOf(const timeline::CounterSeries& series) {
  std::vector<std::pair<int64_t, double>> points;
  for (const timeline::CounterPoint& point : series.points) {
    points.emplace_back(point.clock_ns, point.value);
  }
  return points;
}

TEST(CountersOfTest, RatesHoldFromOneSampleToTheNext) {
  evidence::Evidence evidence = TwoProcesses();
  // The amounts are true of the middle of the two readings of the clock.
  evidence.thread_samples = {{0, 99 * kMs, 101 * kMs, 10 * kMs, 5 * kMs, 0},
                             {1, 100 * kMs, 100 * kMs, 0, 0, 0},
                             {0, 149 * kMs, 151 * kMs, 60 * kMs, 5 * kMs, 0},
                             {1, 150 * kMs, 150 * kMs, 0, 0, 0},
                             {0, 200 * kMs, 200 * kMs, 85 * kMs, 30 * kMs, 0}};
  evidence.group_samples = {{0, 100 * kMs, 100 * kMs, 1, 0, 0, 70 * kMs, 100 * kMs},
                            {0, 200 * kMs, 200 * kMs, 2, 1, 40 * kMs, 70 * kMs, 100 * kMs}};
  evidence.process_samples = {{1, 100 * kMs, 100 * kMs, 0, 0},
                              {1, 200 * kMs, 200 * kMs, 50 * kMs, 0}};
  const std::vector<timeline::CounterSeries> all = CountersOf(evidence);
  ASSERT_THAT(all, SizeIs(4));  // of gloo's thread nothing grew
  EXPECT_EQ(all[0].name, "on CPU · python (tid 10)");
  EXPECT_EQ(all[0].unit, "%");
  EXPECT_EQ(all[0].process, (ProcessKey{0, 5, 10, 7}));
  EXPECT_THAT(PointsOf(all[0]), ElementsAre(std::pair(100 * kMs, 100.0), std::pair(150 * kMs, 50.0),
                                            std::pair(200 * kMs, 0.0)));
  EXPECT_EQ(all[1].name, "run queue · python (tid 10)");
  EXPECT_EQ(all[1].unit, "ms/s");
  EXPECT_THAT(PointsOf(all[1]), ElementsAre(std::pair(100 * kMs, 0.0), std::pair(150 * kMs, 500.0),
                                            std::pair(200 * kMs, 0.0)));
  EXPECT_EQ(all[2].name, "throttled · cgroup /job/rank0");
  EXPECT_EQ(all[2].process, std::nullopt);
  EXPECT_THAT(PointsOf(all[2]),
              ElementsAre(std::pair(100 * kMs, 400.0), std::pair(200 * kMs, 0.0)));
  EXPECT_EQ(all[3].name, "CPU · stress-ng (pid 99)");
  EXPECT_THAT(PointsOf(all[3]), ElementsAre(std::pair(100 * kMs, 50.0), std::pair(200 * kMs, 0.0)));
}

TEST(CountersOfTest, WhatFellIsNoGrowthAndEqualRatesAreOnePoint) {
  evidence::Evidence evidence = TwoProcesses();
  for (int64_t i = 0; i < 4; ++i) {
    evidence.thread_samples.push_back({0, i * 50 * kMs, i * 50 * kMs, i * 25 * kMs, 100 - i, 0});
  }
  evidence.thread_samples.push_back(
      {0, 150 * kMs, 150 * kMs, 999 * kMs, 0, 0});  // the same instant
  const std::vector<timeline::CounterSeries> all = CountersOf(evidence);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(PointsOf(all[0]), ElementsAre(std::pair(0, 50.0), std::pair(150 * kMs, 0.0)));
}

TEST(CountersOfTest, OneSampleSaysNothing) {
  evidence::Evidence evidence = TwoProcesses();
  evidence.thread_samples = {{0, 0, 0, 10, 10, 0}};
  EXPECT_THAT(CountersOf(evidence), IsEmpty());
}

TEST(CountersOfTest, TheClockOfACpuIsAsItWasRead) {
  evidence::Evidence evidence = TwoProcesses();
  evidence.thread_samples = {{0, 100 * kMs, 100 * kMs, 0, 0, 0, 'R', 0, 0, 2'600'000},
                             {0, 150 * kMs, 150 * kMs, 0, 0, 0, 'R', 0, 0},
                             {0, 200 * kMs, 200 * kMs, 0, 0, 0, 'R', 0, 0, 1'200'000}};
  const std::vector<timeline::CounterSeries> all = CountersOf(evidence);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].name, "clock of its CPU · python (tid 10)");
  EXPECT_EQ(all[0].unit, "GHz");
  EXPECT_EQ(all[0].process, (ProcessKey{0, 5, 10, 7}));
  EXPECT_THAT(PointsOf(all[0]), ElementsAre(std::pair(100 * kMs, 2.6), std::pair(200 * kMs, 1.2)));
}

}  // namespace
}  // namespace syncline::merge
