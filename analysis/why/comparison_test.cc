// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/comparison.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "analysis/why/testing/fake_job.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr size_t kCompute = static_cast<size_t>(Part::kCompute);
constexpr size_t kInput = static_cast<size_t>(Part::kInput);
constexpr size_t kWait = static_cast<size_t>(Part::kWaitAndTransfer);
constexpr size_t kThrottled = static_cast<size_t>(Part::kThrottled);

struct MadeUp {
  size_t ranks = 2;
  size_t steps = 100;
  uint64_t seed = 1;
  int64_t compute_ns = 60 * kMs;
  int64_t input_ns = 10 * kMs;  // of the last rank; the others wait for it
  int64_t noise_ns = 4 * kMs;
};

// A job whose last rank fetches batches while the others wait.
Side SideWith(const MadeUp& made_up) {
  Side side;
  side.steps = made_up.steps;
  side.kind = {{{"all_reduce", 1}}, 1, 1};
  side.step_class = "all_reduce x1";
  std::mt19937_64 random(made_up.seed);
  side.ranks.resize(made_up.ranks);
  SideOperator& convolution = side.operators["aten::conv2d"];
  convolution.cut_ns.resize(made_up.steps);
  convolution.rank_cut_ns.resize(made_up.ranks);
  for (size_t rank = 0; rank < made_up.ranks; ++rank) {
    side.ranks[rank].rank = static_cast<int32_t>(rank);
    side.ranks[rank].taken_away_known = side.ranks[rank].blocked_known = true;
  }
  for (size_t step = 0; step < made_up.steps; ++step) {
    const auto noise_ns = static_cast<int64_t>(random() % made_up.noise_ns);
    for (size_t rank = 0; rank < made_up.ranks; ++rank) {
      PartTable table{};
      table[kCompute] = made_up.compute_ns + noise_ns;
      table[rank + 1 == made_up.ranks ? kInput : kWait] = made_up.input_ns;
      side.ranks[rank].cut.push_back(table);
      convolution.cut_ns[step] += table[kCompute];
      convolution.rank_cut_ns[rank] += table[kCompute];
      ++convolution.calls;
    }
  }
  for (SideRank& rank : side.ranks) rank.uncut = rank.unblocked = rank.cut;
  convolution.uncut_ns = convolution.cut_ns;
  convolution.rank_uncut_ns = convolution.rank_cut_ns;
  return side;
}

TEST(Comparison, AKnownDifferenceIsFoundInItsPartAndItsRank) {
  const Side before = SideWith({});
  const Side now = SideWith({.steps = 130, .seed = 2, .input_ns = 18 * kMs});
  const Comparison comparison = Compare(before, now);
  ASSERT_EQ(comparison.mismatch, Mismatch::kNone) << comparison.mismatch_text;
  EXPECT_NEAR(comparison.step.change.est_ns, 8 * kMs, kMs);
  EXPECT_LT(comparison.step.change.lo_ns, 8 * kMs);
  EXPECT_GT(comparison.step.change.hi_ns, 8 * kMs);
  EXPECT_TRUE(comparison.step.certain());
  // Of 72 ms.
  EXPECT_NEAR(comparison.step.est_ppm, 111'000, 12'000);
  EXPECT_GT(comparison.step.lo_ppm, 80'000);
  EXPECT_LT(comparison.step.hi_ppm, 140'000);
  EXPECT_FALSE(comparison.parts[kCompute].certain());
  // The mean over ranks is half of what one rank's is.
  EXPECT_EQ(comparison.parts[kInput].change.est_ns, 4 * kMs);
  EXPECT_EQ(comparison.ranks[1].parts[kInput].change.est_ns, 8 * kMs);
  EXPECT_EQ(comparison.ranks[0].parts[kInput].change.est_ns, 0);
  EXPECT_EQ(comparison.ranks[0].parts[kWait].change.est_ns, 8 * kMs);
  int64_t sum_ns = 0;
  for (const Change& part : comparison.parts) sum_ns += part.change.est_ns;
  EXPECT_NEAR(sum_ns, comparison.step.change.est_ns, kParts);
}

TEST(Comparison, EqualJobsClaimNothing) {
  size_t claims = 0;
  constexpr size_t kPairs = 100;
  for (uint64_t seed = 0; seed < kPairs; ++seed) {
    const Comparison comparison =
        Compare(SideWith({.seed = 2 * seed}), SideWith({.seed = 2 * seed + 1}));
    EXPECT_LT(std::abs(comparison.step.est_ppm), 20'000);
    EXPECT_LE(comparison.step.change.lo_ns, comparison.step.change.est_ns);
    EXPECT_GE(comparison.step.change.hi_ns, comparison.step.change.est_ns);
    claims += comparison.step.certain() ? 1 : 0;
  }
  // An interval of 95 % of 17 blocks misses the truth more often than it says, but not often.
  EXPECT_LE(claims, 15);
}

// Recordings that each have a mean of their own: with a spread of 3 ms between recordings, of steps
// that vary by less.
Side Drifting(std::mt19937_64* random, int64_t change_ns = 0) {
  std::normal_distribution<double> drift(0, 3.0 * kMs);
  return SideWith({.seed = (*random)(),
                   .compute_ns = 60 * kMs + static_cast<int64_t>(drift(*random)) + change_ns});
}

TEST(Comparison, SeveralRecordingsBeforePutTheirDriftIntoTheInterval) {
  constexpr size_t kTrials = 200;
  std::mt19937_64 random(7);
  size_t of_one = 0;
  size_t of_four = 0;
  size_t found = 0;
  for (size_t i = 0; i < kTrials; ++i) {
    std::vector<Side> before;
    for (size_t k = 0; k < 4; ++k) before.push_back(Drifting(&random));
    const Side now = Drifting(&random);
    of_one += Compare(before.front(), now).step.certain() ? 1 : 0;
    const Comparison comparison = Compare(before, now);
    EXPECT_TRUE(comparison.drift_known());
    EXPECT_EQ(comparison.befores.size(), 4U);
    EXPECT_EQ(comparison.before.steps, 400U);
    of_four += comparison.step.certain() ? 1 : 0;
    found += Compare(before, Drifting(&random, 30 * kMs)).step.certain() ? 1 : 0;
  }
  // Nothing changed: one recording says of most that something did, four of one in twenty.
  EXPECT_GT(of_one, kTrials * 3 / 4);
  EXPECT_LE(of_four, kTrials / 10);
  // And half of the step is found.
  EXPECT_GT(found, kTrials * 9 / 10);
}

TEST(Comparison, TheIntervalOfTwoBeforeIsThatOfStudent) {
  // Without noise: means of 60 and 62 ms, s = 1.414 ms, t = 12.706.
  const std::vector<Side> before = {SideWith({.noise_ns = 1}),
                                    SideWith({.compute_ns = 62 * kMs, .noise_ns = 1})};
  const Comparison comparison = Compare(before, SideWith({.compute_ns = 70 * kMs, .noise_ns = 1}));
  EXPECT_EQ(comparison.step.change.est_ns, 9 * kMs);
  EXPECT_NEAR(comparison.step.change.hi_ns - comparison.step.change.est_ns, 22.0 * kMs, kMs * 0.1);
  EXPECT_NEAR(comparison.step.change.est_ns - comparison.step.change.lo_ns, 22.0 * kMs, kMs * 0.1);
  EXPECT_NEAR(comparison.step.hi_ppm - comparison.step.est_ppm, 22.0 / 71 * 1e6, 2e3);
  // What did not differ before has no drift.
  EXPECT_EQ(comparison.parts[kInput].change.hi_ns, 0);
}

TEST(Comparison, AnOperatorThatSomeRecordingsLackIsNothingThere) {
  std::vector<Side> before = {SideWith({.noise_ns = 1}), SideWith({.noise_ns = 1})};
  before[0].operators.clear();
  const Comparison comparison = Compare(before, SideWith({.noise_ns = 1}));
  ASSERT_EQ(comparison.operators.size(), 1U);
  EXPECT_EQ(comparison.operators[0].time.before_ns, 30 * kMs);
  EXPECT_DOUBLE_EQ(comparison.operators[0].calls_before, 0.5);
}

TEST(Comparison, RecordingsBeforeMustHaveTheSameRanks) {
  const std::vector<Side> before = {SideWith({}), SideWith({.ranks = 3})};
  EXPECT_EQ(Compare(before, SideWith({})).mismatch, Mismatch::kOtherWorldSize);
  std::vector<Side> renumbered = {SideWith({}), SideWith({})};
  renumbered[1].ranks[1].rank = 5;
  EXPECT_EQ(Compare(renumbered, SideWith({})).mismatch_text,
            "not comparable: the recordings before have not all the same ranks");
}

TEST(Comparison, TheSameRecordingTwiceChangedNothingAndTheAnswerIsTheSameAgain) {
  const Side side = SideWith({});
  const Comparison once = Compare(side, side);
  EXPECT_EQ(once.step.change.est_ns, 0);
  EXPECT_FALSE(once.step.certain());
  const Comparison again = Compare(side, side);
  EXPECT_EQ(once.step.change.lo_ns, again.step.change.lo_ns);
  EXPECT_EQ(once.step.hi_ppm, again.step.hi_ppm);
  // Not the same blocks on both sides: the difference would never vary.
  EXPECT_LT(once.step.change.lo_ns, 0);
  EXPECT_GT(once.step.change.hi_ns, 0);
}

TEST(Comparison, WhatCannotBeComparedIsRefusedInOneLine) {
  const Side two = SideWith({});
  EXPECT_EQ(Compare(two, SideWith({.ranks = 3})).mismatch, Mismatch::kOtherWorldSize);
  EXPECT_EQ(Compare(two, SideWith({.ranks = 3})).mismatch_text,
            "not comparable: 3 ranks now, 2 before");
  Side other = two;
  other.kind.collectives = {{"all_reduce", 2}};
  EXPECT_EQ(Compare(two, other).mismatch, Mismatch::kOtherSteps);
  EXPECT_EQ(Compare(two, other).mismatch_text,
            "not comparable, the steps are of another class: all_reduce x2, 1 forward pass, 1 "
            "batch loaded now; all_reduce x1, 1 forward pass, 1 batch loaded before");
  Side refused = two;
  refused.refusal = Refusal::kTooFewSteps;
  refused.refusal_text = "only 12 steps";
  EXPECT_EQ(Compare(two, refused).mismatch, Mismatch::kNowRefused);
  EXPECT_EQ(Compare(refused, two).mismatch, Mismatch::kBeforeRefused);
  EXPECT_EQ(Compare(refused, two).refusal, Refusal::kTooFewSteps);
  EXPECT_EQ(Compare(refused, two).mismatch_text, "the recording before: only 12 steps");
}

TEST(Comparison, ARankOfOneSideAloneIsNamed) {
  const Side before = SideWith({});
  Side now = before;
  now.ranks[1].rank = 7;
  const Comparison comparison = Compare(before, now);
  ASSERT_EQ(comparison.ranks.size(), 1);
  EXPECT_EQ(comparison.ranks[0].rank, 0);
  EXPECT_EQ(comparison.only_before, std::vector<int32_t>{1});
  EXPECT_EQ(comparison.only_now, std::vector<int32_t>{7});
}

// What one side did not measure is not compared, on any side.
TEST(Comparison, WithoutSamplesOfOneSideWhatWasTakenAwayStaysInTheOtherParts) {
  Side before = SideWith({});
  Side now = before;
  for (PartTable& table : now.ranks[0].cut) {
    table[kCompute] -= 20 * kMs;
    table[kThrottled] += 20 * kMs;
  }
  EXPECT_TRUE(Compare(before, now).taken_away_known);
  EXPECT_EQ(Compare(before, now).parts[kThrottled].change.est_ns, 10 * kMs);
  before.ranks[1].taken_away_known = false;
  const Comparison comparison = Compare(before, now);
  EXPECT_FALSE(comparison.taken_away_known);
  EXPECT_EQ(comparison.parts[kThrottled].now_ns, 0);
  EXPECT_EQ(comparison.parts[kCompute].change.est_ns, 0);
}

TEST(Comparison, OperatorsAreTheSameWorkOnlyWhereThatIsKnown) {
  using Work = OperatorChange::Work;
  Side before = SideWith({});
  Side now = SideWith({.compute_ns = 70 * kMs});
  const auto work = [&] { return Compare(before, now).operators[0]; };
  EXPECT_EQ(work().name, "aten::conv2d");
  EXPECT_EQ(work().time.change.est_ns, 10 * kMs);
  EXPECT_EQ(work().work, Work::kUnknownShapes);
  const uint64_t calls = before.operators["aten::conv2d"].calls;
  before.operators["aten::conv2d"].shapes = {{"64x64", calls}};
  now.operators["aten::conv2d"].shapes = {{"64x64", calls}};
  EXPECT_EQ(work().work, Work::kSameShapes);
  now.operators["aten::conv2d"].shapes = {{"80x64", calls}};
  EXPECT_EQ(work().work, Work::kOtherShapes);
  now.operators["aten::conv2d"].calls = 2 * calls;
  EXPECT_EQ(work().work, Work::kMoreCalls);
  EXPECT_EQ(work().calls_before, 1);
  EXPECT_EQ(work().calls_now, 2);
  // One that ran on one side alone.
  now.operators["aten::gelu"] = now.operators["aten::conv2d"];
  EXPECT_EQ(work().name, "aten::gelu");
  EXPECT_EQ(work().calls_before, 0);
  EXPECT_EQ(work().work, Work::kMoreCalls);
}

// Names in a redacted recording are like no other's: that they differ says nothing.
TEST(Comparison, NamesOfRedactedRecordingsAreNotCompared) {
  Side before = SideWith({});
  Side now = SideWith({.compute_ns = 70 * kMs});
  before.operators["aten::conv2d"].shapes = {{"64x64", before.operators["aten::conv2d"].calls}};
  now.operators["aten::conv2d"].shapes = {{"zkvb_wx", now.operators["aten::conv2d"].calls}};
  before.operators["Mine"] = before.operators["aten::conv2d"];
  now.operators["Yqjx"] = now.operators["aten::conv2d"];
  ASSERT_EQ(Compare(before, now).operators.size(), 3u);
  EXPECT_FALSE(Compare(before, now).redacted);
  now.redacted = true;
  const Comparison comparison = Compare(before, now);
  EXPECT_TRUE(comparison.redacted);
  ASSERT_EQ(comparison.operators.size(), 1u);
  EXPECT_EQ(comparison.operators[0].name, "aten::conv2d");
  EXPECT_EQ(comparison.operators[0].time.change.est_ns, 10 * kMs);
  EXPECT_EQ(comparison.operators[0].work, OperatorChange::Work::kUnknownShapes);
}

Comparison CompareJobs(FakeJobOptions before, FakeJobOptions now) {
  FakeJob job_before(std::move(before));
  FakeJob job_now(std::move(now));
  return Compare(SideOf(job_before.input()), SideOf(job_now.input()));
}

TEST(Comparison, OfJobsFindsWhatWasPutIn) {
  const Comparison comparison =
      CompareJobs({.ranks = 3, .seed = 1},
                  {.ranks = 3,
                   .seed = 2,
                   .trouble = {{1, {.throttled_ns = 6 * kMs}}, {2, {.input_ns = 3 * kMs}}}});
  ASSERT_EQ(comparison.mismatch, Mismatch::kNone) << comparison.mismatch_text;
  EXPECT_TRUE(comparison.taken_away_known);
  EXPECT_NEAR(comparison.ranks[1].parts[kThrottled].change.est_ns, 6 * kMs, 500'000);
  EXPECT_NEAR(comparison.ranks[2].parts[kInput].change.est_ns, 3 * kMs, 500'000);
  EXPECT_NEAR(comparison.ranks[0].parts[kWait].change.est_ns, 6 * kMs, 500'000);
  EXPECT_NEAR(comparison.step.change.est_ns, 6 * kMs, 500'000);
  EXPECT_EQ(CompareJobs({.seed = 1}, {.seed = 2}).step.certain(), false);
}

// What only one of two recordings says of being blocked must not look like a change.
TEST(Comparison, OfBeingBlockedOnlyWhereBothRecordingsSayIt) {
  constexpr auto kBlocked = static_cast<size_t>(Part::kBlocked);
  const auto job = [](uint64_t seed, int64_t blocked_ns, bool states) {
    return FakeJobOptions{.steps = 1200,
                          .seed = seed,
                          .trouble = {{1, {.blocked_ns = blocked_ns}}},
                          .states = states};
  };
  const Comparison both = CompareJobs(job(1, 2 * kMs, true), job(2, 8 * kMs, true));
  EXPECT_TRUE(both.blocked_known);
  EXPECT_TRUE(both.taken_away_known);
  EXPECT_NEAR(both.ranks[1].parts[kBlocked].change.est_ns, 6 * kMs, kMs);
  EXPECT_TRUE(both.ranks[1].parts[kBlocked].certain());

  // A few samples that find it blocked in one of two recordings that are alike are no change.
  auto few = [&](uint64_t seed) {
    FakeJobOptions options = job(seed, 2 * kMs, true);
    options.steps = 60 + 60 * seed;
    return options;
  };
  for (uint64_t seed = 1; seed < 8; ++seed) {
    const Comparison alike = CompareJobs(few(seed), few(seed + 1));
    EXPECT_FALSE(alike.ranks[1].parts[kBlocked].certain()) << seed;
    EXPECT_FALSE(alike.ranks[1].parts[static_cast<size_t>(Part::kHostCode)].certain()) << seed;
  }

  const Comparison mixed = CompareJobs(job(1, 8 * kMs, false), job(2, 8 * kMs, true));
  EXPECT_FALSE(mixed.blocked_known);
  EXPECT_TRUE(mixed.taken_away_known);
  for (const Change& part : mixed.ranks[1].parts) {
    EXPECT_LT(std::abs(part.change.est_ns), kMs / 2);
  }

  const Comparison neither = CompareJobs(job(1, 2 * kMs, false), job(2, 8 * kMs, false));
  EXPECT_FALSE(neither.blocked_known);
  EXPECT_TRUE(neither.taken_away_known);
  EXPECT_EQ(neither.ranks[1].parts[kBlocked].change.est_ns, 0);
}

// Operators' own times are the compute part.
TEST(Comparison, OperatorsAddUpToTheComputePart) {
  FakeJob job({.trouble = {{0, {.throttled_ns = 5 * kMs}}}});
  const Side side = SideOf(job.input());
  for (size_t step = 0; step < side.steps; ++step) {
    int64_t cut_ns = 0;
    int64_t uncut_ns = 0;
    for (const auto& [name, one] : side.operators) {
      cut_ns += one.cut_ns[step];
      uncut_ns += one.uncut_ns[step];
    }
    for (const SideRank& rank : side.ranks) {
      cut_ns -= rank.cut[step][kCompute];
      uncut_ns -= rank.uncut[step][kCompute];
    }
    EXPECT_EQ(cut_ns, 0);
    EXPECT_EQ(uncut_ns, 0);
  }
}

}  // namespace
}  // namespace syncline::analysis::why
