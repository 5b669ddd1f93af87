// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/page_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/why/explain.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kPageNs = 1'000;

TEST(PageFaults, WhoHasMoreIsNamedForWhatTheyTake) {
  for (const size_t ranks : {2, 3, 8}) {
    FakeJob job({.ranks = ranks,
                 .trouble = {{0, {.page_faults = 500}}, {1, {.page_faults = 6'000}}},
                 .page_ns = kPageNs});
    const Answer answer = Explain(job.input());
    ASSERT_EQ(answer.verdict, Verdict::kCause) << ranks;
    ASSERT_EQ(answer.findings.size(), 1);
    EXPECT_EQ(answer.findings[0].index, 1);
    ASSERT_EQ(answer.findings[0].causes.size(), 1);
    const Cause& cause = answer.findings[0].causes[0];
    ASSERT_TRUE(cause.page_faults.has_value());
    const double less = ranks == 2 ? 500 : 0;
    EXPECT_NEAR(cause.page_faults->own.per_step, 6'000, 200);
    EXPECT_NEAR(cause.page_faults->others, less, 20);
    EXPECT_EQ(cause.page_faults->own.page_ns, kPageNs);
    const double more_ns = (6'000 - less) * kPageNs;
    EXPECT_NEAR(static_cast<double>(cause.amount.est_ns), more_ns, 0.05 * more_ns);
    EXPECT_GT(cause.cost.est_ns, more_ns / 2);
    EXPECT_FALSE(answer.findings[0].longer.has_value()) << "it is known why";
  }
}

TEST(PageFaults, WhereTheyExplainLittleTheRestIsUnknown) {
  FakeJob job(
      {.trouble = {{1, {.asleep_ns = 10 * kMs, .page_faults = 3'000}}}, .page_ns = kPageNs});
  const Answer answer = Explain(job.input());
  EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  ASSERT_EQ(answer.findings.size(), 1);
  ASSERT_EQ(answer.findings[0].causes.size(), 1);
  EXPECT_TRUE(answer.findings[0].causes[0].page_faults.has_value());
}

// They take time, and nobody waits for it.
TEST(PageFaults, NobodyIsNamedWhoIsNotLate) {
  FakeJob job(
      {.trouble = {{0, {.host_ns = 6 * kMs}}, {1, {.page_faults = 6'000}}}, .page_ns = kPageNs});
  const Answer answer = Explain(job.input());
  for (const RankFinding& finding : answer.findings) {
    for (const Cause& cause : finding.causes) EXPECT_FALSE(cause.page_faults.has_value());
  }
  ASSERT_TRUE(answer.ranks[1].page_faults.has_value());
  EXPECT_NEAR(answer.ranks[1].page_faults->per_step, 6'000, 200);
  EXPECT_NEAR(static_cast<double>(answer.ranks[1].page_faults->step_ns()), 6.0 * kMs, 0.3 * kMs);
  EXPECT_NEAR(answer.ranks[0].page_faults->per_step, 0, 1);
}

// Recordings of before they were counted, and nodes on which a page's cost could not be measured.
TEST(PageFaults, WithoutACountOrACostNothingIsSaid) {
  FakeJob free({.trouble = {{1, {.page_faults = 6'000}}}});
  Answer answer = Explain(free.input());
  EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  EXPECT_FALSE(answer.ranks[1].page_faults.has_value());
  FakeJob older({.trouble = {{1, {.page_faults = 6'000}}}, .page_ns = kPageNs});
  auto& evidence = const_cast<evidence::Evidence&>(*older.input().ranks[0].evidence);
  for (auto& sample : evidence.thread_samples) sample.minor_faults = -1;
  answer = Explain(older.input());
  EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
  EXPECT_TRUE(answer.findings[0].causes.empty()) << "the other rank's are not known";
  EXPECT_FALSE(answer.ranks[0].page_faults.has_value());
  EXPECT_TRUE(answer.ranks[1].page_faults.has_value());
}

}  // namespace
}  // namespace syncline::analysis::why
