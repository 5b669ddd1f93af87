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

// A sign, and no cause: what each takes is not known.
TEST(PageFaults, OfALateRankThatHasMoreItIsSaid) {
  for (const size_t ranks : {2, 3, 8}) {
    FakeJob job({.ranks = ranks,
                 .trouble = {{0, {.page_faults = 500}}, {1, {.page_faults = 6'000}}},
                 .page_ns = kPageNs});
    const Answer answer = Explain(job.input());
    EXPECT_EQ(answer.verdict, Verdict::kLateCauseUnknown) << ranks;
    ASSERT_EQ(answer.findings.size(), 1);
    EXPECT_EQ(answer.findings[0].index, 1);
    ASSERT_TRUE(answer.findings[0].page_faults.has_value());
    const MorePageFaults& more = *answer.findings[0].page_faults;
    const double others = ranks == 2 ? 500 : 0;
    EXPECT_NEAR(more.own.per_step, 6'000, 150);
    EXPECT_NEAR(more.others, others, 10);
    EXPECT_EQ(more.own.page_ns, kPageNs);
    const double more_ns = (6'000 - others) * kPageNs;
    EXPECT_NEAR(static_cast<double>(more.more_ns), more_ns, 0.05 * more_ns);
    ASSERT_TRUE(answer.findings[0].longer.has_value()) << "where it is, is said as well";
    EXPECT_EQ(answer.findings[0].unexplained_ns(), answer.findings[0].lead.est_ns);
  }
}

// They may be a part of what the cause takes: nothing is taken off twice.
TEST(PageFaults, WhereACauseExplainsItNothingIsSaid) {
  FakeJob job({.trouble = {{1, {.throttled_ns = 8 * kMs}}}, .page_ns = kPageNs});
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.verdict, Verdict::kCause);
  EXPECT_FALSE(answer.findings[0].page_faults.has_value());
}

// They take time, and nobody waits for it.
TEST(PageFaults, OfNobodyWhoIsNotLate) {
  FakeJob job(
      {.trouble = {{0, {.host_ns = 6 * kMs}}, {1, {.page_faults = 6'000}}}, .page_ns = kPageNs});
  const Answer answer = Explain(job.input());
  for (const RankFinding& finding : answer.findings) {
    EXPECT_FALSE(finding.page_faults.has_value());
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
  EXPECT_FALSE(answer.findings[0].page_faults.has_value()) << "the other rank's are not known";
  EXPECT_FALSE(answer.ranks[0].page_faults.has_value());
  EXPECT_TRUE(answer.ranks[1].page_faults.has_value());
}

}  // namespace
}  // namespace syncline::analysis::why
