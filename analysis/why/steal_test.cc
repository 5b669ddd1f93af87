// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/steal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/why/explain.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = 1'000'000;

// Ranks of the made-up job have a CPU each, so that their drivers lose all that is taken.
TEST(StealTime, OfALateRankThatLosesMoreItIsSaid) {
  for (const size_t ranks : {2, 3, 8}) {
    FakeJob job(
        {.ranks = ranks, .trouble = {{0, {.stolen_ns = kMs / 2}}, {1, {.stolen_ns = 6 * kMs}}}});
    const Answer answer = Explain(job.input());
    EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown) << ranks;
    ASSERT_EQ(answer.findings.size(), 1);
    EXPECT_EQ(answer.findings[0].index, 1);
    ASSERT_TRUE(answer.findings[0].steal.has_value());
    const MoreStealTime& more = *answer.findings[0].steal;
    EXPECT_NEAR(static_cast<double>(more.own.step_ns), 6.0 * kMs, 0.3 * kMs);
    const double others_ns = ranks == 2 ? kMs / 2 : 0;
    EXPECT_NEAR(static_cast<double>(more.more_ns), 6.0 * kMs - others_ns, 0.5 * kMs);
    EXPECT_NEAR(more.own.share, 0.3, 0.05);
    EXPECT_NEAR(more.others_share, ranks == 2 ? 0.035 : 0, 0.01);
  }
}

// On a CPU it is not, and asleep neither.
TEST(StealTime, IsNoSleep) {
  FakeJob job({.trouble = {{1, {.stolen_ns = 6 * kMs}}}});
  const Answer answer = Explain(job.input());
  ASSERT_TRUE(answer.ranks[1].processor.has_value());
  EXPECT_NEAR(static_cast<double>(answer.ranks[1].processor->stolen_ns), 6.0 * kMs, 0.3 * kMs);
  EXPECT_LT(answer.ranks[1].processor->asleep_ns, kMs / 2);
  FakeJob sleeps({.trouble = {{1, {.asleep_ns = 6 * kMs}}}});
  const Answer slept = Explain(sleeps.input());
  EXPECT_EQ(slept.ranks[1].processor->stolen_ns, 0);
  EXPECT_GT(slept.ranks[1].processor->asleep_ns, 5 * kMs);
  EXPECT_FALSE(slept.findings[0].steal.has_value());
}

double Ms(int64_t ns) { return static_cast<double>(ns) / kMs; }

// Samples of its state tell them apart.
TEST(StealTime, BesideSleepItIsNoneAndSleepIsNotStolen) {
  FakeJob job({.steps = 900, .trouble = {{1, {.asleep_ns = 4 * kMs, .stolen_ns = 6 * kMs}}}});
  const Answer answer = Explain(job.input());
  EXPECT_NEAR(Ms(answer.ranks[1].processor->asleep_ns), 4, 1);
  EXPECT_NEAR(Ms(answer.ranks[1].processor->stolen_ns), 6, 1);
}

// The process may use other CPUs, too, and these were stolen.
TEST(StealTime, WhoSleepsWhileOthersLoseTheirCpusSleeps) {
  FakeJob job({.steps = 900, .trouble = {{1, {.asleep_ns = 8 * kMs}}}});
  auto& evidence = const_cast<evidence::Evidence&>(*job.input().ranks[1].evidence);
  for (auto& sample : evidence.steal_samples) sample.stolen_ns = sample.busy_ns * 37 / 100;
  const Answer answer = Explain(job.input());
  EXPECT_NEAR(answer.ranks[1].steal->share, 0.27, 0.01);
  EXPECT_GT(answer.ranks[1].processor->asleep_ns, 7 * kMs);
  EXPECT_LT(answer.ranks[1].processor->stolen_ns, kMs);
}

TEST(StealTime, WithoutStatesItIsTakenOffAllTheSame) {
  FakeJob job({.trouble = {{1, {.stolen_ns = 6 * kMs}}}, .states = false});
  const Answer answer = Explain(job.input());
  EXPECT_NEAR(Ms(answer.ranks[1].processor->stolen_ns), 6, 0.3);
  EXPECT_LT(answer.ranks[1].processor->asleep_ns, kMs / 2);
}

// Of eight CPUs that the process may use only the driver's own was stolen.
TEST(StealTime, WhoLosesMoreThanAllDoesNotSleep) {
  FakeJob job({.steps = 900, .trouble = {{1, {.stolen_ns = 8 * kMs}}}});
  auto& evidence = const_cast<evidence::Evidence&>(*job.input().ranks[1].evidence);
  for (auto& sample : evidence.steal_samples) sample.busy_ns *= 8;
  const Answer answer = Explain(job.input());
  EXPECT_LT(Ms(answer.ranks[1].steal->step_ns), 2);
  EXPECT_LT(answer.ranks[1].processor->asleep_ns, kMs);
  EXPECT_NEAR(Ms(answer.ranks[1].processor->stolen_ns), 8, 1);
}

// One machine for both: who has more to do loses more, and is not late for it.
TEST(StealTime, OfWhoMerelyWorksMoreItIsNotSaid) {
  FakeJob job({.trouble = {{0, {.stolen_ns = 4 * kMs}}, {1, {.stolen_ns = 8 * kMs, .work = 2}}}});
  for (size_t rank = 0; rank < 2; ++rank) {
    auto& evidence = const_cast<evidence::Evidence&>(*job.input().ranks[rank].evidence);
    for (auto& sample : evidence.steal_samples) sample.stolen_ns = sample.busy_ns / 4;
  }
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_NEAR(answer.ranks[0].steal->share, answer.ranks[1].steal->share, 0.01);
  EXPECT_GT(answer.ranks[1].steal->step_ns, answer.ranks[0].steal->step_ns + kMs);
  EXPECT_FALSE(answer.findings[0].steal.has_value());
}

// Kernels that leave it in the time on a CPU.
TEST(StealTime, WhichIsInTheTimeOnACpuIsNotTakenOffSleep) {
  FakeJob job({.steps = 900, .trouble = {{1, {.asleep_ns = 8 * kMs, .stolen_ns = 6 * kMs}}}});
  auto& evidence = const_cast<evidence::Evidence&>(*job.input().ranks[1].evidence);
  size_t at = 0;
  for (auto& sample : evidence.thread_samples) {
    if (sample.thread == 0) sample.on_cpu_ns += evidence.steal_samples[at++].stolen_ns;
  }
  const Answer answer = Explain(job.input());
  EXPECT_NEAR(Ms(answer.ranks[1].processor->asleep_ns), 8, 2) << "as 450 samples find it";
  EXPECT_LT(Ms(answer.ranks[1].processor->stolen_ns), 2);
}

TEST(StealTime, IsNoTimeInWhichItIsBlocked) {
  FakeJob job({.steps = 900, .trouble = {{1, {.blocked_ns = 8 * kMs, .stolen_ns = 8 * kMs}}}});
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.findings.size(), 1);
  ASSERT_FALSE(answer.findings[0].causes.empty());
  const Cause& cause = answer.findings[0].causes[0];
  EXPECT_EQ(cause.part, Part::kBlocked);
  EXPECT_NEAR(Ms(cause.amount.est_ns), 8, 1);
  EXPECT_LE(cause.amount.lo_ns, 8 * kMs);
  EXPECT_GE(cause.amount.hi_ns, 8 * kMs);
  EXPECT_NEAR(Ms(answer.findings[0].unexplained_ns()), 8, 1.2);
}

TEST(StealTime, WhereACauseExplainsItNothingIsSaid) {
  FakeJob job({.trouble = {{1, {.throttled_ns = 8 * kMs, .stolen_ns = kMs}}}});
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  EXPECT_FALSE(answer.findings[0].steal.has_value());
}

// It takes time, and nobody waits for it.
TEST(StealTime, OfNobodyWhoIsNotLate) {
  FakeJob job({.trouble = {{0, {.host_ns = 8 * kMs}}, {1, {.stolen_ns = 6 * kMs}}}});
  const Answer answer = Explain(job.input());
  for (const RankFinding& finding : answer.findings) {
    EXPECT_FALSE(finding.steal.has_value());
  }
  ASSERT_TRUE(answer.ranks[1].steal.has_value());
  EXPECT_NEAR(answer.ranks[1].steal->share, 0.3, 0.05);
  EXPECT_EQ(answer.ranks[0].steal->step_ns, 0);
}

// Of all that the CPUs lost the driver lost a part: as much as of what it had to do.
TEST(StealTime, OfManyCpusItIsTheSameShare) {
  FakeJob job({.trouble = {{1, {.stolen_ns = 6 * kMs}}}});
  auto& evidence = const_cast<evidence::Evidence&>(*job.input().ranks[1].evidence);
  for (auto& sample : evidence.steal_samples) sample.busy_ns *= 10, sample.stolen_ns *= 10;
  const Answer answer = Explain(job.input());
  EXPECT_NEAR(static_cast<double>(answer.ranks[1].steal->step_ns), 6.0 * kMs, 0.3 * kMs);
}

// A single burst is in many steps, and not in most of the readings.
TEST(StealTime, OfOneReadingNothingIsCertain) {
  FakeJob job({.trouble = {{1, {.asleep_ns = 8 * kMs}}}});
  auto& evidence = const_cast<evidence::Evidence&>(*job.input().ranks[1].evidence);
  auto& samples = evidence.steal_samples;
  for (size_t i = samples.size() / 2; i < samples.size(); ++i) samples[i].stolen_ns += 300 * kMs;
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_FALSE(answer.findings[0].steal.has_value());
}

// Recordings of before it was read, and ranks of which the CPUs are not known.
TEST(StealTime, WithoutSamplesNothingIsSaid) {
  FakeJob without({.trouble = {{1, {.stolen_ns = 6 * kMs}}}, .steal = false});
  const Answer answer = Explain(without.input());
  EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  EXPECT_FALSE(answer.ranks[1].steal.has_value());
  FakeJob one({.trouble = {{1, {.stolen_ns = 6 * kMs}}}});
  const_cast<evidence::Evidence&>(*one.input().ranks[0].evidence).steal_samples.clear();
  const Answer half = Explain(one.input());
  EXPECT_TRUE(half.ranks[1].steal.has_value());
  EXPECT_FALSE(half.findings[0].steal.has_value()) << "the other rank's is not known";
}

}  // namespace
}  // namespace syncline::analysis::why
