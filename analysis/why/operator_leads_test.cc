// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/operator_leads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/why/explain.h"
#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr size_t kSteps = 60;

// Ranks that run operators of given lengths once a step, give or take some percent.
class Ranks {
 public:
  explicit Ranks(size_t count, double noise = 0.05) : noise_(noise), ranks_(count) {
    for (JudgedRank& rank : ranks_) rank.steps.resize(kSteps);
  }

  // Mean time a step, of each rank.
  void Run(const std::string& name, std::vector<int64_t> times_ns, uint32_t calls = 1) {
    const auto id = static_cast<NameId>(names_.size());
    names_.push_back(name);
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      auto& blocks_ns = ranks_[rank].operators_ns[id];
      blocks_ns.resize((kSteps + BlockOf(kSteps) - 1) / BlockOf(kSteps));
      for (size_t step = 0; step < kSteps; ++step) {
        const double factor = std::uniform_real_distribution(1 - noise_, 1 + noise_)(random_);
        blocks_ns[step / BlockOf(kSteps)] +=
            static_cast<int64_t>(static_cast<double>(times_ns[rank]) * factor);
      }
      ranks_[rank].work.counts[{0, id}] = WorkDone::Counts(kSteps, calls);
    }
  }
  WorkDone& work(size_t rank) { return ranks_[rank].work; }

  std::optional<LongerWork> Of(size_t rank, int64_t unknown_ns) const {
    return OperatorLeads(ranks_, names_).Of(rank, unknown_ns);
  }

 private:
  double noise_;
  std::mt19937_64 random_{1};
  std::vector<std::string> names_{""};
  std::vector<JudgedRank> ranks_;
};

std::vector<std::string> NamesOf(const std::optional<LongerWork>& work) {
  std::vector<std::string> names;
  if (!work.has_value()) return names;
  for (const LongerOperator& one : work->operators) names.push_back(one.name);
  return names;
}

TEST(OperatorLeads, OneThatStandsOutIsNamed) {
  Ranks ranks(2);
  ranks.Run("conv", {8 * kMs, 8 * kMs}, 4);
  ranks.Run("mul", {2 * kMs, 7 * kMs}, 10);
  ranks.Run("add", {2 * kMs, 3 * kMs});
  const auto work = ranks.Of(1, 6 * kMs);
  ASSERT_THAT(NamesOf(work), ElementsAre("mul", "add"));
  EXPECT_FALSE(work->all.has_value());
  const LongerOperator& mul = work->operators[0];
  EXPECT_NEAR(static_cast<double>(mul.longer.est_ns), 5 * kMs, 100 * kUs);
  EXPECT_LE(mul.longer.lo_ns, 5 * kMs);
  EXPECT_GE(mul.longer.hi_ns, 5 * kMs);
  EXPECT_EQ(mul.own_ns - mul.others_ns, mul.longer.est_ns);
  EXPECT_EQ(mul.calls, 10);
  EXPECT_NEAR(static_cast<double>(work->longer_ns), 6 * kMs, 200 * kUs);
  // Less than a tenth of what is to be explained.
  EXPECT_THAT(NamesOf(ranks.Of(1, 20 * kMs)), ElementsAre("mul"));
  EXPECT_FALSE(ranks.Of(0, 6 * kMs).has_value());
}

TEST(OperatorLeads, TheOthersAreTheirMedian) {
  Ranks ranks(5);
  ranks.Run("conv", {8 * kMs, 8 * kMs, 8 * kMs, 20 * kMs, 8 * kMs});
  ranks.Run("mul", {2 * kMs, 2 * kMs, 5 * kMs, 2 * kMs, 2 * kMs});
  EXPECT_THAT(NamesOf(ranks.Of(3, 12 * kMs)), ElementsAre("conv"));
  EXPECT_THAT(NamesOf(ranks.Of(2, 3 * kMs)), ElementsAre("mul"));
}

// What runs more often is other work (work.h), and not longer at the same.
TEST(OperatorLeads, WhatRunsMoreOftenIsNotNamed) {
  Ranks ranks(2);
  ranks.Run("conv", {8 * kMs, 12 * kMs});
  for (auto& [key, counts] : ranks.work(1).counts) counts.assign(kSteps, 2);
  EXPECT_FALSE(ranks.Of(1, 4 * kMs).has_value());
}

// Longer in the mean, by a few steps alone.
TEST(OperatorLeads, WhatIsNotCertainIsNotNamed) {
  Ranks ranks(2, 0.9);
  for (int i = 0; i < 100; ++i) ranks.Run("op" + std::to_string(i), {kMs, kMs});
  EXPECT_THAT(NamesOf(ranks.Of(1, 10)), IsEmpty());
  EXPECT_THAT(NamesOf(ranks.Of(0, 10)), IsEmpty());
}

TEST(OperatorLeads, ASlowerProcessorShowsInAll) {
  Ranks ranks(3);
  for (int i = 1; i <= 8; ++i) {
    ranks.Run("op" + std::to_string(i), {i * kMs, i * kMs, i * kMs * 5 / 4});
  }
  ranks.Run("tiny", {kUs, kUs, 900});
  const auto work = ranks.Of(2, 9 * kMs);
  ASSERT_TRUE(work.has_value() && work->all.has_value());
  EXPECT_THAT(work->operators, IsEmpty());
  EXPECT_EQ(work->all->operators, 8);
  EXPECT_EQ(work->all->certain, 8);
  EXPECT_NEAR(work->all->middle, 1.25, 0.02);
  EXPECT_LE(work->all->low, work->all->middle);
  EXPECT_GE(work->all->high, work->all->middle);
  EXPECT_NEAR(static_cast<double>(work->longer_ns), 9 * kMs, 300 * kUs);
  // Less than half of what is to be explained: the largest of them are named.
  const auto part = ranks.Of(2, 19 * kMs);
  ASSERT_TRUE(part.has_value());
  EXPECT_FALSE(part->all.has_value());
  EXPECT_THAT(NamesOf(part), ElementsAre("op8"));
}

// Two that take most of the time, and are slow alone.
TEST(OperatorLeads, TheLargestAreNotAll) {
  Ranks ranks(2);
  ranks.Run("mm", {10 * kMs, 15 * kMs});
  ranks.Run("addmm", {8 * kMs, 12 * kMs});
  for (int i = 0; i < 5; ++i) ranks.Run("op" + std::to_string(i), {200 * kUs, 200 * kUs});
  const auto work = ranks.Of(1, 9 * kMs);
  ASSERT_TRUE(work.has_value());
  EXPECT_FALSE(work->all.has_value());
  EXPECT_THAT(NamesOf(work), ElementsAre("mm", "addmm"));
}

// All are longer, but one by far: that one is to be looked at.
TEST(OperatorLeads, OneOfManyThatIsFarLongerIsNamed) {
  Ranks ranks(2);
  for (int i = 1; i <= 6; ++i) ranks.Run("op" + std::to_string(i), {kMs, kMs * 11 / 10});
  ranks.Run("slow", {3 * kMs, 9 * kMs});
  EXPECT_THAT(NamesOf(ranks.Of(1, 6 * kMs)), ElementsAre("slow"));
}

// ---- in a job

TEST(OperatorLeads, AnOperatorThatSleepsIsNamedInAJob) {
  for (const size_t ranks : {2, 3, 8}) {
    FakeJob job({.ranks = ranks, .trouble = {{1, {.asleep_ns = 8 * kMs}}}});
    const Answer answer = Explain(job.input());
    ASSERT_EQ(answer.findings.size(), 1);
    ASSERT_TRUE(answer.findings[0].longer.has_value());
    const LongerWork& longer = *answer.findings[0].longer;
    ASSERT_EQ(longer.operators.size(), 1) << ranks;
    EXPECT_NEAR(static_cast<double>(longer.operators[0].longer.est_ns), 8 * kMs, kMs);
  }
}

TEST(OperatorLeads, NoneIsNamedForWhatThePythonCodeDoes) {
  FakeJob job({.trouble = {{1, {.host_ns = 8 * kMs}}}});
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_TRUE(answer.findings[0].late);
  EXPECT_FALSE(answer.findings[0].longer.has_value());
}

// It has a cause that explains it.
TEST(OperatorLeads, NoneIsNamedForWhatACauseTakesFromThem) {
  FakeJob job({.trouble = {{1, {.throttled_ns = 8 * kMs}}}});
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.findings.size(), 1);
  EXPECT_FALSE(answer.findings[0].longer.has_value());
}

}  // namespace
}  // namespace syncline::analysis::why
