// SPDX-License-Identifier: Apache-2.0
#include "analysis/scheduling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace syncline::analysis {
namespace {

using evidence::Pause;
using evidence::Taker;
using evidence::Turn;
using evidence::Who;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Who kIdle{Who::Kind::kIdle, 0};
constexpr Who kSibling{Who::Kind::kThread, 1};
constexpr Who kRankOne{Who::Kind::kThread, 2};
constexpr Who kStress{Who::Kind::kOther, 0};
constexpr Who kStressToo{Who::Kind::kOther, 1};

struct Parts {
  int64_t ran_ns = 0;
  int64_t ready_ns = 0;
  int64_t pause_ns = 0;
};

// Threads 0 and 1 are of process 0, thread 2 is of process 1.
struct Traced {
  Traced() {
    all.processes = {{.pid = 40, .start_ticks = 7, .pid_namespace_inode = 5, .own_pid = 4},
                     {.pid = 50, .start_ticks = 8, .pid_namespace_inode = 5, .own_pid = 0}};
    all.threads = {{.process = 0, .tid = 41, .own_tid = 28, .name = "main"},
                   {.process = 0, .tid = 42, .own_tid = 29, .name = "pool"},
                   {.process = 1, .tid = 50, .own_tid = 0, .name = "main"}};
    all.others = {{90, 90, "stress", "stress-ng"}, {90, 91, "stress", "stress-ng"}};
    all.ended = true;
  }
  // Returns it, to be changed.
  Turn& Add(int64_t until_ns, Parts parts, Pause pause, int32_t cpu,
            const std::vector<Taker>& takers = {}) {
    Turn turn;
    turn.until_ns = until_ns;
    turn.ran_ns = parts.ran_ns;
    turn.ready_ns = parts.ready_ns;
    turn.pause_ns = parts.pause_ns;
    turn.pause = pause;
    turn.cpu = cpu;
    turn.first_taker = static_cast<uint32_t>(all.takers.size());
    turn.takers = static_cast<uint32_t>(takers.size());
    all.takers.insert(all.takers.end(), takers.begin(), takers.end());
    return all.turns.emplace_back(turn);
  }
  ThreadScheduling First(int64_t begin_ns, int64_t end_ns) const {
    const NodeScheduling node = SchedulingOf(all, begin_ns, end_ns);
    for (const ThreadScheduling& thread : node.processes.at(0).threads) {
      if (thread.tid == 28) return thread;
    }
    return {};
  }

  evidence::Scheduling all;
};

// Sleeps [100, 400), is ready [400, 500), runs [500, 900) on 3; is preempted, ready [900, 950),
// runs [950, 1000) on 5.
Traced TwoTurns() {
  Traced traced;
  traced.Add(900, {400, 100, 300}, Pause::kSlept, 3, {{kStress, 60}, {kIdle, 30}});
  traced.Add(1000, {50, 50, 0}, Pause::kPreempted, 5, {{kSibling, 40}, {kStressToo, 10}});
  return traced;
}

TEST(SchedulingOf, AddsUpTheWholeWindow) {
  const ThreadScheduling thread = TwoTurns().First(0, 1000);
  EXPECT_EQ(thread.name, "main");
  EXPECT_EQ(thread.times.asleep_ns, 300);
  EXPECT_EQ(thread.times.ready_ns, 150);
  EXPECT_EQ(thread.times.running_ns, 450);
  EXPECT_EQ(thread.times.uninterruptible_ns, 0);
  EXPECT_EQ(thread.times.unknown_ns, 100) << "it was not watched before 100";
  EXPECT_EQ(thread.times.known_ns(), 900);
  EXPECT_EQ(thread.turns, 2U);
  EXPECT_EQ(thread.preemptions, 1U);
  EXPECT_EQ(thread.migrations, 1U);
  EXPECT_EQ(thread.longest_ready_ns, 100);
}

TEST(SchedulingOf, NamesWhoHadTheCpuMeanwhile) {
  const ThreadScheduling thread = TwoTurns().First(0, 1000);
  ASSERT_THAT(thread.takers, SizeIs(3));
  EXPECT_EQ(thread.takers[0].kind, CpuTaker::Kind::kOther) << "two threads of one process";
  EXPECT_EQ(thread.takers[0].name, "stress");
  EXPECT_EQ(thread.takers[0].process_name, "stress-ng");
  EXPECT_EQ(thread.takers[0].pid, 90);
  EXPECT_EQ(thread.takers[0].ns, 70);
  EXPECT_EQ(thread.takers[1].kind, CpuTaker::Kind::kOwnThreads);
  EXPECT_EQ(thread.takers[1].ns, 40);
  EXPECT_EQ(thread.takers[2].kind, CpuTaker::Kind::kNobody);
  EXPECT_EQ(thread.takers[2].ns, 30);
  EXPECT_EQ(thread.unnamed_ns(), 10);
}

TEST(SchedulingOf, AddsUpTheThreadsOfAProcess) {
  Traced traced = TwoTurns();
  traced.Add(800, {500, 50, 0}, Pause::kUnknown, 4, {{kStress, 5}, {kRankOne, 45}}).thread = 1;
  traced.Add(800, {100, 0, 600}, Pause::kUninterruptible, 4).thread = 2;
  const NodeScheduling node = SchedulingOf(traced.all, 0, 1000);
  EXPECT_EQ(node.window_ns, 1000);
  EXPECT_TRUE(node.complete);
  ASSERT_THAT(node.processes, SizeIs(2));
  const ProcessScheduling& process = node.processes[0];
  EXPECT_EQ(process.process, (ProcessKey{0, 5, 4, 7}));
  EXPECT_EQ(process.times.running_ns, 950);
  EXPECT_EQ(process.times.ready_ns, 200);
  EXPECT_EQ(process.times.unknown_ns, 550);
  ASSERT_THAT(process.threads, SizeIs(2));
  EXPECT_EQ(process.threads[0].tid, 28) << "ran or was ready for longer";
  ASSERT_THAT(process.takers, SizeIs(4));
  EXPECT_EQ(process.takers[0].ns, 75);
  EXPECT_EQ(process.takers[1].kind, CpuTaker::Kind::kRecorded);
  EXPECT_EQ(process.takers[1].process, 1U);
  EXPECT_EQ(process.takers[1].ns, 45);
  EXPECT_EQ(process.unnamed_ns(), 10);
  EXPECT_EQ(node.processes[1].pid, 50) << "its own number is not known";
  EXPECT_EQ(node.processes[1].times.uninterruptible_ns, 600);
  EXPECT_THAT(node.processes[1].takers, IsEmpty());
}

TEST(SchedulingOf, ClipsTurnsAtTheWindow) {
  const ThreadScheduling begin = TwoTurns().First(450, 1000);
  EXPECT_EQ(begin.times.asleep_ns, 0);
  EXPECT_EQ(begin.times.ready_ns, 100);
  EXPECT_EQ(begin.times.unknown_ns, 0);
  EXPECT_EQ(begin.longest_ready_ns, 50);
  EXPECT_EQ(begin.turns, 2U);
  ASSERT_THAT(begin.takers, SizeIs(2)) << "those of the whole wait alone";
  EXPECT_EQ(begin.takers[0].kind, CpuTaker::Kind::kOwnThreads);
  EXPECT_EQ(begin.unnamed_ns(), 50);
  const ThreadScheduling end = TwoTurns().First(200, 920);
  EXPECT_EQ(end.times.asleep_ns, 200);
  EXPECT_EQ(end.times.running_ns, 400);
  EXPECT_EQ(end.times.ready_ns, 120);
  EXPECT_EQ(end.turns, 1U) << "the second begins behind the window";
  EXPECT_EQ(end.preemptions, 1U);
  EXPECT_EQ(end.migrations, 0U);
  EXPECT_EQ(end.unnamed_ns(), 30);
  const ThreadScheduling inner = TwoTurns().First(600, 700);
  EXPECT_EQ(inner.times.running_ns, 100);
  EXPECT_EQ(inner.turns, 0U);
}

TEST(SchedulingOf, KnowsNothingOfLosses) {
  Traced traced = TwoTurns();
  traced.all.losses = {{460, 520, 7}, {510, 600, 2}, {990, 2000, 1}, {2000, 3000, 5}};
  const ThreadScheduling thread = traced.First(0, 1000);
  EXPECT_EQ(thread.times.ready_ns, 110);
  EXPECT_EQ(thread.times.running_ns, 340);
  EXPECT_EQ(thread.times.unknown_ns, 250);
  EXPECT_EQ(thread.turns, 1U);
  ASSERT_THAT(thread.takers, SizeIs(2)) << "who had the CPU in the first wait is not known";
  EXPECT_EQ(thread.unnamed_ns(), 60);
  const NodeScheduling node = SchedulingOf(traced.all, 0, 1000);
  EXPECT_EQ(node.lost_ns, 150);
  EXPECT_EQ(node.lost_events, 10U);
}

TEST(SchedulingOf, ARunWhoseBeginWasNotSeenIsNoTurn) {
  Traced traced;
  traced.Add(200, {100, 0, 0}, Pause::kUnknown, 3);
  traced.Add(400, {100, 0, 100}, Pause::kStopped, 3);
  traced.Add(500, {0, 0, 100}, Pause::kSlept, 0);
  const ThreadScheduling thread = traced.First(0, 500);
  EXPECT_EQ(thread.turns, 1U);
  EXPECT_EQ(thread.migrations, 0U);
  EXPECT_EQ(thread.times.running_ns, 200);
  EXPECT_EQ(thread.times.stopped_ns, 100);
  EXPECT_EQ(thread.times.asleep_ns, 100);
  EXPECT_EQ(thread.times.unknown_ns, 100);
}

TEST(SchedulingOf, DamagedTurnsNeverCountTwiceOrMoreThanTheWait) {
  Traced traced;
  traced.Add(500, {400, 0, 0}, Pause::kUnknown, 3);
  traced.Add(500, {300, 100, 0}, Pause::kPreempted, 3, {{kStress, 1000}, {kIdle, 1000}});
  traced.Add(700, {100, 100, 50}, Pause::kSlept, 3, {{kStress, 1000}, {kIdle, 1000}});
  const ThreadScheduling thread = traced.First(0, 1000);
  EXPECT_EQ(thread.times.running_ns, 500);
  EXPECT_EQ(thread.times.ready_ns, 100);
  EXPECT_EQ(thread.times.asleep_ns, 0);
  EXPECT_EQ(thread.times.unknown_ns, 400);
  ASSERT_THAT(thread.takers, SizeIs(1));
  EXPECT_EQ(thread.takers[0].ns, 100);
}

TEST(SchedulingOf, NothingInAWindowOfNoLength) {
  const ThreadScheduling thread = TwoTurns().First(500, 400);
  EXPECT_EQ(thread.times.known_ns(), 0);
  EXPECT_EQ(thread.times.unknown_ns, 0);
}

TEST(Named, ProcessesAreCalledAsOnTheTimeline) {
  const Traced traced = TwoTurns();
  timeline::ProcessResult known;
  known.key = {3, 5, 4, 7};
  known.name = "n1 · rank 2 · python";
  known.part = "rank";
  known.rank = 2;
  const NodeScheduling node = Named(SchedulingOf(traced.all, 0, 1000), 3, {&known, 1});
  EXPECT_EQ(node.node, 3U);
  EXPECT_EQ(node.processes[0].name, "n1 · rank 2 · python");
  EXPECT_EQ(node.processes[0].rank, 2);
  EXPECT_EQ(node.processes[1].rank, -1);
}

}  // namespace
}  // namespace syncline::analysis
