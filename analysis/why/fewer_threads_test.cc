// SPDX-License-Identifier: Apache-2.0
// Who is named for fewer threads, and above all who is not: jobs in which another reason makes a
// rank late while another rank's threads do something of their own.
#include "analysis/why/fewer_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "analysis/why/explain.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = 1'000'000;

evidence::Evidence& EvidenceOf(FakeJob* job, size_t rank) {
  return const_cast<evidence::Evidence&>(*job->input().ranks[rank].evidence);
}

bool IsNamed(const Answer& answer, size_t rank) {
  for (const RankFinding& finding : answer.findings) {
    for (const Cause& cause : finding.causes) {
      if (cause.threads.has_value()) return finding.index == rank;
    }
  }
  return false;
}

// Rank 1 is late: that is certain, and its cause is not known.
void ExpectNobodyIsNamed(FakeJob job) {
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  ASSERT_FALSE(answer.findings.empty());
  EXPECT_EQ(answer.findings[0].index, 1);
  EXPECT_TRUE(answer.findings[0].late);
  EXPECT_TRUE(answer.findings[0].causes.empty());
}

TEST(FewerThreads, OneOfTwoThreadsIsNamed) {
  for (const size_t ranks : {2, 3, 8}) {
    FakeJob job({.ranks = ranks, .trouble = {{1, {.threads = 1}}}, .threads = 2});
    const Answer answer = Explain(job.input());
    ASSERT_TRUE(IsNamed(answer, 1)) << ranks;
    const FewerThreads& threads = *answer.findings[0].causes[0].threads;
    EXPECT_EQ(threads.own_threads, 10);
    EXPECT_EQ(threads.others_threads, 11);
    EXPECT_GT(threads.explained, 0.95);
  }
}

TEST(FewerThreads, SomeOfManyAreNamed) {
  for (const size_t threads : {1, 2, 4}) {
    FakeJob job({.trouble = {{1, {.threads = threads}}}, .threads = 8});
    EXPECT_TRUE(IsNamed(Explain(job.input()), 1)) << threads;
  }
}

// Recordings of before threads were counted.
TEST(FewerThreads, WithoutACountFewerCpusMustBeKnown) {
  FakeJob job({.trouble = {{1, {.threads = 1}}}, .threads = 2});
  for (const size_t rank : {0, 1}) {
    for (auto& sample : EvidenceOf(&job, rank).recorded_samples) sample.threads = 0;
  }
  EXPECT_FALSE(IsNamed(Explain(job.input()), 1));
  EvidenceOf(&job, 0).processes[0].allowed_count = 2;
  EXPECT_FALSE(IsNamed(Explain(job.input()), 1)) << "its own are not known";
  EvidenceOf(&job, 1).processes[0].allowed_count = 2;
  EXPECT_FALSE(IsNamed(Explain(job.input()), 1));
  EvidenceOf(&job, 1).processes[0].allowed_count = 1;
  const Answer answer = Explain(job.input());
  ASSERT_TRUE(IsNamed(answer, 1));
  EXPECT_EQ(answer.findings[0].causes[0].threads->own_threads, 0);
  // More than it could use even on the others' threads.
  EvidenceOf(&job, 0).processes[0].allowed_count = 16;
  EvidenceOf(&job, 1).processes[0].allowed_count = 8;
  EXPECT_FALSE(IsNamed(Explain(job.input()), 1));
}

TEST(FewerThreads, WhoHasAsManyThreadsIsNotNamed) {
  ExpectNobodyIsNamed(
      FakeJob({.trouble = {{1, {.threads = 1}}}, .threads = 2, .more_threads = {{1, 1}}}));
  // A few more of another kind are not those that would be busy.
  ExpectNobodyIsNamed(
      FakeJob({.trouble = {{1, {.threads = 1}}}, .threads = 8, .more_threads = {{1, 5}}}));
}

// It evaluates on more threads than it trains on.
TEST(FewerThreads, AnEvaluationOnAnotherRankIsNoStep) {
  ExpectNobodyIsNamed(FakeJob({.steps = 160,
                               .trouble = {{1, {.work = 1.4}}},
                               .more_threads = {{0, 3}},
                               .evaluates_every = 40,
                               .evaluates_ns = 120 * kMs,
                               .evaluates_threads = 4}));
}

// By far more than it computes longer.
TEST(FewerThreads, AThreadThatDoesSomethingElseExplainsNothing) {
  for (const double work : {1.1, 1.2, 1.3}) {
    SCOPED_TRACE(work);
    ExpectNobodyIsNamed(FakeJob(
        {.trouble = {{1, {.work = work}}}, .more_threads = {{0, 1}}, .background = {{0, 0.6}}}));
  }
}

// It has so much more code of its own that the slower processor does not show in that.
TEST(FewerThreads, ASlowerProcessorIsNotMadeUpForByMoreHostCode) {
  ExpectNobodyIsNamed(FakeJob({.trouble = {{0, {.host_ns = kMs}}, {1, {.slower = 1.4}}},
                               .more_threads = {{0, 1}},
                               .background = {{0, 0.4}}}));
}

// All its threads wait for the one that has no CPU, and are busy with that.
TEST(FewerThreads, AHelperThatWaitsForACpuIsNoThreadLess) {
  ExpectNobodyIsNamed(FakeJob({.trouble = {{1, {.starved = 0.5}}},
                               .threads = 4,
                               .spin = true,
                               .helper_sampled = true,
                               .more_threads = {{0, 3}}}));
}

// Beside fewer threads it sleeps.
TEST(FewerThreads, WhoSleepsForMuchOfItIsNotNamed) {
  FakeJob job({.trouble = {{1, {.asleep_ns = 2 * kMs, .threads = 1}}}, .threads = 2});
  EXPECT_FALSE(IsNamed(Explain(job.input()), 1));
}

// What its operators take longer for another reason is no part of the amount.
TEST(FewerThreads, TheAmountIsWhatThreadsExplain) {
  FakeJob job({.trouble = {{1, {.threads = 1, .work = 1.05}}}, .threads = 2});
  const Answer answer = Explain(job.input());
  ASSERT_TRUE(IsNamed(answer, 1));
  const RankFinding& finding = answer.findings[0];
  EXPECT_LT(finding.causes[0].threads->explained, 0.98);
  EXPECT_NEAR(
      finding.causes[0].amount.est_ns,
      finding.causes[0].threads->others_helpers_ns - finding.causes[0].threads->own_helpers_ns,
      0.2 * kMs);
  EXPECT_LT(finding.causes[0].cost.est_ns, finding.lead.est_ns);
  EXPECT_GT(finding.unexplained_ns(), 0.5 * kMs);
}

// What Gloo's threads use is known only where they were sampled. One that begins late leaves the
// time since.
TEST(FewerThreads, ThreadsThatCarryOutCollectivesMustBeSampledForHalfOfTheTime) {
  const auto named = [](double from) {
    FakeJob job({.steps = 160, .trouble = {{1, {.threads = 1}}}, .threads = 2});
    evidence::Evidence& evidence = EvidenceOf(&job, 0);
    evidence.threads.push_back({0, 101, 101, "gloo_tcp_loop"});
    const std::vector<evidence::ThreadSample> drivers = evidence.thread_samples;
    const auto first = static_cast<size_t>(from * static_cast<double>(drivers.size()));
    for (size_t i = first; i < drivers.size(); ++i) {
      evidence::ThreadSample sample = drivers[i];
      sample.thread = 1;
      sample.on_cpu_ns = 3'000'000'000;  // before; nothing since
      evidence.thread_samples.push_back(sample);
    }
    return IsNamed(Explain(job.input()), 1);
  };
  EXPECT_TRUE(named(0));
  EXPECT_TRUE(named(0.3));
  EXPECT_FALSE(named(0.6));
  EXPECT_FALSE(named(1)) << "never";
}

// Whole processes are read in one instant only.
TEST(FewerThreads, ReadingsAtOneTimeSayNothing) {
  FakeJob job({.trouble = {{1, {.threads = 1}}}, .threads = 2});
  auto& samples = EvidenceOf(&job, 0).recorded_samples;
  for (auto& sample : samples) {
    sample.at_ns = samples.front().at_ns;
    sample.until_ns = samples.front().until_ns;
  }
  EXPECT_FALSE(IsNamed(Explain(job.input()), 1));
}

}  // namespace
}  // namespace syncline::analysis::why
