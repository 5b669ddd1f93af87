// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/clock_speed.h"

#include <gtest/gtest.h>

#include "analysis/why/explain.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kKhz = 2'600'000;

// All that the rank does takes a third longer, and its clock is lower by as much.
TEST(ClockSpeed, OfALateRankWithALowerClockItIsSaid) {
  for (const size_t ranks : {2, 3, 8}) {
    FakeJob job(
        {.ranks = ranks, .steps = 400, .trouble = {{1, {.slower = 4.0 / 3}}}, .clock_khz = kKhz});
    const Answer answer = Explain(job.input());
    EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown) << ranks;
    ASSERT_EQ(answer.findings.size(), 1);
    EXPECT_EQ(answer.findings[0].index, 1);
    ASSERT_TRUE(answer.findings[0].clock.has_value());
    const SlowerClock& clock = *answer.findings[0].clock;
    EXPECT_NEAR(static_cast<double>(clock.own.khz), kKhz * 0.75, 25'000);
    EXPECT_NEAR(static_cast<double>(clock.others_khz), kKhz, 25'000);
    EXPECT_GE(clock.own.readings, 10);
    // It explains the lead, in which the time on a CPU of waits is not.
    const auto lead_ns = static_cast<double>(answer.findings[0].lead.est_ns);
    EXPECT_NEAR(static_cast<double>(clock.more_ns), lead_ns, 0.15 * lead_ns);
  }
}

TEST(ClockSpeed, WithTheSameClockNothingIsSaid) {
  FakeJob job({.steps = 400, .trouble = {{1, {.work = 4.0 / 3}}}, .clock_khz = kKhz});
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_TRUE(answer.findings[0].late);
  EXPECT_FALSE(answer.findings[0].clock.has_value());
  ASSERT_TRUE(answer.ranks[1].clock.has_value());
  EXPECT_NEAR(static_cast<double>(answer.ranks[1].clock->khz), kKhz, 25'000);
}

TEST(ClockSpeed, AHigherClockOfTheLateRankIsNoSign) {
  FakeJob job({.steps = 400,
               .trouble = {{0, {.slower = 1.1}}, {1, {.asleep_ns = 9 * kMs}}},
               .clock_khz = kKhz});
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_EQ(answer.findings[0].index, 1);
  EXPECT_FALSE(answer.findings[0].clock.has_value());
}

// It is late for another reason: what it does takes no longer on a CPU.
TEST(ClockSpeed, WhoIsNoLongerOnACpuIsNotSlowedByTheClock) {
  FakeJob job({.steps = 400, .trouble = {{1, {.asleep_ns = 9 * kMs}}}, .clock_khz = kKhz});
  JobInput& input = job.input();
  evidence::Evidence changed = *input.ranks[1].evidence;
  for (evidence::ThreadSample& sample : changed.thread_samples) {
    if (sample.clock_khz > 0) sample.clock_khz = kKhz / 2;
  }
  input.ranks[1].evidence = &changed;
  const Answer answer = Explain(input);
  EXPECT_TRUE(answer.findings[0].late);
  EXPECT_FALSE(answer.findings[0].clock.has_value());
}

// A few readings of another clock do not make it certain, nor a difference that takes next to
// nothing.
TEST(ClockSpeed, IsSaidOnlyIfItIsCertainAndMuch) {
  FakeJob little(
      {.steps = 400, .trouble = {{1, {.asleep_ns = 9 * kMs, .slower = 1.02}}}, .clock_khz = kKhz});
  EXPECT_FALSE(Explain(little.input()).findings[0].clock.has_value());
  FakeJob short_one({.steps = 20, .trouble = {{1, {.slower = 4.0 / 3}}}, .clock_khz = kKhz});
  const Answer few = Explain(short_one.input());
  for (const RankFinding& finding : few.findings) EXPECT_FALSE(finding.clock.has_value());
  FakeJob unknown({.steps = 400, .trouble = {{1, {.slower = 4.0 / 3}}}});
  const Answer answer = Explain(unknown.input());
  EXPECT_FALSE(answer.findings[0].clock.has_value());
  EXPECT_FALSE(answer.ranks[1].clock.has_value());
}

// Two clocks in turn, as under a governor: the readings of both ranks overlap.
TEST(ClockSpeed, ReadingsThatOverlapAreNoSign) {
  FakeJob job({.steps = 400, .trouble = {{1, {.slower = 4.0 / 3}}}, .clock_khz = kKhz});
  JobInput& input = job.input();
  size_t count = 0;
  evidence::Evidence changed = *input.ranks[1].evidence;
  for (evidence::ThreadSample& sample : changed.thread_samples) {
    if (sample.clock_khz > 0 && ++count % 4 == 0) sample.clock_khz = kKhz + 20'000;
  }
  input.ranks[1].evidence = &changed;
  EXPECT_FALSE(Explain(input).findings[0].clock.has_value());
}

}  // namespace
}  // namespace syncline::analysis::why
