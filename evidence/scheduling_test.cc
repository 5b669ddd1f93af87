// SPDX-License-Identifier: Apache-2.0
#include "evidence/scheduling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evidence/code_samples.h"
#include "evidence/write.h"

namespace syncline::evidence {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Who kUnknown{};
constexpr Who kThread{Who::Kind::kThread, 0};
constexpr Who kOther{Who::Kind::kOther, 1};
constexpr Who kIdle{Who::Kind::kIdle, 0};
constexpr Who kInterrupt{Who::Kind::kInterrupt, 0};

Turn Slept() {
  Turn turn;
  turn.until_ns = 9'000;
  turn.ran_ns = 2'000;
  turn.ready_ns = 500;
  turn.pause_ns = 3'000;
  turn.pause = Pause::kSlept;
  turn.cpu = 3;
  turn.waker = kOther;
  return turn;
}

Turn Preempted() {
  Turn turn;
  turn.until_ns = 12'000;
  turn.ran_ns = 2'000;
  turn.ready_ns = 1'000;
  turn.pause = Pause::kPreempted;
  turn.cpu = 3;
  return turn;
}

std::string Whole() {
  std::string text;
  AppendSchedulingHead(1'000, &text);
  Append(ProcessIdentity{40123, 99, 4026532281, 26, "train me"}, &text);
  Append(ScheduledThread{0, 40125, 28, "pt_main"}, &text);
  Append(OtherThread{17, 17, "kworker/0:1", ""}, &text);
  Append(OtherThread{900, 901, "a worker", "stress-ng"}, &text);
  Append(Slept(), {{kOther, 400}, {kIdle, 100}}, &text);
  Append(Preempted(), {{kThread, 900}}, &text);
  Turn turn = Preempted();
  turn.until_ns = 13'000;
  turn.pause = Pause::kUnknown;
  turn.waker = kInterrupt;
  Append(turn, {}, &text);
  Append(SchedulingLoss{15'000, 16'000, 12}, &text);
  AppendCost(1234, &text);
  AppendNote("a note", &text);
  AppendEnd(&text);
  return text;
}

TEST(Scheduling, WhatIsWrittenReadsBack) {
  const auto all = ParseScheduling(Whole());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->damaged_lines, 0U);
  EXPECT_EQ(all->from_ns, 1'000);
  EXPECT_EQ(all->processes.at(0).name, "train me");
  EXPECT_EQ(all->processes.at(0).pid_namespace_inode, 4026532281);
  EXPECT_EQ(all->threads.at(0).own_tid, 28);
  EXPECT_EQ(all->threads.at(0).name, "pt_main");
  EXPECT_EQ(all->others.at(0).process_name, "");
  EXPECT_EQ(all->others.at(1).name, "a worker");
  EXPECT_EQ(all->others.at(1).process_name, "stress-ng");
  ASSERT_EQ(all->turns.size(), 3U);
  EXPECT_EQ(all->losses.at(0).count, 12U);
  EXPECT_EQ(all->losses.at(0).until_ns, 16'000);
  EXPECT_EQ(all->cost_ns, 1234);
  EXPECT_THAT(all->notes, ElementsAre("a note"));
  EXPECT_TRUE(all->ended);
}

TEST(Scheduling, TurnsHaveTheirParts) {
  const auto all = ParseScheduling(Whole());
  ASSERT_TRUE(all.ok()) << all.status();
  const Turn& slept = all->turns.at(0);
  EXPECT_EQ(slept.run_from_ns(), 7'000);
  EXPECT_EQ(slept.ready_from_ns(), 6'500);
  EXPECT_EQ(slept.from_ns(), 3'500);
  EXPECT_EQ(slept.pause, Pause::kSlept);
  EXPECT_EQ(slept.cpu, 3);
  EXPECT_EQ(slept.waker, kOther);
  ASSERT_EQ(slept.takers, 2U);
  EXPECT_EQ(all->takers.at(slept.first_taker).who, kOther);
  EXPECT_EQ(all->takers.at(slept.first_taker + 1).who, kIdle);
  EXPECT_EQ(all->takers.at(slept.first_taker + 1).ns, 100);
  const Turn& preempted = all->turns.at(1);
  EXPECT_EQ(preempted.pause, Pause::kPreempted);
  EXPECT_EQ(preempted.waker, kUnknown);
  ASSERT_EQ(preempted.takers, 1U);
  EXPECT_EQ(all->takers.at(preempted.first_taker).who, kThread);
  EXPECT_EQ(all->turns.at(2).pause, Pause::kUnknown);
  EXPECT_EQ(all->turns.at(2).waker, kInterrupt);
  EXPECT_EQ(all->turns.at(2).takers, 0U);
}

TEST(Scheduling, WhatIsCutIsReadUpToTheCut) {
  const std::string text = Whole();
  for (size_t length = text.find("\nP") + 1; length < text.size(); ++length) {
    const auto all = ParseScheduling(std::string_view(text).substr(0, length));
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all->damaged_lines, 0U) << length;
    EXPECT_FALSE(all->ended);
  }
}

TEST(Scheduling, DamagedLinesAreCountedAndKeepTheirNumber) {
  std::string text;
  AppendSchedulingHead(0, &text);
  Append(ProcessIdentity{.pid = 1, .name = "a"}, &text);
  text += "T 7 1 1 =b\nT 0 5 5 =c\nO 1\nO 2 2 =d =e\n";     // 2: the first T, the first O
  text += "r 1 9000 1 1 1 Z 3 -\nr 1 9000 1 1 1 S 3 t9\n";  // 2
  text += "r 1 10 5 5 5 S 3 -\nr 1 9000 1 1 1 S -3 -\n";    // 2
  text += "r 1 9000 1 1 1 S 3 - o0 1 o0 1 o0 1 o0 1\nL 5 4 1\nx what\n";  // 3
  text += "r 1 9000 1 1 1 S 3 o1 t1 1\n";
  const auto all = ParseScheduling(text);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->damaged_lines, 9U);
  ASSERT_EQ(all->turns.size(), 1U);
  EXPECT_EQ(all->threads.at(all->turns[0].thread).name, "c");
  EXPECT_EQ(all->others.at(all->turns[0].waker.index).name, "d");
  EXPECT_TRUE(all->losses.empty());
}

TEST(Scheduling, AnotherVersionIsRefused) {
  const auto all = ParseScheduling("syncline-scheduling 2\n");
  EXPECT_THAT(std::string(all.status().message()), HasSubstr("another version"));
}

}  // namespace
}  // namespace syncline::evidence
