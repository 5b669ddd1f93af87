// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "analysis/why/limits.h"
#include "analysis/why/testing/fake_cut.h"

namespace syncline::analysis::why {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMs = FakeCut::kMs;
constexpr char kClient[] = "/job:client/replica:0/task:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0";

CutSide Made(const CutTimings& timings, size_t steps = 60) {
  FakeCut job(steps, timings);
  return CutSideOf(job.input());
}

CutComparison Compared(const CutSide& before, const CutSide& now) {
  return CompareCut(std::vector<CutSide>{before}, now);
}

TEST(CutComparison, ASlowerOperatorIsTheWorkOfItsPartition) {
  const CutComparison comparison = Compared(Made({}), Made({.remote_ns = 9 * kMs}));
  ASSERT_EQ(comparison.mismatch, Mismatch::kNone) << comparison.mismatch_text;
  EXPECT_EQ(comparison.step.before_ns, 15 * kMs);
  EXPECT_EQ(comparison.step.change.est_ns, 3 * kMs);
  EXPECT_EQ(comparison.step.est_ppm, 200'000);
  EXPECT_EQ(comparison.work->change.est_ns, 3 * kMs);
  ASSERT_EQ(comparison.partitions.size(), 2u);
  EXPECT_EQ(comparison.partitions[0].task, kClient);
  EXPECT_EQ(comparison.partitions[0].path.change.est_ns, 0);
  EXPECT_EQ(comparison.partitions[1].path.change.est_ns, 3 * kMs);
  EXPECT_EQ(comparison.tensors->change.est_ns, 0);
  EXPECT_FALSE(comparison.tensors->certain());
  EXPECT_EQ(comparison.between->change.est_ns, 0);
  ASSERT_FALSE(comparison.operators.empty());
  const CutOperatorChange& first = comparison.operators[0];
  EXPECT_EQ(first.name, (CutOperatorName{kWorker, "remote"}));
  EXPECT_EQ(first.path.change.est_ns, 3 * kMs);
  EXPECT_EQ(first.calls_before, 1);
  EXPECT_EQ(first.calls_now, 1);
  EXPECT_EQ(first.moved_from, "");
}

TEST(CutComparison, ASlowerWayIsOfItsTensorAndDirection) {
  const CutComparison comparison = Compared(Made({}), Made({.way_ns = 3 * kMs}));
  EXPECT_EQ(comparison.work->change.est_ns, 0);
  EXPECT_EQ(comparison.tensors->change.est_ns, 2 * kMs);
  ASSERT_EQ(comparison.directions.size(), 2u);
  EXPECT_EQ(comparison.directions[0].from, kClient);
  EXPECT_EQ(comparison.directions[0].path.change.est_ns, 2 * kMs);
  EXPECT_EQ(comparison.directions[1].path.change.est_ns, 0);
  EXPECT_EQ(comparison.tensor_changes[0].name, (CutTensorName{"x", kClient, kWorker}));
  // The clocks' bound of 100 ns for each of two tensors, in both recordings.
  EXPECT_EQ(comparison.clock_ns, 400);
  EXPECT_EQ(comparison.tensors->change.lo_ns, 2 * kMs - 400);
  EXPECT_EQ(comparison.tensors->change.hi_ns, 2 * kMs + 400);
  EXPECT_EQ(comparison.directions[0].path.change.hi_ns, 2 * kMs + 200);
  EXPECT_EQ(comparison.tensor_changes[0].path.change.lo_ns, 2 * kMs - 200);
}

TEST(CutComparison, WhatTheClocksMayHaveMovedIsNotCertain) {
  const auto with_clock = [](const CutTimings& timings) {
    FakeCut job(60, timings);
    for (CutTransfer& transfer : job.input().transfers) transfer.clock_ns = kMs;
    return CutSideOf(job.input());
  };
  const CutComparison comparison =
      Compared(with_clock({}), with_clock({.way_ns = 2 * kMs, .between_ns = 2 * kMs}));
  EXPECT_TRUE(comparison.step.certain());
  EXPECT_EQ(comparison.tensors->change.est_ns, kMs);
  EXPECT_FALSE(comparison.tensors->certain());
  EXPECT_FALSE(comparison.between->certain());
}

TEST(CutComparison, WithoutAKnownClockOnlyTheStepIsCompared) {
  FakeCut job(60, {.forward_ns = 5 * kMs});
  for (CutTransfer& transfer : job.input().transfers) transfer.clock_ns.reset();
  const CutComparison comparison = Compared(Made({}), CutSideOf(job.input()));
  EXPECT_EQ(comparison.step.change.est_ns, kMs);
  EXPECT_FALSE(comparison.clock_ns.has_value());
  EXPECT_FALSE(comparison.work.has_value());
  EXPECT_FALSE(comparison.tensors.has_value());
  EXPECT_FALSE(comparison.between.has_value());
  EXPECT_TRUE(comparison.partitions.empty());
  EXPECT_TRUE(comparison.operators.empty());
  const LimitResult result = JudgeLimits({*ParseLimit("work > +1%")}, comparison)[0];
  EXPECT_EQ(result.state, LimitResult::State::kNotJudged);
  EXPECT_THAT(result.why, HasSubstr("is not known"));
}

// Between clocks that are far apart everything may look as if it had been sent before it was asked
// for: what is not known stays so.
TEST(CutComparison, ThatATensorWasAskedForLateIsByTheClocks) {
  const auto side = [](std::optional<int64_t> clock_ns) {
    FakeCut job;
    for (CutTransfer& transfer : job.input().transfers) {
      transfer.clock_ns = clock_ns;
      transfer.sent_ns -= 20 * kMs;
    }
    return CutSideOf(job.input());
  };
  ASSERT_EQ(side(std::nullopt).refusal, CutRefusal::kNone) << side(std::nullopt).refusal_text;
  EXPECT_FALSE(Compared(side(std::nullopt), side(100)).clock_ns.has_value());
  EXPECT_EQ(Compared(side(100), side(100)).clock_ns, 0);  // it was certainly asked for late
  EXPECT_GE(Compared(side(30 * kMs), side(100)).clock_ns, 30 * kMs);
}

TEST(CutComparison, TensorsAreMatchedWithoutTheNumberOfTheirEdge) {
  const auto side = [](const char* x, const char* y, const char* other) {
    FakeCut job;
    job.input().edges[0].tensor = x;
    job.input().edges[1].tensor = y;
    if (*other != 0) job.input().edges.push_back({other, 0, 1});
    return CutSideOf(job.input());
  };
  const CutSide before = side("edge_13_Mean", "edge_7_Mean", "");
  CutComparison comparison = Compared(before, side("edge_14_Mean", "edge_8_Mean", ""));
  ASSERT_EQ(comparison.tensor_changes.size(), 2u);
  for (const CutTensorChange& one : comparison.tensor_changes) {
    EXPECT_TRUE(one.before && one.now);
    EXPECT_EQ(one.name.tensor, "Mean");
    EXPECT_EQ(one.path.change.est_ns, 0);
  }
  // Which of two it is, is not known.
  comparison = Compared(before, side("edge_14_Mean", "edge_8_Mean", "edge_15_Mean"));
  EXPECT_EQ(comparison.tensor_changes.size(), 3u);
  // That both have is the one that it was.
  comparison = Compared(before, side("edge_13_Mean", "edge_8_Mean", "edge_15_Mean"));
  ASSERT_EQ(comparison.tensor_changes.size(), 2u);
  for (const CutTensorChange& one : comparison.tensor_changes) {
    EXPECT_TRUE(one.before && one.now) << one.name.tensor;
    EXPECT_EQ(one.name.tensor, one.name.from == kClient ? "edge_13_Mean" : "Mean");
  }
  const CutSide odd = side("edge_Mean", "edge_12", "");
  EXPECT_EQ(Compared(odd, odd).tensor_changes[0].name.tensor, "edge_12");
  EXPECT_EQ(Compared(odd, odd).tensor_changes[1].name.tensor, "edge_Mean");
}

TEST(CutComparison, AnOperatorThatMovedIsSaid) {
  CutSide before = Made({});
  const CutOperatorName there{kWorker, "remote"};
  const CutOperatorName here{kClient, "remote"};
  CutSide now = before;
  now.operators[here] = now.operators[there];
  now.operators.erase(there);
  const CutComparison comparison = Compared(before, now);
  const auto of = [&](const CutOperatorName& name) {
    for (const CutOperatorChange& one : comparison.operators) {
      if (one.name == name) return one;
    }
    return CutOperatorChange{};
  };
  EXPECT_EQ(of(here).moved_from, kWorker);
  EXPECT_EQ(of(here).calls_before, 0);
  EXPECT_EQ(of(here).path.change.est_ns, -of(there).path.change.est_ns);
  EXPECT_EQ(of(there).calls_now, 0);
  EXPECT_EQ(of(there).moved_from, "");
}

TEST(CutComparison, SeveralBeforeHoldHowTheyDiffer) {
  const std::vector<CutSide> before = {Made({}), Made({.remote_ns = 8 * kMs}, 30), Made({})};
  const CutComparison comparison = CompareCut(before, Made({.remote_ns = 7 * kMs}));
  ASSERT_EQ(comparison.mismatch, Mismatch::kNone) << comparison.mismatch_text;
  EXPECT_EQ(comparison.before.steps, 150u);
  EXPECT_TRUE(comparison.drift_known());
  EXPECT_EQ(comparison.step.change.est_ns, 16 * kMs - (120 * 15 + 30 * 17) * kMs / 150);
  EXPECT_FALSE(comparison.step.certain());
  EXPECT_FALSE(comparison.work->certain());
}

TEST(CutComparison, WhatIsNotComparableIsRefused) {
  CutSide refused;
  refused.refusal = CutRefusal::kTooFewSteps;
  refused.refusal_text = "29 whole steps";
  const CutSide whole = Made({});
  CutComparison comparison = Compared(refused, whole);
  EXPECT_EQ(comparison.mismatch, Mismatch::kBeforeRefused);
  EXPECT_EQ(comparison.refusal, CutRefusal::kTooFewSteps);
  EXPECT_EQ(comparison.mismatch_text, "the recording before: 29 whole steps");
  comparison = Compared(whole, refused);
  EXPECT_EQ(comparison.mismatch, Mismatch::kNowRefused);
  CutSide other = whole;
  other.partitions["/job:worker/replica:0/task:1"] = other.partitions[kWorker];
  comparison = Compared(whole, other);
  EXPECT_EQ(comparison.mismatch, Mismatch::kOtherWorldSize);
  EXPECT_THAT(comparison.mismatch_text, HasSubstr("task:1 now; "));
}

TEST(CutComparison, LimitsAreOfTheStepAndItsPath) {
  const CutComparison comparison = Compared(Made({}), Made({.remote_ns = 9 * kMs}));
  const auto state = [&](const char* limit) {
    return JudgeLimits({*ParseLimit(limit)}, comparison)[0].state;
  };
  using State = LimitResult::State;
  EXPECT_EQ(state("step > +19%"), State::kAbove);
  EXPECT_EQ(state("step > +21%"), State::kNotAbove);
  EXPECT_EQ(state("work > +19%"), State::kAbove);
  EXPECT_EQ(state("tensors > +0%"), State::kNotAbove);
  EXPECT_EQ(state("between_steps > +0%"), State::kNotAbove);
  EXPECT_EQ(state("between steps > +0%"), State::kNotAbove);
  EXPECT_EQ(state("input > +1%"), State::kNotJudged);
  const LimitResult few =
      JudgeLimits({*ParseLimit("step > +1%")}, Compared(Made({}, 59), Made({})))[0];
  const LimitResult one_of_two =
      JudgeLimits({*ParseLimit("step > +1%")}, CompareCut({Made({}), Made({}, 59)}, Made({})))[0];
  EXPECT_EQ(one_of_two.why, few.why);
  EXPECT_EQ(few.why,
            "only 59 steps of one class were judged before, and 60 are needed on both sides");
}

}  // namespace
}  // namespace syncline::analysis::why
