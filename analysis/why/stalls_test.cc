// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/why/explain.h"
#include "analysis/why/testing/fake_job.h"
#include "analysis/why/testing/hand_job.h"

namespace syncline::analysis::why {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = StallGroup::Kind;

constexpr int64_t kMs = 1'000'000;

Answer AnswerOf(FakeJobOptions options) { return Explain(FakeJob(std::move(options)).input()); }

TEST(Stalls, AHealthyJobHasNone) {
  const Answer answer = AnswerOf({.ranks = 3});
  EXPECT_FALSE(answer.stalls.has_value());
  ASSERT_TRUE(answer.closest.has_value());
  EXPECT_FALSE(answer.closest->quiet_lead.has_value());
}

// Every 20th of 81 steps one rank's own code takes 300 ms longer: no rank of the others is slower.
TEST(Stalls, TheRankThatMakesThemIsNamedWithTheirRhythm) {
  for (const size_t culprit : {0, 1, 2}) {
    const Answer answer = AnswerOf(
        {.ranks = 3, .steps = 101, .trouble = {{culprit, {.host_ns = 300 * kMs}}}, .every = 20});
    ASSERT_TRUE(answer.stalls.has_value());
    const Stalls& stalls = *answer.stalls;
    EXPECT_EQ(stalls.stalls, 6);
    EXPECT_EQ(stalls.steps, 101);
    EXPECT_THAT(stalls.judged, ElementsAre(0, 20, 40, 60, 80, 100));
    EXPECT_NEAR(stalls.usual_ns, 16 * kMs, 2 * kMs);
    EXPECT_NEAR(stalls.longer_ns, 6 * 300 * kMs, 6 * kMs);
    ASSERT_EQ(stalls.groups.size(), 1);
    const StallGroup& group = stalls.groups[0];
    EXPECT_EQ(group.kind, Kind::kRanks);
    EXPECT_THAT(group.ranks, ElementsAre(culprit));
    EXPECT_EQ(group.stalls, 6);
    EXPECT_EQ(group.every_steps, 20);
    EXPECT_EQ(group.in_rhythm, 6);
    EXPECT_NEAR(group.longest_ns, 316 * kMs, 2 * kMs);
    EXPECT_NEAR(group.longer_ns, 300 * kMs, kMs);
    EXPECT_LT(group.others_most_ns, kMs);
    EXPECT_NEAR(group.longer[static_cast<size_t>(Part::kHostCode)], 300 * kMs, kMs);
    ASSERT_TRUE(group.on_cpu_ns.has_value());
    // The rank's lead comes from them alone.
    for (const RankFinding& finding : answer.findings) {
      ASSERT_TRUE(finding.quiet_lead.has_value());
      EXPECT_LT(finding.quiet_lead->hi_ns, kMs);
    }
  }
}

TEST(Stalls, WhatAllRanksDoNamesNone) {
  const Trouble trouble{.host_ns = 300 * kMs};
  const Answer answer =
      AnswerOf({.ranks = 3, .trouble = {{0, trouble}, {1, trouble}, {2, trouble}}, .every = 20});
  ASSERT_TRUE(answer.stalls.has_value());
  ASSERT_EQ(answer.stalls->groups.size(), 1);
  EXPECT_EQ(answer.stalls->groups[0].kind, Kind::kEverybody);
  EXPECT_EQ(answer.stalls->groups[0].ranks.size(), 3);
  EXPECT_TRUE(answer.findings.empty());
}

// An evaluation of one rank, with a barrier behind it: steps of another class.
TEST(Stalls, StepsOfAnotherClassAreLookedAtToo) {
  const Answer answer =
      AnswerOf({.ranks = 2, .steps = 100, .evaluates_every = 25, .evaluates_ns = 400 * kMs});
  ASSERT_TRUE(answer.stalls.has_value());
  const Stalls& stalls = *answer.stalls;
  EXPECT_EQ(stalls.stalls, 3) << "the fourth has no step behind it";
  EXPECT_THAT(stalls.judged, IsEmpty());
  ASSERT_EQ(stalls.groups.size(), 1);
  const StallGroup& group = stalls.groups[0];
  EXPECT_EQ(group.kind, Kind::kRanks);
  EXPECT_THAT(group.ranks, ElementsAre(0));
  EXPECT_EQ(group.every_steps, 25);
  EXPECT_NEAR(group.longer_ns, 400 * kMs, 3 * kMs);
  EXPECT_NEAR(group.longer[static_cast<size_t>(Part::kCompute)], 400 * kMs, 3 * kMs);
  EXPECT_FALSE(group.taken_away);
}

// A fault in each fourth step is no stall: its mean is what counts.
TEST(Stalls, ManyLongStepsAreNone) {
  const Answer answer = AnswerOf({.ranks = 2, .trouble = {{1, {.host_ns = 40 * kMs}}}, .every = 4});
  EXPECT_FALSE(answer.stalls.has_value());
}

// Behind a collective that it waits for in each step rank 0 is silent in each 20th: a log, a sleep.
TEST(Stalls, SilenceBehindACollectiveIsTheRanksOwn) {
  HandJob job;
  uint64_t number = 0;
  for (uint64_t step = 0; step < 80; ++step) {
    const int64_t longer = step % 20 == 19 ? 300 : 0;
    for (size_t rank = 0; rank < 2; ++rank) {
      const int64_t own = rank == 0 ? longer : 0;
      job.Collective(rank, number, 0, 0, 4);
      job.Compute(rank, 4 + own, 8 + own);
      job.Collective(rank, number + 1, 8 + own, 8 + longer, 12 + longer);
      job.StepOptimizer(rank, 12 + longer, 14 + longer);
    }
    number += 2;
    job.NextStep(14 + longer);
  }
  const Answer answer = Explain(job.Done());
  ASSERT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  ASSERT_TRUE(answer.stalls.has_value());
  EXPECT_EQ(answer.stalls->stalls, 4);
  ASSERT_EQ(answer.stalls->groups.size(), 1);
  const StallGroup& group = answer.stalls->groups[0];
  EXPECT_EQ(group.kind, Kind::kRanks);
  EXPECT_EQ(group.ranks, std::vector<size_t>{0});
  EXPECT_NEAR(static_cast<double>(group.longer_ns), 300e6, 1e6);
}

}  // namespace
}  // namespace syncline::analysis::why
