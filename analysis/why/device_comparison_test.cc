// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "analysis/why/testing/device_job.h"

namespace syncline::analysis::why {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Step = DeviceJob::Step;

constexpr int64_t kMs = DeviceJob::kMs;
constexpr int kSteps = 60;

DeviceSide Made(const DeviceJob::Plan& plan, size_t ranks = 3, int steps = kSteps) {
  DeviceJob job(ranks, steps, plan);
  return DeviceSideOf(job.ranks());
}

DeviceComparison Compared(const DeviceSide& before, const DeviceSide& now) {
  return CompareDevices(std::vector<DeviceSide>{before}, now);
}

const Change& Of(const std::array<Change, kDeviceParts>& parts, DevicePart part) {
  return parts[static_cast<size_t>(part)];
}

// The whole job waits for rank 1, whose launches come 5 ms later now. The programs of the others
// wait for it, too, in a way that their profiles do not show.
TEST(DeviceComparison, LateLaunchesOfOneRankAreItsOwnWork) {
  const auto plan = [](int64_t late_launch) {
    return [late_launch](size_t rank, int step) {
      Step todo = DeviceJob::Healthy(rank, step);
      if (rank == 1) todo.late_launch = late_launch;
      if (rank != 1) todo.busy_beside = 1000 * kMs;
      return todo;
    };
  };
  const DeviceComparison comparison = Compared(Made(plan(0)), Made(plan(5 * kMs)));
  ASSERT_EQ(comparison.mismatch, Mismatch::kNone) << comparison.mismatch_text;
  EXPECT_NEAR(static_cast<double>(comparison.step.change.est_ns), 5e6, 1e5);
  EXPECT_TRUE(comparison.step.certain());
  ASSERT_EQ(comparison.ranks.size(), 3u);
  EXPECT_NEAR(static_cast<double>(comparison.ranks[1].own.change.est_ns), 5e6, 1e5);
  EXPECT_NEAR(static_cast<double>(Of(comparison.ranks[1].parts, DevicePart::kLaunch).change.est_ns),
              5e6, 1e5);
  for (const size_t other : {0, 2}) {
    EXPECT_LT(std::abs(comparison.ranks[other].own.change.est_ns), kMs / 10);
    EXPECT_NEAR(static_cast<double>(
                    Of(comparison.ranks[other].parts, DevicePart::kCommunication).change.est_ns),
                5e6, 2e5);
  }
  int64_t sum = 0;
  for (const Change& part : comparison.parts) sum += part.change.est_ns;
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(comparison.step.change.est_ns), 10);
}

TEST(DeviceComparison, SlowerKernelsAndMoreOfThemAreToldApart) {
  const DeviceComparison comparison =
      Compared(Made(DeviceJob::Healthy), Made([](size_t rank, int step) {
                 Step todo = DeviceJob::Healthy(rank, step);
                 todo.computing = todo.computing * 5 / 4;
                 todo.kernel = todo.kernel * 5 / 4;
                 return todo;
               }));
  ASSERT_FALSE(comparison.kernels.empty());
  const KernelChange& slower = comparison.kernels[0];
  EXPECT_EQ(slower.name.name, "gemm");
  EXPECT_EQ(slower.name.size, "[8, 1, 1] x [128, 1, 1]");
  EXPECT_NEAR(static_cast<double>(slower.time.change.est_ns), 5e6, 1e5);
  EXPECT_NEAR(slower.calls_now, slower.calls_before, 0.5);

  const DeviceComparison more = Compared(Made(DeviceJob::Healthy), Made([](size_t rank, int step) {
                                           Step todo = DeviceJob::Healthy(rank, step);
                                           todo.computing = todo.computing * 5 / 4;
                                           return todo;
                                         }));
  EXPECT_GT(more.kernels[0].calls_now, more.kernels[0].calls_before * 1.15);
}

TEST(DeviceComparison, WithoutAChangeNothingIsCertain) {
  const DeviceComparison comparison =
      Compared(Made(DeviceJob::Healthy),
               Made([](size_t rank, int step) { return DeviceJob::Healthy(rank + 5, step + 17); }));
  EXPECT_LT(std::abs(comparison.step.change.est_ns), kMs / 20);
  for (const DeviceRankChange& rank : comparison.ranks) {
    EXPECT_LT(std::abs(rank.own.est_ppm), 5'000);
  }
}

TEST(DeviceComparison, SeveralBeforeHoldHowTheyDiffer) {
  const auto longer = [](int64_t by) {
    return Made([by](size_t rank, int step) {
      Step todo = DeviceJob::Healthy(rank, step);
      todo.computing += by;
      return todo;
    });
  };
  const std::vector<DeviceSide> before = {longer(0), longer(2 * kMs), longer(kMs)};
  const DeviceComparison comparison = CompareDevices(before, longer(3 * kMs));
  ASSERT_EQ(comparison.mismatch, Mismatch::kNone) << comparison.mismatch_text;
  EXPECT_EQ(comparison.before.steps, 3u * kSteps);
  EXPECT_NEAR(static_cast<double>(comparison.step.change.est_ns), 2e6, 1e5);
  EXPECT_FALSE(comparison.step.certain());
  EXPECT_TRUE(Compared(before[0], longer(3 * kMs)).step.certain());
}

// Each third step has no collective: an evaluation.
TEST(DeviceComparison, StepsOfAnotherClassAreLeftOut) {
  const auto evaluates = [](size_t rank, int step) {
    Step todo = DeviceJob::Healthy(rank, step);
    todo.alone = step % 3 == 0;
    if (todo.alone) todo.collective.clear();
    return todo;
  };
  const DeviceSide side = Made(evaluates, 3, 90);
  EXPECT_EQ(side.collectives, 1u);
  EXPECT_EQ(side.steps, side.ranks[0].tables.size());
  EXPECT_EQ(side.steps, 60u);
  EXPECT_EQ(side.left_out, 30u);
}

TEST(DeviceComparison, WhatTheAnswerKnowsOfTheEvidenceIsKept) {
  DeviceJob part(2, kSteps, DeviceJob::Healthy);
  for (DeviceRank& rank : part.ranks()) rank.world_size = 8;
  const DeviceSide side = DeviceSideOf(part.ranks());
  EXPECT_TRUE(side.incomplete);
  EXPECT_EQ(side.world_size, 8);
  EXPECT_THAT(side.notes, ElementsAre(HasSubstr("the job has 8 ranks")));
  EXPECT_TRUE(Compared(side, side).incomplete());
  DeviceSide not_said = side;
  not_said.world_size = -1;
  EXPECT_EQ(Compared(side, not_said).mismatch, Mismatch::kNone);
  DeviceSide on_host = side;
  on_host.host_collectives = true;
  EXPECT_FALSE(Compared(side, on_host).own_work_known);
  EXPECT_FALSE(Compared(on_host, side).own_work_known);
  EXPECT_TRUE(Compared(side, side).own_work_known);
}

TEST(DeviceComparison, WhatIsNotComparableIsRefused) {
  const DeviceSide whole = Made(DeviceJob::Healthy);
  DeviceComparison comparison = Compared(whole, Made(DeviceJob::Healthy, 2));
  EXPECT_EQ(comparison.mismatch, Mismatch::kOtherWorldSize);
  EXPECT_THAT(comparison.mismatch_text, HasSubstr("the job has 2 ranks now, 3 before"));
  comparison = Compared(Made(DeviceJob::Healthy, 3, 29), whole);
  EXPECT_EQ(comparison.mismatch, Mismatch::kTooFewSteps);
  EXPECT_THAT(comparison.mismatch_text,
              HasSubstr("29 of the steps before were judged, and 30 are needed"));
  DeviceSide refused;
  refused.refusal = DeviceRefusal::kNoSteps;
  refused.refusal_text = "no steps";
  comparison = Compared(whole, refused);
  EXPECT_EQ(comparison.mismatch, Mismatch::kNowRefused);
  EXPECT_EQ(comparison.refusal, DeviceRefusal::kNoSteps);
  DeviceSide part = whole;
  part.world_size = 4;
  comparison = Compared(part, whole);
  EXPECT_EQ(comparison.mismatch_text, "not comparable: the job has 3 ranks now, 4 before");
  DeviceSide renumbered = whole;
  renumbered.ranks.back().rank = 7;
  EXPECT_THAT(Compared(whole, renumbered).mismatch_text,
              HasSubstr("ranks 0, 1, 7 now, ranks 0, 1, 2 before"));
  DeviceSide other = whole;
  other.collectives = 7;
  EXPECT_EQ(Compared(whole, other).mismatch, Mismatch::kOtherSteps);
}

}  // namespace
}  // namespace syncline::analysis::why
