// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "analysis/why/judged.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMs = 1'000'000;

Answer AnswerOf(FakeJobOptions options) {
  FakeJob job(std::move(options));
  return Explain(job.input());
}

void ExpectTablesAddUp(const Answer& answer) {
  for (const RankSummary& rank : answer.ranks) {
    EXPECT_EQ(std::accumulate(rank.mean.begin(), rank.mean.end(), int64_t{0}), rank.mean_step_ns);
    for (const int64_t part : rank.mean) EXPECT_GE(part, 0);
  }
}

int64_t MeanPart(const Answer& answer, size_t rank, Part part) {
  return answer.ranks[rank].mean[static_cast<size_t>(part)];
}

TEST(Explain, AHealthyJobNamesNobody) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Answer answer = AnswerOf({.seed = seed});
    ASSERT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
    EXPECT_EQ(answer.verdict, Verdict::kNobody);
    EXPECT_TRUE(answer.findings.empty());
    ASSERT_TRUE(answer.closest.has_value());
    EXPECT_EQ(answer.steps, 80);
    EXPECT_EQ(answer.classes[0].name, "allreduce x1");
    ExpectTablesAddUp(answer);
  }
}

struct Case {
  const char* name;
  Trouble trouble;
  Part part;
  int64_t ns;
};

TEST(Explain, EachCauseIsNamedWithItsRankAndItsAmount) {
  const Case cases[] = {{"throttled", {.throttled_ns = 6 * kMs}, Part::kThrottled, 6 * kMs},
                        {"queued", {.queued_ns = 4 * kMs}, Part::kWaitingForCpu, 4 * kMs},
                        {"input", {.input_ns = 5 * kMs}, Part::kInput, 5 * kMs},
                        {"garbage", {.garbage_ns = 3 * kMs}, Part::kGarbageCollection, 3 * kMs}};
  for (const Case& one : cases) {
    for (const size_t culprit : {0, 1, 2}) {
      SCOPED_TRACE(one.name);
      const Answer answer = AnswerOf({.ranks = 3, .trouble = {{culprit, one.trouble}}});
      ASSERT_EQ(answer.verdict, Verdict::kCause);
      ASSERT_EQ(answer.findings.size(), 1);
      const RankFinding& finding = answer.findings[0];
      EXPECT_EQ(finding.index, culprit);
      EXPECT_TRUE(finding.late);
      ASSERT_EQ(finding.causes.size(), 1);
      const Cause& cause = finding.causes[0];
      EXPECT_EQ(cause.part, one.part);
      EXPECT_NEAR(cause.amount.est_ns, one.ns, 300'000);
      EXPECT_LE(cause.amount.lo_ns, cause.amount.est_ns);
      EXPECT_GE(cause.amount.hi_ns, cause.amount.est_ns);
      EXPECT_NEAR(finding.lead.est_ns, one.ns, 300'000);
      EXPECT_NEAR(cause.cost.est_ns, one.ns, 500'000);
      EXPECT_EQ(finding.order.last, 80);
      EXPECT_EQ(finding.order.proven, 80);
      EXPECT_NEAR(MeanPart(answer, culprit, one.part), one.ns, one.ns / 2);
      ExpectTablesAddUp(answer);
    }
  }
}

TEST(Explain, ALowerInstructionSetIsACause) {
  for (const size_t culprit : {0, 1, 2}) {
    const Answer answer = AnswerOf({.ranks = 3,
                                    .trouble = {{culprit, {.set = "avx2", .set_ns = 4 * kMs}}},
                                    .set = "avx512_core"});
    ASSERT_EQ(answer.verdict, Verdict::kCause);
    const RankFinding& finding = answer.findings[0];
    EXPECT_EQ(finding.index, culprit);
    EXPECT_TRUE(finding.work.empty()) << "reorders are no work of the program's";
    ASSERT_EQ(finding.causes.size(), 1);
    const Cause& cause = finding.causes[0];
    EXPECT_EQ(cause.part, Part::kCompute);
    ASSERT_EQ(cause.lower_sets.size(), 1);
    EXPECT_EQ(cause.lower_sets[0].primitive, "convolution");
    EXPECT_THAT(cause.lower_sets[0].own, ElementsAre("jit:avx2"));
    EXPECT_THAT(cause.lower_sets[0].others, ElementsAre("jit:avx512_core"));
    EXPECT_NEAR(cause.amount.est_ns, 4 * kMs, 300'000);
    EXPECT_NEAR(cause.cost.est_ns, 4 * kMs, 500'000);
    ExpectTablesAddUp(answer);
  }
}

evidence::Evidence& EvidenceOf(FakeJob* job, size_t rank) {
  return const_cast<evidence::Evidence&>(*job->input().ranks[rank].evidence);
}

TEST(Explain, FewerThreadsAreACause) {
  for (const size_t culprit : {0, 1, 2}) {
    FakeJob job({.ranks = 3, .trouble = {{culprit, {.threads = 1}}}, .threads = 2});
    const Answer answer = Explain(job.input());
    ASSERT_EQ(answer.verdict, Verdict::kCause);
    const RankFinding& finding = answer.findings[0];
    EXPECT_EQ(finding.index, culprit);
    ASSERT_EQ(finding.causes.size(), 1);
    const Cause& cause = finding.causes[0];
    EXPECT_EQ(cause.part, Part::kCompute);
    ASSERT_TRUE(cause.threads.has_value());
    EXPECT_NEAR(cause.threads->own_helpers_ns, 0.3 * kMs, 0.1 * kMs) << "the optimizer's";
    EXPECT_NEAR(cause.threads->others_helpers_ns, 12.3 * kMs, kMs);
    EXPECT_NEAR(cause.amount.est_ns, 12 * kMs, kMs) << "5, 1 and 6 ms take twice as long";
    EXPECT_NEAR(cause.cost.est_ns, 12 * kMs, kMs);
    ExpectTablesAddUp(answer);
    // What whole processes used must be known of all ranks.
    EvidenceOf(&job, (culprit + 1) % 3).recorded_samples.clear();
    EXPECT_EQ(Explain(job.input()).verdict, Verdict::kLateCauseUnknown);
  }
}

// Threads that do something else, on the other rank alone, explain nothing of what makes this one
// late.
TEST(Explain, OtherReasonsToComputeLongerAreNotFewerThreads) {
  for (const Trouble& trouble : {Trouble{.asleep_ns = 6 * kMs}, Trouble{.more_work = true}}) {
    FakeJob job({.trouble = {{1, trouble}}});
    int64_t beside_ns = 0;
    for (auto& sample : EvidenceOf(&job, 0).recorded_samples) {
      sample.cpu_ns += beside_ns += 20 * kMs;  // of 50
    }
    const Answer answer = Explain(job.input());
    ASSERT_FALSE(answer.findings.empty());
    EXPECT_EQ(answer.findings[0].index, 1);
    EXPECT_TRUE(answer.findings[0].causes.empty());
  }
}

// One primitive of another type now and then, on another rank, makes the same work no other.
TEST(Explain, ARareOtherImplementationIsNoHigherSet) {
  FakeJob job({.trouble = {{1, {.asleep_ns = 4 * kMs}}}, .set = "avx512_core"});
  JobInput& input = job.input();
  const auto shape = static_cast<NameId>(input.names.size());
  input.names.emplace_back(
      "%s=cpu,convolution,brg:avx512_core_bf16,forward,src:bf16::blocked:a::f0,,,mb1;");
  size_t number = 0;
  input.ranks[0].threads[0].spans.Edit([&](std::vector<TaskSpan>* spans) {
    for (TaskSpan& span : *spans) {
      if (input.names[span.name] == "convolution" && ++number % 40 == 0) span.shape = shape;
    }
  });
  ASSERT_GE(number, 80);
  EXPECT_EQ(Explain(input).verdict, Verdict::kLateCauseUnknown);
}

TEST(Explain, MostOthersAreMoreThanHalfOfThem) {
  const Trouble low{.set = "avx2", .set_ns = 4 * kMs};
  const Trouble lower{.set = "sse41", .set_ns = 12 * kMs};
  const Answer answer =
      AnswerOf({.ranks = 4, .trouble = {{0, lower}, {1, low}}, .set = "avx512_core"});
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  ASSERT_EQ(answer.findings[0].index, 0);
  EXPECT_FALSE(answer.findings[0].causes[0].lower_sets[0].all_others);
  const Answer divided =
      AnswerOf({.ranks = 3, .trouble = {{0, lower}, {1, low}}, .set = "avx512_core"});
  EXPECT_EQ(divided.verdict, Verdict::kLateCauseUnknown);
}

// By its program's choice of layouts, say: it accuses nobody, but is said.
TEST(Explain, LongerReordersAreSaid) {
  const Answer answer = AnswerOf(
      {.trouble = {{1, {.set = "avx512_core", .reorder_ns = 3 * kMs}}}, .set = "avx512_core"});
  ASSERT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  ASSERT_TRUE(answer.findings[0].reorders.has_value());
  EXPECT_NEAR(answer.findings[0].reorders->est_ns, 3 * kMs, 300'000);
}

// The instruction set is no cause where it is higher, where nothing takes longer for it, or where
// the work is another one.
TEST(Explain, WhatIsNoLowerInstructionSet) {
  const Answer higher =
      AnswerOf({.trouble = {{1, {.set = "avx512_core", .set_ns = 4 * kMs}}}, .set = "avx2"});
  EXPECT_EQ(higher.verdict, Verdict::kLateCauseUnknown);
  const Answer unknown =
      AnswerOf({.trouble = {{1, {.set = "new", .set_ns = 4 * kMs}}}, .set = "avx2"});
  EXPECT_EQ(unknown.verdict, Verdict::kLateCauseUnknown);
  const Answer no_longer =
      AnswerOf({.trouble = {{1, {.input_ns = 4 * kMs, .set = "avx2"}}}, .set = "avx512_core"});
  ASSERT_EQ(no_longer.verdict, Verdict::kCause);
  ASSERT_EQ(no_longer.findings[0].causes.size(), 1);
  EXPECT_EQ(no_longer.findings[0].causes[0].part, Part::kInput);
  const Answer other_work =
      AnswerOf({.trouble = {{1, {.more_work = true, .set = "avx2", .set_ns = 4 * kMs}}},
                .set = "avx512_core"});
  ASSERT_EQ(other_work.verdict, Verdict::kWorkDiffers);
  EXPECT_TRUE(other_work.findings[0].work[0].in_shapes);
}

TEST(Explain, ThrottlingNamesTheGroupWithTheQuota) {
  const Answer answer = AnswerOf({.trouble = {{1, {.throttled_ns = 6 * kMs}}}});
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  const Cause& cause = answer.findings[0].causes[0];
  EXPECT_EQ(cause.group, "/job/rank1");
  EXPECT_EQ(cause.quota_ns, 70 * kMs);
  EXPECT_EQ(cause.period_ns, 100 * kMs);
  EXPECT_GT(cause.throttled_periods, 60);
}

TEST(Explain, WhoTookTheProcessorIsNamed) {
  const Answer answer = AnswerOf({.trouble = {{1, {.queued_ns = 4 * kMs}}}});
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  const auto& taker = answer.findings[0].causes[0].taker;
  ASSERT_TRUE(taker.has_value());
  EXPECT_EQ(taker->kind, Taker::Kind::kOutside);
  EXPECT_EQ(taker->name, "stress");
  EXPECT_EQ(taker->pid, 77);
}

// A recorded process that is no rank of this job, nor a child of one, is outside of the job.
TEST(Explain, AnotherJobsProcessIsOutside) {
  FakeJob job({.trouble = {{1, {.queued_ns = 4 * kMs}}}});
  evidence::Evidence other = *job.input().ranks[1].evidence;
  other.processes[1].relation = evidence::Relation::kRecorded;
  job.input().ranks[1].evidence = &other;
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  EXPECT_EQ(answer.findings[0].causes[0].taker->kind, Taker::Kind::kOutside);
}

// Half of the recording is of another class: what is said of a step is of the judged steps alone.
TEST(Explain, OnlyJudgedStepsCount) {
  FakeJob job({.steps = 160, .trouble = {{1, {.queued_ns = 4 * kMs}}}});
  const Answer all = Explain(job.input());
  for (RankInput& rank : job.input().ranks) {
    for (size_t i = 0; i < rank.collectives.size() / 2; ++i) rank.collectives[i].name = 1;
  }
  const Answer half = Explain(job.input());
  ASSERT_EQ(half.verdict, Verdict::kCause);
  EXPECT_EQ(half.steps, 80);
  const int64_t of_all = all.findings[0].causes[0].taker->cpu_ns;
  EXPECT_NEAR(half.findings[0].causes[0].taker->cpu_ns, of_all, of_all / 5);
  EXPECT_NEAR(half.ranks[1].processor->on_cpu_ns, all.ranks[1].processor->on_cpu_ns,
              all.ranks[1].processor->on_cpu_ns / 20);
}

TEST(Explain, TheWaitIsWhatWasPutIn) {
  FakeJob job({.trouble = {{1, {.throttled_ns = 6 * kMs}}}});
  const Answer answer = Explain(job.input());
  EXPECT_NEAR(MeanPart(answer, 0, Part::kWaitAndTransfer), job.wait_ns(0) / 80, 100'000);
  EXPECT_NEAR(MeanPart(answer, 1, Part::kWaitAndTransfer), job.wait_ns(1) / 80, 100'000);
}

TEST(Explain, WhatNoCounterShowsAccusesNobody) {
  const Answer answer = AnswerOf({.trouble = {{0, {.asleep_ns = 5 * kMs}}}});
  EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_TRUE(answer.findings[0].causes.empty());
  ASSERT_TRUE(answer.findings[0].processor.has_value());
  EXPECT_NEAR(answer.findings[0].processor->asleep_ns, 5 * kMs, 1 * kMs);
}

// Who sleeps 9 ms longer and waits 2 ms for a CPU is not late because of the CPU.
TEST(Explain, ACauseOfTheSmallerPartIsNotTheVerdict) {
  const Answer answer = AnswerOf({.trouble = {{1, {.queued_ns = 2 * kMs, .asleep_ns = 9 * kMs}}}});
  EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  ASSERT_EQ(answer.findings.size(), 1);
  const RankFinding& finding = answer.findings[0];
  EXPECT_TRUE(finding.late);
  EXPECT_FALSE(finding.mostly_explained());
  ASSERT_EQ(finding.causes.size(), 1);  // measured, and said as a part
  EXPECT_NEAR(finding.unexplained_ns(), 9 * kMs, kMs);

  const Answer other = AnswerOf({.trouble = {{1, {.queued_ns = 9 * kMs, .asleep_ns = 2 * kMs}}}});
  EXPECT_EQ(other.verdict, Verdict::kCause);
  EXPECT_NEAR(other.findings[0].unexplained_ns(), 2 * kMs, kMs);
}

// Keeps the first `part` of a node's samples, as a sampler that was killed leaves them.
evidence::Evidence Cut(const evidence::Evidence& whole, double part) {
  evidence::Evidence cut = whole;
  const auto keep = [part](auto* samples) {
    samples->resize(static_cast<size_t>(part * static_cast<double>(samples->size())));
  };
  keep(&cut.thread_samples);
  keep(&cut.group_samples);
  return cut;
}

TEST(Explain, SamplesThatEndEarlyAreNotUsed) {
  FakeJob job({.trouble = {{1, {.throttled_ns = 6 * kMs}}}});
  ASSERT_EQ(Explain(job.input()).verdict, Verdict::kCause);
  const evidence::Evidence cut = Cut(*job.input().ranks[1].evidence, 0.4);
  job.input().ranks[1].evidence = &cut;
  const Answer answer = Explain(job.input());
  EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  EXPECT_FALSE(answer.ranks[1].taken_away_known);
  EXPECT_TRUE(answer.ranks[0].taken_away_known);
  ASSERT_EQ(answer.notes.size(), 1);
  EXPECT_NE(answer.notes[0].find("cover only"), std::string::npos) << answer.notes[0];
}

// The other rank shows no throttling because nobody looked: that is no difference.
TEST(Explain, NobodyIsNamedBesideARankThatWasNotMeasured) {
  const Trouble both = {.throttled_ns = 6 * kMs};
  FakeJob job({.trouble = {{0, both}, {1, both}}});
  job.input().ranks[0].evidence = nullptr;
  const Answer answer = Explain(job.input());
  EXPECT_TRUE(answer.findings.empty());
  ASSERT_TRUE(answer.closest.has_value());
  EXPECT_FALSE(answer.closest->not_causes[0].measured);
}

TEST(Explain, StepsThatDifferTooMuchDecideNothing) {
  EXPECT_FALSE(AnswerOf({}).undecided);
  // In one step of 40 rank 1 stands still for half a second.
  const Answer answer = AnswerOf({.trouble = {{1, {.asleep_ns = 500 * kMs}}}, .every = 40});
  EXPECT_TRUE(answer.findings.empty());
  EXPECT_TRUE(answer.undecided);
  EXPECT_GT(answer.longest_step_ns, 500 * kMs);
  EXPECT_LT(answer.median_step_ns, 100 * kMs);
  ASSERT_TRUE(answer.stalls.has_value());
  EXPECT_EQ(answer.stalls->stalls, 2);
}

TEST(Explain, OtherWorkIsSaidAndNoCauseGiven) {
  const Answer answer = AnswerOf({.trouble = {{0, {.more_work = true}}}});
  EXPECT_EQ(answer.verdict, Verdict::kWorkDiffers);
  ASSERT_FALSE(answer.findings.empty());
  ASSERT_FALSE(answer.findings[0].work.empty());
  EXPECT_EQ(answer.findings[0].work[0].name, "aten::conv2d");
  EXPECT_TRUE(answer.findings[0].work[0].in_shapes);
}

TEST(Explain, TheSameOnAllRanksIsEverybody) {
  const Trouble trouble{.throttled_ns = 6 * kMs};
  const Answer answer = AnswerOf({.trouble = {{0, trouble}, {1, trouble}}});
  EXPECT_EQ(answer.verdict, Verdict::kEverybody);
  ASSERT_EQ(answer.everybody.size(), 1);
  EXPECT_EQ(answer.everybody[0], Part::kThrottled);
}

TEST(Explain, NamesExchangedGiveTheSameAnswerExchanged) {
  const Answer one = AnswerOf({.trouble = {{0, {.input_ns = 5 * kMs}}}});
  const Answer other = AnswerOf({.trouble = {{1, {.input_ns = 5 * kMs}}}});
  ASSERT_EQ(one.findings.size(), 1);
  ASSERT_EQ(other.findings.size(), 1);
  EXPECT_EQ(one.findings[0].index, 0);
  EXPECT_EQ(other.findings[0].index, 1);
}

TEST(Explain, AClockThatIsOffChangesNothing) {
  const std::map<size_t, Trouble> trouble = {{1, {.throttled_ns = 6 * kMs}}};
  const Answer one = AnswerOf({.trouble = trouble});
  const Answer other = AnswerOf({.trouble = trouble, .clock_ns = {0, 1 * kMs}});
  ASSERT_EQ(one.findings.size(), 1);
  ASSERT_EQ(other.findings.size(), 1);
  EXPECT_EQ(one.findings[0].lead.est_ns, other.findings[0].lead.est_ns);
  EXPECT_EQ(one.findings[0].lead.lo_ns, other.findings[0].lead.lo_ns);
  EXPECT_EQ(one.findings[0].causes[0].amount.hi_ns, other.findings[0].causes[0].amount.hi_ns);
  EXPECT_EQ(one.findings[0].causes[0].cost.est_ns, other.findings[0].causes[0].cost.est_ns);
  for (size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(one.ranks[rank].mean, other.ranks[rank].mean);
}

TEST(Explain, MarksOfTheProgramChangeNothing) {
  const std::map<size_t, Trouble> trouble = {{1, {.input_ns = 5 * kMs}}};
  const Answer one = AnswerOf({.trouble = trouble});
  const Answer other = AnswerOf({.trouble = trouble, .marks = true});
  ASSERT_EQ(other.verdict, Verdict::kCause);
  for (size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(one.ranks[rank].mean, other.ranks[rank].mean);
}

TEST(Explain, WithoutSamplesOnlySpansAreEvidence) {
  const Answer input = AnswerOf({.trouble = {{1, {.input_ns = 5 * kMs}}}, .samples = false});
  EXPECT_EQ(input.verdict, Verdict::kCause);
  const Answer quota = AnswerOf({.trouble = {{1, {.throttled_ns = 5 * kMs}}}, .samples = false});
  EXPECT_EQ(quota.verdict, Verdict::kLateCauseUnknown);
  EXPECT_FALSE(quota.ranks[1].taken_away_known);
  EXPECT_FALSE(quota.notes.empty());
}

TEST(Explain, FewStepsNameOnlyWhoIsLate) {
  const Answer few = AnswerOf({.steps = 40, .trouble = {{1, {.input_ns = 5 * kMs}}}});
  EXPECT_EQ(few.verdict, Verdict::kCause);
  const Answer unknown = AnswerOf({.steps = 40, .trouble = {{1, {.asleep_ns = 5 * kMs}}}});
  EXPECT_EQ(unknown.verdict, Verdict::kNobody);
  const Answer none = AnswerOf({.steps = 20});
  EXPECT_EQ(none.refusal, Refusal::kTooFewSteps);
}

TEST(Explain, ARefusalSaysWhatWouldBeNeeded) {
  FakeJob gpu({});
  gpu.input().ranks[0].accelerators = {"cuda"};
  EXPECT_EQ(Explain(gpu.input()).refusal, Refusal::kGpuJob);

  FakeJob nccl({});
  for (RankInput& rank : nccl.input().ranks) {
    for (CollectiveEntry& entry : rank.collectives) entry.left_ns.reset();
  }
  EXPECT_EQ(Explain(nccl.input()).refusal, Refusal::kGpuJob);

  FakeJob uncovered({});
  RankInput& rank = uncovered.input().ranks[1];
  rank.holes.push_back({rank.window.begin_ns, rank.window.begin_ns + rank.window.length_ns() / 10});
  EXPECT_EQ(Explain(uncovered.input()).refusal, Refusal::kNotCovered);

  EXPECT_EQ(Explain({}).refusal, Refusal::kNothingRecorded);
}

// Not "too few steps", for which it would be recorded again.
TEST(Explain, ARankThatEndedInTheWindowIsNamedFirst) {
  FakeJob job({.ranks = 6, .steps = 20});
  for (const size_t index : {1, 2, 4, 5}) {
    RankInput& rank = job.input().ranks[index];
    const int64_t end_ns = rank.window.begin_ns + (index == 4 ? 40 : 50) * kMs;
    rank.holes.push_back({end_ns, rank.window.end_ns});
    rank.ended = OwnInterval{end_ns, end_ns + 100 * kMs};
  }
  job.input().ranks[3].ended = OwnInterval{job.input().ranks[3].window.end_ns, INT64_MAX};
  const Answer answer = Explain(job.input());
  EXPECT_EQ(answer.refusal, Refusal::kNotCovered);
  EXPECT_EQ(answer.refusal_text.find("rank 4 (node-4, pid 1004) ended between 0.04 s and 0.14 s "
                                     "after T; rank 1 (node-1, pid 1001) ended between 0.05 s"),
            0)
      << answer.refusal_text;
  EXPECT_NE(answer.refusal_text.find("so did 1 more, later: "), std::string::npos);
}

TEST(Explain, ASecondLauncherIsRefused) {
  FakeJob job({});
  RankInput& rank = job.input().ranks[0];
  rank.threads.push_back({101, rank.threads[0].spans});
  EXPECT_EQ(Explain(job.input()).refusal, Refusal::kSecondLauncher);
}

TEST(Explain, OneRankHasStepsAndPartsButNobodyIsLate) {
  FakeJob job({.ranks = 1, .trouble = {{0, {.input_ns = 9 * kMs}}}});
  const Answer answer = Explain(job.input());
  EXPECT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.steps, 80);
  EXPECT_TRUE(answer.findings.empty());
  ExpectTablesAddUp(answer);
}

// Rank 0 is throttled for less than rank 1's input takes: it loses time, and nobody waits for it.
TEST(Explain, WhoLosesTimeThatNobodyWaitsForIsNotNamed) {
  const Answer answer =
      AnswerOf({.trouble = {{0, {.throttled_ns = 4 * kMs}}, {1, {.input_ns = 12 * kMs}}}});
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_EQ(answer.findings[0].index, 1);
  EXPECT_EQ(answer.findings[0].causes[0].part, Part::kInput);
}

// One quota for all, which the rank that works more meets more often: it is not the rank's fault.
TEST(Explain, AQuotaThatThrottlesAllIsNoRanksFault) {
  const Answer answer =
      AnswerOf({.trouble = {{0, {.throttled_ns = 2 * kMs}}, {1, {.throttled_ns = 7 * kMs}}}});
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_TRUE(answer.findings[0].causes.empty());
  const NotACause* throttled = nullptr;
  for (const NotACause& one : answer.findings[0].not_causes) {
    if (one.part == Part::kThrottled) throttled = &one;
  }
  ASSERT_NE(throttled, nullptr);
  EXPECT_EQ(throttled->because, NotACause::Because::kSharedQuota);
  EXPECT_FALSE(answer.notes.empty());
}

TEST(Explain, WhatIsNotCoveredIsNobodysWork) {
  const Answer answer = AnswerOf({.trouble = {{1, {.hole_ns = 500'000}}}});
  EXPECT_EQ(answer.verdict, Verdict::kNobody);
  EXPECT_EQ(MeanPart(answer, 1, Part::kNotCovered), 500'000);
}

}  // namespace
}  // namespace syncline::analysis::why
