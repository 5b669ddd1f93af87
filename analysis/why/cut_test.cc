// SPDX-License-Identifier: Apache-2.0
// Made-up steps of a model that is cut in two: client and worker, whose critical path is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "analysis/why/cut_explain.h"
#include "analysis/why/cut_path.h"
#include "analysis/why/cut_replay.h"
#include "analysis/why/testing/fake_cut.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kMs = FakeCut::kMs;
constexpr int64_t kStepNs = FakeCut::kPlainStepNs;
constexpr NameId kNone = FakeCut::kNone;
constexpr NameId kReceiveX = FakeCut::kReceiveX;
constexpr NameId kReceiveY = FakeCut::kReceiveY;
constexpr NameId kBatch = FakeCut::kBatch;

// What is asked of each span of a partition, of its steps and of its transfers.
void Shift(CutInput* input, size_t partition, int64_t by_ns) {
  CutPartition& moved = input->partitions[partition];
  for (auto& lane : moved.lanes) {
    for (CutSpan& span : lane) {
      span.begin_ns += by_ns;
      span.end_ns += by_ns;
    }
  }
  for (auto& [id, times] : moved.steps) {
    times.begin_ns += by_ns;
    if (times.end_ns.has_value()) *times.end_ns += by_ns;
  }
  for (CutTransfer& transfer : input->transfers) {
    if (transfer.from == partition) transfer.sent_ns += by_ns;
    if (transfer.to == partition) transfer.received_ns += by_ns;
  }
}

TEST(CutTest, ThePathAddsUpToTheStep) {
  FakeCut job;
  const CutAnswer answer = ExplainCut(job.input());
  ASSERT_EQ(answer.refusal, CutRefusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.steps, 60u);
  EXPECT_EQ(answer.step.est_ns, kStepNs);
  EXPECT_EQ(answer.client, 0u);
  EXPECT_EQ(answer.partitions[0].path.est_ns, 6 * kMs);
  EXPECT_EQ(answer.partitions[1].path.est_ns, 6 * kMs);
  EXPECT_EQ(answer.tensors.est_ns, 2 * kMs);
  EXPECT_EQ(answer.between.est_ns, 1 * kMs);
  ASSERT_EQ(answer.edges.size(), 2u);
  for (const CutEdgeSummary& edge : answer.edges) {
    EXPECT_EQ(edge.path.est_ns, kMs);
    EXPECT_EQ(edge.steps, 60u);
    EXPECT_EQ(edge.clock_ns, 100);
    EXPECT_EQ(edge.asked_ns, 0);
    EXPECT_EQ(edge.sending_ns, 1000);
  }
  ASSERT_EQ(answer.operators.size(), 3u);
  EXPECT_EQ(answer.operators[0].name, "remote");
  EXPECT_EQ(answer.operators[0].partition, 1u);
  EXPECT_EQ(answer.operators[0].path.est_ns, 6 * kMs - 10);
  EXPECT_EQ(answer.operators[1].name, "forward");
  EXPECT_EQ(answer.operators[1].path.est_ns, 4 * kMs);
}

TEST(CutTest, WhatAChangeSavesIsReplayed) {
  FakeCut job;
  const CutAnswer answer = ExplainCut(job.input());
  ASSERT_EQ(answer.refusal, CutRefusal::kNone);
  EXPECT_EQ(answer.replay_error_ns, 0);
  EXPECT_EQ(answer.tensors_saved.est_ns, 2 * kMs);
  ASSERT_EQ(answer.directions.size(), 2u);
  for (const CutDirectionSummary& one : answer.directions) EXPECT_EQ(one.saved.est_ns, kMs);
  EXPECT_NEAR(static_cast<double>(answer.partitions[0].saved.est_ns), 3e6, 2e4);
  EXPECT_NEAR(static_cast<double>(answer.partitions[1].saved.est_ns), 3e6, 2e4);
}

// A clock that is off moves time from one direction to the other; the path's lengths stay.
TEST(CutTest, AClockThatIsOffMovesTimeBetweenDirections) {
  FakeCut right;
  FakeCut wrong;
  Shift(&wrong.input(), 1, 300'000);
  const CutAnswer a = ExplainCut(right.input());
  const CutAnswer b = ExplainCut(wrong.input());
  ASSERT_EQ(b.refusal, CutRefusal::kNone) << b.refusal_text;
  EXPECT_EQ(a.step.est_ns, b.step.est_ns);
  EXPECT_EQ(a.tensors.est_ns, b.tensors.est_ns);
  EXPECT_EQ(a.tensors_saved.est_ns, b.tensors_saved.est_ns);
  for (size_t p = 0; p < 2; ++p) {
    EXPECT_EQ(a.partitions[p].path.est_ns, b.partitions[p].path.est_ns);
    EXPECT_EQ(a.partitions[p].busy_ns, b.partitions[p].busy_ns);
  }
  EXPECT_EQ(b.edges[0].path.est_ns, 1'300'000);
  EXPECT_EQ(b.edges[0].edge.tensor, "x");
  EXPECT_EQ(b.edges[1].path.est_ns, 700'000);
}

// The worker begins late, and asks for what was sent long before.
TEST(CutTest, ATensorThatIsAskedForLateTakesTheReceiversTime) {
  FakeCut job;
  for (CutTransfer& transfer : job.input().transfers) {
    if (transfer.edge == 0) transfer.sent_ns -= 3'500'000;  // before `forward` is over
  }
  for (auto& lane : job.input().partitions[1].lanes) {
    for (CutSpan& span : lane) {
      if (span.kind != CutKind::kAsked) continue;
      for (CutTransfer& transfer : job.input().transfers) {
        if (transfer.posted_recorded_ns == span.recorded_ns && transfer.edge == 0) {
          transfer.posted_recorded_ns = span.recorded_ns + 2 * kMs;
        }
      }
      span.begin_ns += 2 * kMs;
      span.end_ns += 2 * kMs;
      span.recorded_ns += 2 * kMs;
    }
  }
  for (auto& [id, times] : job.input().partitions[1].steps) times.begin_ns += 2 * kMs;
  const CutAnswer answer = ExplainCut(job.input());
  ASSERT_EQ(answer.refusal, CutRefusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.edges[0].edge.tensor, "x");
  EXPECT_EQ(answer.edges[0].path.est_ns, 3 * kMs);
  EXPECT_EQ(answer.edges[0].asked_ns, 3 * kMs);
  // The client's forward pass is beside it, and the way to the worker's begin between steps.
  EXPECT_EQ(answer.partitions[0].path.est_ns, 2 * kMs);
  EXPECT_EQ(answer.between.est_ns, 3 * kMs);
}

// Of two tensors that come one after the other only the last is on the path, but without it the
// step would still wait for the other one.
TEST(CutTest, ASavingIsNotMoreThanWhatElseIsWaitedFor) {
  FakeCut job;
  CutInput& input = job.input();
  input.edges.push_back({"z", 0, 1});
  std::vector<CutTransfer> more;
  for (const CutTransfer& x : input.transfers) {
    if (x.edge != 0) continue;
    CutTransfer z = x;  // sent with the step's begin, there 0.2 ms before x
    z.edge = 2;
    z.sent_ns = z.sent_recorded_ns = x.step * kStepNs + 10;
    z.received_ns = z.received_recorded_ns = x.received_ns - 200'000;
    more.push_back(z);
    job.Add(1, 1, z.received_ns, z.received_ns + 20, kReceiveX, CutKind::kDone);
  }
  input.transfers.insert(input.transfers.end(), more.begin(), more.end());
  std::sort(input.partitions[1].lanes[1].begin(), input.partitions[1].lanes[1].end(),
            [](const CutSpan& a, const CutSpan& b) { return a.begin_ns < b.begin_ns; });
  const CutPaths paths(input);
  std::vector<size_t> of_step;
  for (size_t i = 0; i < input.transfers.size(); ++i) {
    if (input.transfers[i].step == 5) of_step.push_back(i);
  }
  const CutReplay replay(input, paths, 5, of_step);
  const int64_t end_ns = replay.EndWith({});
  EXPECT_EQ(end_ns, 5 * kStepNs + 14 * kMs);
  EXPECT_EQ(end_ns - replay.EndWith({.no_tensors = true}), 2 * kMs);
}

// An operator that holds no thread: the executor asks for it, and hears when it is done.
TEST(CutTest, AnOperatorThatWaitsIsTheWork) {
  FakeCut job;
  CutInput& input = job.input();
  // In place of y: "batch" is fetched from 4 ms on.
  input.names[kReceiveY] = "batch";
  input.receives[kReceiveY] = false;
  for (CutTransfer& transfer : input.transfers) {
    if (transfer.edge == 1) transfer.received_recorded_ns += 1;  // nothing is received there
  }
  job.Add(0, 0, 61 * kStepNs, 61 * kStepNs + 1, kReceiveY, CutKind::kOperator);
  const CutAnswer answer = ExplainCut(input);
  ASSERT_EQ(answer.refusal, CutRefusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.operators[0].name, "batch");
  EXPECT_EQ(answer.operators[0].path.est_ns, 8 * kMs - 1000);
}

TEST(CutTest, APathThatWasNotRecordedIsRefused) {
  FakeCut job;
  std::erase_if(job.input().transfers,
                [](const CutTransfer& transfer) { return transfer.edge == 1; });
  const CutAnswer answer = ExplainCut(job.input());
  EXPECT_EQ(answer.refusal, CutRefusal::kPathUnknown) << answer.refusal_text;
}

TEST(CutTest, StepsThatOverlapAreRefused) {
  FakeCut job;
  for (auto& [id, times] : job.input().partitions[1].steps) {
    if (times.end_ns.has_value()) *times.end_ns += 6 * kMs;
  }
  EXPECT_EQ(ExplainCut(job.input()).refusal, CutRefusal::kStepsOverlap);
}

// A recording in pieces: the last step of a piece has no end.
TEST(CutTest, AStepThatAPieceCutsOffIsNoOverlap) {
  FakeCut job;
  for (CutPartition& partition : job.input().partitions) {
    partition.steps[30].end_ns.reset();
    partition.covered = {{0, 30 * kStepNs + kMs}, {31 * kStepNs - kMs, 61 * kStepNs}};
  }
  const CutAnswer answer = ExplainCut(job.input());
  ASSERT_EQ(answer.refusal, CutRefusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.steps, 59u);
  EXPECT_EQ(answer.overlapping_steps, 0u);
}

// Between two steps the session runs something on the worker alone.
TEST(CutTest, AnotherCallOfTheSessionIsNotTheProgramsTime) {
  FakeCut job;
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t at = i * kStepNs + 14 * kMs + 200'000;
    job.input().partitions[1].steps[1000 + i] = {at, at + 500'000, 0};
  }
  const CutAnswer answer = ExplainCut(job.input());
  ASSERT_EQ(answer.refusal, CutRefusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.client, 0u);
  EXPECT_EQ(answer.step.est_ns, 14'200'000);
  EXPECT_EQ(answer.between.est_ns, 200'000);
}

// The client works on while its tensor is under way: the tensor may have waited for its thread.
TEST(CutTest, ASenderThatWorksMeanwhileIsSaid) {
  FakeCut job;
  for (int64_t i = 0; i < 60; ++i) {
    job.Add(0, 1, i * kStepNs + 4 * kMs + 200'000, i * kStepNs + 4 * kMs + 900'000, kBatch,
            CutKind::kOperator);
  }
  std::sort(job.input().partitions[0].lanes[1].begin(), job.input().partitions[0].lanes[1].end(),
            [](const CutSpan& a, const CutSpan& b) { return a.begin_ns < b.begin_ns; });
  const CutAnswer answer = ExplainCut(job.input());
  ASSERT_EQ(answer.refusal, CutRefusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.partitions[0].sending_busy_ns, 702'000);
  EXPECT_EQ(answer.partitions[1].sending_busy_ns, 1000);
}

TEST(CutTest, StepsThatBeginInTwoProcessesAreRefused) {
  FakeCut job;
  CutInput& input = job.input();
  CutPartition other = input.partitions[1];
  other.task = "/job:worker/replica:0/task:1";
  std::map<int64_t, CutStepTimes> own;
  for (const auto& [id, times] : other.steps) {
    own[1000 + id] = {times.begin_ns + 12 * kMs, *times.end_ns + 2 * kMs, 0};
  }
  other.steps = own;
  input.partitions.push_back(other);
  for (const auto& [id, times] : own) {
    input.partitions[1].steps[id] = {times.begin_ns + 10, *times.end_ns - 10, 0};
  }
  EXPECT_EQ(ExplainCut(input).refusal, CutRefusal::kSeveralClients);
}

TEST(CutTest, StepsOfWhichEachIsAnotherAreRefused) {
  FakeCut job;
  for (int64_t i = 0; i < 60; ++i) {
    for (int64_t n = 0; n < i; ++n) {
      const int64_t at = i * kStepNs + 13 * kMs + n;
      job.Add(0, 0, at, at + 1, kBatch, CutKind::kOperator, 1);
    }
  }
  std::sort(job.input().partitions[0].lanes[0].begin(), job.input().partitions[0].lanes[0].end(),
            [](const CutSpan& a, const CutSpan& b) { return a.begin_ns < b.begin_ns; });
  const CutAnswer answer = ExplainCut(job.input());
  EXPECT_EQ(answer.refusal, CutRefusal::kStepsDiffer) << answer.refusal_text;
}

TEST(CutTest, WhatIsNotSuchAJobIsRefused) {
  FakeCut few(29);
  EXPECT_EQ(ExplainCut(few.input()).refusal, CutRefusal::kTooFewSteps);
  FakeCut enough(30);
  EXPECT_EQ(ExplainCut(enough.input()).refusal, CutRefusal::kNone);
  FakeCut alone;
  alone.input().transfers.clear();
  EXPECT_EQ(ExplainCut(alone.input()).refusal, CutRefusal::kNoTensors);
  FakeCut twice;
  twice.input().partitions.push_back(twice.input().partitions[1]);
  EXPECT_EQ(ExplainCut(twice.input()).refusal, CutRefusal::kSeveralJobs);
  FakeCut functions;
  for (CutPartition& partition : functions.input().partitions) partition.steps.clear();
  EXPECT_EQ(ExplainCut(functions.input()).refusal, CutRefusal::kNoSteps);
}

// What lies in a hole of the profiles is no step.
TEST(CutTest, StepsAcrossAHoleAreLeftOut) {
  FakeCut job;
  job.input().partitions[0].covered = {{0, 40 * kStepNs + kMs}, {41 * kStepNs - kMs, 61 * kStepNs}};
  const CutAnswer answer = ExplainCut(job.input());
  ASSERT_EQ(answer.refusal, CutRefusal::kNone) << answer.refusal_text;
  EXPECT_EQ(answer.steps, 59u);
  EXPECT_EQ(answer.step.est_ns, kStepNs);
}

}  // namespace
}  // namespace syncline::analysis::why
