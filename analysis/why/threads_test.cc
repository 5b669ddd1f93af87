// SPDX-License-Identifier: Apache-2.0
// Ranks are judged by several threads: nothing of the answer may depend on how many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/why/explain.h"
#include "analysis/why/side.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

FakeJob Job() {
  return FakeJob(
      {.ranks = 7,
       .trouble = {{2, {.asleep_ns = 6'000'000}}, {4, {.set = "avx2", .set_ns = 2'000'000}}},
       .set = "avx512_core"});
}

void ExpectSame(const MeanEstimate& a, const MeanEstimate& b) {
  EXPECT_EQ(a.est_ns, b.est_ns);
  EXPECT_EQ(a.lo_ns, b.lo_ns);
  EXPECT_EQ(a.hi_ns, b.hi_ns);
}

void ExpectSame(const RankFinding& a, const RankFinding& b) {
  EXPECT_EQ(a.index, b.index);
  ExpectSame(a.lead, b.lead);
  ASSERT_EQ(a.causes.size(), b.causes.size());
  for (size_t i = 0; i < a.causes.size(); ++i) {
    EXPECT_EQ(a.causes[i].part, b.causes[i].part);
    ExpectSame(a.causes[i].amount, b.causes[i].amount);
    ExpectSame(a.causes[i].cost, b.causes[i].cost);
  }
}

TEST(Threads, TheAnswerDoesNotDependOnThem) {
  FakeJob job = Job();
  const Answer alone = Explain(job.input());
  ASSERT_EQ(alone.refusal, Refusal::kNone);
  ASSERT_FALSE(alone.findings.empty());
  for (const size_t threads : {2, 4, 100}) {
    const Answer answer = Explain(job.input(), threads);
    EXPECT_EQ(answer.verdict, alone.verdict);
    ASSERT_EQ(answer.ranks.size(), alone.ranks.size());
    for (size_t i = 0; i < alone.ranks.size(); ++i) {
      EXPECT_EQ(answer.ranks[i].mean, alone.ranks[i].mean);
    }
    ASSERT_EQ(answer.findings.size(), alone.findings.size());
    for (size_t i = 0; i < alone.findings.size(); ++i) {
      ExpectSame(answer.findings[i], alone.findings[i]);
    }
    ASSERT_EQ(answer.path.has_value(), alone.path.has_value());
    if (alone.path.has_value()) ExpectSame(answer.path->collectives, alone.path->collectives);
  }
}

TEST(Threads, NorDoesWhatIsCompared) {
  FakeJob job = Job();
  const Side alone = SideOf(job.input());
  ASSERT_FALSE(alone.operators.empty());
  const Side side = SideOf(job.input(), 4);
  ASSERT_EQ(side.operators.size(), alone.operators.size());
  for (const auto& [name, one] : alone.operators) {
    const SideOperator& other = side.operators.at(name);
    EXPECT_EQ(other.cut_ns, one.cut_ns) << name;
    EXPECT_EQ(other.uncut_ns, one.uncut_ns) << name;
    EXPECT_EQ(other.rank_cut_ns, one.rank_cut_ns) << name;
    EXPECT_EQ(other.calls, one.calls) << name;
  }
}

}  // namespace
}  // namespace syncline::analysis::why
