// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/why/explain.h"
#include "analysis/why/path.h"
#include "analysis/why/statistics.h"
#include "analysis/why/testing/fake_job.h"
#include "analysis/why/testing/hand_job.h"

namespace syncline::analysis::why {
namespace {

// Of each judged step so much of one part.
std::vector<PartTable> EachStep(const Judged& judged, Part part, int64_t ns) {
  PartTable table{};
  table[static_cast<size_t>(part)] = ns;
  return std::vector<PartTable>(judged.steps(), table);
}

// What is taken from where nobody waits for it saves nothing; what ranks wait for in turn, all.
TEST(Replay, OfRanksThatWaitForEachOtherInTurn) {
  JobInput input = InTurn();
  const Judged judged = Judge(input, {.stretches = true});
  const std::optional<Replay> replay = Replay::Of(input, judged);
  ASSERT_TRUE(replay.has_value());
  EXPECT_NEAR(replay->error_ns(), 0, kUs);
  const auto saved_by = [&](size_t rank, int64_t ms) {
    return MeanOf(replay->SavedBy({rank, EachStep(judged, Part::kCompute, ms * kMs)}).likely);
  };
  EXPECT_EQ(saved_by(0, 0), 0);
  // Of the 40 ms that rank 0 computes, in equal parts: of its first 30 three quarters are taken,
  // and down to 10 they were waited for; of its last 10 nobody waits for any.
  EXPECT_NEAR(saved_by(0, 20), 15 * kMs, kMs / 10);
  EXPECT_NEAR(saved_by(0, 40), 20 * kMs, kMs / 10);
  EXPECT_NEAR(saved_by(1, 20), 15 * kMs, kMs / 10);
}

TEST(Replay, IsNotMadeWithoutClocks) {
  FakeJob job({});
  EXPECT_TRUE(Replay::Of(job.input(), Judge(job.input(), {.stretches = true})).has_value());
  for (CollectiveEntry& entry : job.input().ranks[1].collectives) entry.timeline_ns.reset();
  EXPECT_FALSE(Replay::Of(job.input(), Judge(job.input(), {.stretches = true})).has_value());
}

// A loader that is slow in front of the first collective, on a rank that has less to do before the
// second one: no later than the other in all, and all wait for it.
TEST(Replay, NamesACauseThatAllWaitForThoughTheRankIsNoLater) {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    job.Load(0, 0, 20);
    job.Load(1, 0, 1);
    job.Compute(0, 20, 30);
    job.Compute(1, 1, 10);
    MeetInTurn(step, &job);
  }
  JobInput& input = job.Done();
  const Answer answer = Explain(input);
  ASSERT_EQ(answer.findings.size(), 1);
  const RankFinding& finding = answer.findings[0];
  EXPECT_EQ(finding.index, 0);
  EXPECT_FALSE(finding.late);
  ASSERT_EQ(finding.causes.size(), 1);
  EXPECT_EQ(finding.causes[0].part, Part::kInput);
  EXPECT_NEAR(finding.causes[0].cost.est_ns, 19 * kMs, kMs / 10);
  ASSERT_TRUE(answer.replay_error_ns.has_value());
  EXPECT_NEAR(*answer.replay_error_ns, 0, kUs);
  // Without a replay it is not known that anybody waits for it.
  for (RankInput& rank : input.ranks) {
    for (CollectiveEntry& entry : rank.collectives) entry.timeline_ns.reset();
  }
  EXPECT_TRUE(Explain(input).findings.empty());
}

// Nobody is seen to wait for a collective that is over before a program asks: it is not known that
// ranks would run away from each other without the cause.
TEST(Replay, DoesNotNameWhatOnlyAJobWithoutWaitsWouldGainFrom) {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (const size_t rank : {0, 1}) {
      job.Load(rank, 0, rank == 0 ? 41 : 2);
      job.Collective(rank, step, 0, 0, 3);
      job.Compute(rank, rank == 0 ? 41 : 2, 42);
      job.StepOptimizer(rank, 42, 43);
    }
    job.NextStep(43);
  }
  JobInput& input = job.Done();
  const Judged judged = Judge(input, {.stretches = true});
  const std::optional<Replay> replay = Replay::Of(input, judged);
  ASSERT_TRUE(replay.has_value());
  const std::vector<PartTable> less = EachStep(judged, Part::kInput, 40 * kMs);
  const Replay::Saved saved = replay->SavedBy({0, less});
  EXPECT_NEAR(MeanOf(saved.most), 20 * kMs, kMs);
  EXPECT_LT(MeanOf(saved.least), 2 * kMs);
  EXPECT_LT(MeanOf(saved.likely), 2 * kMs);
  EXPECT_TRUE(Explain(input).findings.empty());
}

// How long a broadcast lasts without a cause depends on its root.
TEST(Replay, IsNotMadeOfBroadcastsWithoutARoot) {
  FakeJob job({});
  for (Arrival& arrival : job.input().arrivals) arrival.everybody_waits = false;
  EXPECT_FALSE(Replay::Of(job.input(), Judge(job.input(), {.stretches = true})).has_value());
  EXPECT_FALSE(Explain(job.input()).path->uneven.has_value());
}

// Rank 2 is late for the broadcast, which rank 0 waits for, but no other; rank 3 has as much more
// to do behind it.
TEST(Replay, OfABroadcastOnlyThoseWaitWhoDid) {
  HandJob job(4);
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (const size_t rank : {0, 1, 2, 3}) {
      const int64_t begin = rank == 2 ? 30 : 10;
      const int64_t end = rank == 0 || rank == 2 ? 31 : 11;
      const int64_t launch = end + (rank == 3 ? 40 : 20);
      job.Load(rank, 0, begin);
      job.Collective(rank, 2 * step, begin, begin, end);
      if (rank == 1) job.Broadcast();
      job.Compute(rank, end, launch);
      job.Collective(rank, 2 * step + 1, launch, launch, 53);
      job.StepOptimizer(rank, 53, 55);
    }
    job.NextStep(55);
  }
  JobInput& input = job.Done();
  const Judged judged = Judge(input, {.stretches = true});
  const std::optional<Replay> replay = Replay::Of(input, judged);
  ASSERT_TRUE(replay.has_value());
  EXPECT_NEAR(replay->error_ns(), 0, 100);
  const auto saved_by = [&](size_t rank, Part part) {
    return MeanOf(replay->SavedBy({rank, EachStep(judged, part, 20 * kMs)}).likely);
  };
  EXPECT_NEAR(saved_by(2, Part::kInput), 0, kMs);
  EXPECT_NEAR(saved_by(3, Part::kCompute), 0, kMs);
}

// Two collectives are over at once, and each rank waits for one of them: it does not matter which
// if one call entered both.
TEST(Replay, IsMadeWhereTwoThatAreWaitedForWereEnteredTogether) {
  for (const int64_t apart : {0, 5}) {
    HandJob job;
    for (uint64_t step = 0; step < kSteps; ++step) {
      for (const size_t rank : {0, 1}) {
        const int64_t entered = rank == 0 ? 30 : 10;
        job.Load(rank, 0, entered - apart);
        job.Collective(rank, 2 * step, entered - apart, entered - apart, 34);
        job.Compute(rank, entered - apart, entered);
        job.Collective(rank, 2 * step + 1, entered, 34, 34);
        job.StepOptimizer(rank, 34, 36);
      }
      job.NextStep(36);
    }
    JobInput& input = job.Done();
    for (RankInput& rank : input.ranks) {
      for (size_t i = 1; i < rank.collectives.size(); i += 2) {
        *rank.collectives[i].left_ns += 50 * kUs;
      }
      rank.threads[1].spans.Edit([](std::vector<TaskSpan>* spans) {
        for (size_t i = 1; i < spans->size(); i += 2) (*spans)[i].end_ns += 50 * kUs;
      });
    }
    const Judged judged = Judge(input, {.stretches = true});
    EXPECT_EQ(AreAmbiguous(judged), apart > 0);
    EXPECT_EQ(Replay::Of(input, judged).has_value(), apart == 0);
    // Other ranks may be in the other group.
    for (RankInput& rank : input.ranks) {
      for (CollectiveEntry& entry : rank.collectives) entry.group = entry.number % 2;
    }
    for (Arrival& arrival : input.arrivals) arrival.group = arrival.number % 2;
    EXPECT_TRUE(AreAmbiguous(Judge(input, {.stretches = true})));
  }
}

// Of each fake job, the replay with nothing changed is the job.
TEST(Replay, WithNothingTakenIsTheJob) {
  for (uint64_t seed = 1; seed < 8; ++seed) {
    FakeJobOptions options;
    options.ranks = 2 + seed % 3;
    options.seed = seed;
    options.steps = 60;
    options.trouble[1].throttled_ns = static_cast<int64_t>(seed) * kMs;
    options.clock_ns = {static_cast<int64_t>(seed) * 1'000 * kMs, -77};
    FakeJob job(options);
    const Judged judged = Judge(job.input(), {.stretches = true});
    const std::optional<Replay> replay = Replay::Of(job.input(), judged);
    ASSERT_TRUE(replay.has_value());
    EXPECT_NEAR(replay->error_ns(), 0, 100);
  }
}

}  // namespace
}  // namespace syncline::analysis::why
