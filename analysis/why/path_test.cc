// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "analysis/why/explain.h"
#include "analysis/why/statistics.h"
#include "analysis/why/stretches.h"
#include "analysis/why/testing/fake_job.h"
#include "analysis/why/testing/hand_job.h"

namespace syncline::analysis::why {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTransferNs = 2 * kMs + 40 * kUs;  // of FakeJob: from the last entry on

CriticalPath PathOf(const JobInput& input) {
  const Answer answer = Explain(input);
  EXPECT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  EXPECT_TRUE(answer.path.has_value());
  return answer.path.value_or(CriticalPath{});
}

int64_t PartOf(const CriticalPath& path, size_t rank, Part part) {
  return path.parts[rank][static_cast<size_t>(part)];
}

// Whatever it is made of, its pieces follow each other, and their means add up.
void ExpectWhole(const JobInput& input, const CriticalPath& path) {
  int64_t own_ns = 0;
  for (size_t rank = 0; rank < path.ranks.size(); ++rank) {
    own_ns += path.ranks[rank].est_ns;
    const PartTable& parts = path.parts[rank];
    EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), int64_t{0}), path.ranks[rank].est_ns,
                kParts);
  }
  EXPECT_NEAR(own_ns + path.collectives.est_ns, path.step.est_ns,
              static_cast<int64_t>(input.ranks.size()) + 2);
  for (size_t i = 1; i < path.pieces.size(); ++i) {
    EXPECT_EQ(path.pieces[i - 1].rank, path.pieces[i].begin_rank);
    EXPECT_EQ(path.pieces[i - 1].end_ns, path.pieces[i].begin_ns);
  }
  for (const PathPiece& piece : path.pieces) EXPECT_GT(piece.length_ns, 0);
}

TEST(Path, GoesThroughTheRankThatLaunchesLast) {
  FakeJobOptions options;
  options.ranks = 3;
  options.trouble[1].input_ns = 10 * kMs;
  FakeJob job(options);
  const CriticalPath path = PathOf(job.input());
  ExpectWhole(job.input(), path);
  EXPECT_EQ(path.collectives.est_ns, kTransferNs);
  ASSERT_EQ(path.kinds.size(), 1);
  EXPECT_EQ(path.kinds[0].name, "allreduce");
  EXPECT_EQ(path.kinds[0].ns, kTransferNs);
  EXPECT_TRUE(path.kinds[0].followed);
  EXPECT_EQ(path.not_followed_ns, 0);
  EXPECT_NEAR(PartOf(path, 1, Part::kInput), 11 * kMs, kMs / 2);
  EXPECT_EQ(PartOf(path, 0, Part::kInput) + PartOf(path, 2, Part::kInput), 0);
  // What is behind the last wait is the path's end, on whichever rank.
  EXPECT_LT(path.ranks[0].est_ns + path.ranks[2].est_ns, kMs / 2);
}

// Nothing is moved between ranks and parts by clocks that are apart but whose relation is known.
TEST(Path, IsTheSameWhateverTheClocksShow) {
  FakeJobOptions options;
  options.trouble[0].garbage_ns = 5 * kMs;
  const CriticalPath path = PathOf(FakeJob(options).input());
  options.clock_ns = {7'000 * kMs, -1'234'567};
  FakeJob shifted(options);
  const CriticalPath other = PathOf(shifted.input());
  ExpectWhole(shifted.input(), other);
  EXPECT_EQ(other.parts, path.parts);
  EXPECT_EQ(other.collectives.est_ns, path.collectives.est_ns);
  EXPECT_EQ(other.crossings, path.crossings);
}

TEST(Path, AHealthyJobIsSpreadOverItsRanks) {
  FakeJobOptions options;
  options.ranks = 2;
  options.steps = 200;
  FakeJob job(options);
  job.input().clock_bound_ns = 1'000;
  const CriticalPath path = PathOf(job.input());
  ExpectWhole(job.input(), path);
  EXPECT_GT(path.ranks[0].est_ns, path.step.est_ns / 5);
  EXPECT_GT(path.ranks[1].est_ns, path.step.est_ns / 5);
  EXPECT_GT(path.crossings, 40);
  EXPECT_GE(path.crossings, path.proven);
  EXPECT_EQ(path.proven, 0);  // no work of Gloo's was recorded
  job.input().clock_bound_ns = 1'000 * kMs;
  EXPECT_EQ(PathOf(job.input()).proven, 0);
  job.input().clock_bound_ns.reset();
  EXPECT_EQ(PathOf(job.input()).proven, 0);
}

TEST(Path, IsNotKnownWithoutClocks) {
  FakeJob job({});
  for (CollectiveEntry& entry : job.input().ranks[1].collectives) entry.timeline_ns.reset();
  const Answer answer = Explain(job.input());
  EXPECT_FALSE(answer.path.has_value());
  EXPECT_FALSE(answer.path_unknown.empty());
}

TEST(Path, OfOneRankThereIsNone) {
  FakeJobOptions options;
  options.ranks = 1;
  const Answer answer = Explain(FakeJob(options).input());
  EXPECT_FALSE(answer.path.has_value());
  EXPECT_EQ(answer.path_unknown, "");
}

// Of a broadcast whose root is not known it is not known whom the rank waited for.
TEST(Path, DoesNotFollowACollectiveInWhichNotEverybodyWaits) {
  FakeJobOptions options;
  options.trouble[1].input_ns = 10 * kMs;
  FakeJob job(options);
  for (Arrival& arrival : job.input().arrivals) arrival.everybody_waits = false;
  const CriticalPath path = PathOf(job.input());
  ExpectWhole(job.input(), path);
  EXPECT_EQ(path.crossings, 0);
  EXPECT_EQ(path.not_followed_ns, path.collectives.est_ns);
  EXPECT_GT(path.not_followed_ns, kTransferNs);
}

TEST(Path, GoesOnThroughABroadcastWhoseRootIsKnown) {
  FakeJobOptions options;
  options.trouble[1].input_ns = 10 * kMs;
  FakeJob job(options);
  const Answer all_wait = Explain(job.input());
  for (Arrival& arrival : job.input().arrivals) {
    arrival.everybody_waits = false;
    arrival.root = 0;
  }
  const Answer answer = Explain(job.input());
  ExpectWhole(job.input(), *answer.path);
  EXPECT_EQ(answer.path->not_followed_ns, 0);
  EXPECT_EQ(answer.path->crossings, all_wait.path->crossings);
  EXPECT_EQ(answer.path->uneven->est_ns, all_wait.path->uneven->est_ns);
  EXPECT_EQ(answer.replay_error_ns, all_wait.replay_error_ns);
  EXPECT_EQ(answer.findings[0].cost_all.est_ns, all_wait.findings[0].cost_all.est_ns);
}

// However wrong what was recorded is, it comes to an end, and adds up.
TEST(Path, EndsWhateverWasRecorded) {
  std::mt19937_64 random(11);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % most) - most / 2; };
  for (int round = 0; round < 40; ++round) {
    FakeJobOptions options;
    options.ranks = 2 + round % 3;
    options.steps = 40;
    options.trouble[1].queued_ns = 5 * kMs;
    options.seed = static_cast<uint64_t>(round);
    FakeJob job(options);
    for (RankInput& rank : job.input().ranks) {
      for (CollectiveEntry& entry : rank.collectives) {
        if (random() % 3 == 0) *entry.timeline_ns += up_to(40 * kMs);
        if (random() % 7 == 0) *entry.left_ns += up_to(20 * kMs);
      }
    }
    const Answer answer = Explain(job.input());
    if (!answer.path.has_value()) continue;
    for (const PathPiece& piece : answer.path->pieces) ASSERT_GT(piece.length_ns, 0);
  }
}

TEST(Path, FindsThatRanksWaitForEachOtherInTurn) {
  const JobInput input = InTurn();
  const Answer answer = Explain(input);
  EXPECT_EQ(answer.verdict, Verdict::kNobody);
  ASSERT_TRUE(answer.path.has_value());
  ExpectWhole(input, *answer.path);
  EXPECT_NEAR(answer.path->step.est_ns, 70 * kMs, kMs);
  EXPECT_NEAR(answer.path->ranks[0].est_ns, 30 * kMs, 3 * kMs);  // the optimizer's is somebody's
  EXPECT_NEAR(answer.path->ranks[1].est_ns, 30 * kMs, 3 * kMs);
  EXPECT_NEAR(answer.path->collectives.est_ns, 8 * kMs, kMs / 10);
  // 62 ms of own work one after the other, and 42 of each rank.
  EXPECT_NEAR(answer.path->uneven->est_ns, 20 * kMs, kMs);
  EXPECT_GT(answer.path->uneven->lo_ns, 19 * kMs);
}

// Two buckets, one thread that carries them out: the second one is launched early and begins late.
TEST(Path, GoesThroughTheCollectiveThatKeptTheThreadBusy) {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (const size_t rank : {0, 1}) {
      job.Compute(rank, 0, 10);
      job.Compute(rank, 10, 20);
      job.Collective(rank, 2 * step, 10, 10, 40);
      job.Collective(rank, 2 * step + 1, 20, 40, 60);
      job.StepOptimizer(rank, 60, 62);
    }
    job.NextStep(62);
  }
  JobInput& input = job.Done();
  const CriticalPath path = PathOf(input);
  ExpectWhole(input, path);
  EXPECT_NEAR(path.collectives.est_ns, 50 * kMs, kMs / 10);
  EXPECT_NEAR(path.ranks[0].est_ns + path.ranks[1].est_ns, 12 * kMs, kMs / 10);
}

// The same, but the thread is free when the second one is launched.
TEST(Path, GoesThroughTheWorkBeforeALaunchThatFoundTheThreadFree) {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (const size_t rank : {0, 1}) {
      job.Compute(rank, 0, 10);
      job.Compute(rank, 10, 20);
      job.Collective(rank, 2 * step, 10, 10, 15);
      job.Collective(rank, 2 * step + 1, 20, 20, 40);
      job.StepOptimizer(rank, 40, 42);
    }
    job.NextStep(42);
  }
  const CriticalPath path = PathOf(job.Done());
  EXPECT_NEAR(path.collectives.est_ns, 20 * kMs, kMs / 10);
  EXPECT_NEAR(path.ranks[0].est_ns + path.ranks[1].est_ns, 22 * kMs, kMs / 10);
}

// All ranks work beside a collective that takes longer: no more of it can be saved than they wait.
TEST(Path, KnowsThatRanksWorkBesideACollective) {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (const size_t rank : {0, 1}) {
      job.Compute(rank, 0, rank == 0 ? 22 : 18);
      job.Collective(rank, step, 2, 2, 36);
      job.StepOptimizer(rank, 36, 38);
    }
    job.NextStep(38);
  }
  JobInput& input = job.Done();
  const CriticalPath path = PathOf(input);
  ExpectWhole(input, path);
  EXPECT_NEAR(path.collectives.est_ns, 34 * kMs, kMs / 10);
  EXPECT_NEAR(path.least_wait_ns, 14 * kMs, kMs / 10);
  // What one rank works longer it works beside the collective.
  EXPECT_FALSE(path.uneven.has_value());
}

TEST(Path, IsNotKnownWhereRanksReceiveFromSingleOnes) {
  FakeJob job({});
  job.input().names.push_back("c10d::recv_");
  job.input().ranks[1].threads[0].spans.Edit([&](std::vector<TaskSpan>* spans) {
    for (TaskSpan& span : *spans) {
      if (job.input().names[span.name] == "aten::relu") {
        span.name = static_cast<NameId>(job.input().names.size() - 1);
      }
    }
  });
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.refusal, Refusal::kNone);
  EXPECT_FALSE(answer.path.has_value());
  EXPECT_THAT(answer.path_unknown, HasSubstr("c10d::recv_"));
  EXPECT_FALSE(answer.replay_error_ns.has_value());
}

// A pipeline of two stages: one works while the other waits for what it sends.
TEST(Path, GoesThroughWhatRanksSendToEachOther) {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    job.Compute(0, 0, 10);
    job.Transfer(1, 1, step, 0, 0, 11);
    job.Transfer(0, 1, step, 10, 10, 11);
    job.Transfer(0, 2, step, 11, 11, 43);
    job.Compute(1, 11, 41);
    job.Transfer(1, 2, step, 41, 41, 43);
    for (const size_t rank : {0, 1}) job.StepOptimizer(rank, 43, 45);
    job.NextStep(45);
  }
  JobInput& input = job.Done();
  const Answer answer = Explain(input);
  ASSERT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.verdict, Verdict::kNotJudged);
  EXPECT_TRUE(answer.transfers);
  EXPECT_TRUE(answer.findings.empty());
  ExpectWhole(input, *answer.path);
  EXPECT_NEAR(answer.path->collectives.est_ns, 3 * kMs, kMs / 10);
  EXPECT_NEAR(PartOf(*answer.path, 1, Part::kCompute), 30 * kMs, kMs);
  EXPECT_NEAR(answer.ranks[0].mean[static_cast<size_t>(Part::kWaitAndTransfer)], 33 * kMs, kMs);
  EXPECT_NEAR(answer.ranks[1].mean[static_cast<size_t>(Part::kWaitAndTransfer)], 13 * kMs, kMs);

  EXPECT_FALSE(answer.path->uneven.has_value());

  // Of one channel only one side is known.
  std::erase_if(input.arrivals, [](const Arrival& arrival) { return arrival.group == 2; });
  const Answer loose = Explain(input);
  EXPECT_THAT(loose.path_unknown, HasSubstr("sends and receives"));
  EXPECT_NEAR(loose.ranks[0].mean[static_cast<size_t>(Part::kWaitAndTransfer)], 33 * kMs, kMs);

  // Another thread waits meanwhile.
  for (RankInput& rank : input.ranks) {
    for (CollectiveEntry& entry : rank.collectives) entry.waited_tid = 9;
  }
  const Answer other = Explain(input);
  EXPECT_FALSE(other.transfers);
  EXPECT_EQ(other.ranks[0].mean[static_cast<size_t>(Part::kWaitAndTransfer)], 0);
}

// Ranks that work alike, and hardly wait for what they send, are compared.
TEST(Path, AFewTransfersDoNotMakeAPipeline) {
  FakeJobOptions options;
  options.trouble[1].input_ns = 10 * kMs;
  FakeJob job(options);
  JobInput& input = job.input();
  CollectiveEntry sent = input.ranks[1].collectives[3];
  sent.group = 77;
  sent.transfer = true;
  sent.left_ns.reset();
  input.ranks[1].collectives.insert(input.ranks[1].collectives.begin() + 4, sent);
  const Answer answer = Explain(input);
  EXPECT_FALSE(answer.transfers);
  EXPECT_EQ(answer.verdict, Verdict::kCause);
}

TEST(Path, OfTransfersNowAndThenStepsAreNotMade) {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    if (step % 8 == 0) job.Transfer(0, 1, step, 0, 0, 1);
    if (step % 8 == 0) job.Transfer(1, 1, step, 0, 0, 1);
    for (const size_t rank : {0, 1}) {
      job.Compute(rank, 1, 10);
      job.StepOptimizer(rank, 10, 12);
    }
    job.NextStep(12);
  }
  const Answer answer = Explain(job.Done());
  EXPECT_EQ(answer.refusal, Refusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.steps, kSteps - 1);
  EXPECT_TRUE(answer.few_transfers);
}

// What was sent while the rank went on working did not hold it up.
TEST(Path, DoesNotGoThroughATransferThatWasUnderWay) {
  HandJob job;
  for (uint64_t step = 0; step < kSteps; ++step) {
    job.Transfer(1, 1, step, 1, 1, 7);
    job.Compute(1, 7, 20);
    job.Compute(0, 0, 5);
    job.Transfer(0, 1, step, 5, 40, 41);
    job.Compute(0, 5, 40);
    job.Compute(0, 41, 43);
    job.StepOptimizer(0, 43, 45);
    job.StepOptimizer(1, 20, 22);
    job.NextStep(45);
  }
  const JobInput& input = job.Done();
  const CriticalPath path = PathOf(input);
  ExpectWhole(input, path);
  EXPECT_NEAR(path.collectives.est_ns, kMs, kMs / 10);
  EXPECT_NEAR(path.ranks[0].est_ns, 44 * kMs, kMs);
}

TEST(Path, IsNotKnownWhereEndsOfCollectivesAreMissing) {
  FakeJob job({});
  std::vector<CollectiveEntry>& entries = job.input().ranks[1].collectives;
  for (size_t i = 0; i < entries.size(); i += 5) entries[i].left_ns.reset();
  const Answer answer = Explain(job.input());
  ASSERT_EQ(answer.refusal, Refusal::kNone);
  EXPECT_THAT(answer.path_unknown, HasSubstr("2 % of the collectives"));
  EXPECT_FALSE(answer.replay_error_ns.has_value());
}

TEST(Stretches, NoPartIsNegative) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    Piece piece{0, static_cast<int64_t>(1 + random() % 300'000'000)};
    piece.part = Part::kCompute;
    piece.taken_ns = static_cast<int64_t>(random() % (static_cast<uint64_t>(piece.end_ns) + 1));
    if (random() % 3 == 0) piece.taken_ns = piece.end_ns;
    piece.throttled_ns =
        static_cast<int64_t>(random() % (static_cast<uint64_t>(piece.taken_ns) + 1));
    std::vector<int64_t> marks;
    for (int i = 0; i < 4; ++i) marks.push_back(static_cast<int64_t>(random() % 300'000'000));
    for (const Stretch& one : StretchesOf({&piece, 1}, marks)) {
      for (const int64_t part : one.parts) ASSERT_GE(part, 0);
      ASSERT_EQ(std::accumulate(one.parts.begin(), one.parts.end(), int64_t{0}),
                one.end_ns - one.begin_ns);
    }
  }
}

}  // namespace
}  // namespace syncline::analysis::why
