// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_scheduling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/files.h"
#include "coordinator/merge/job_test.h"
#include "coordinator/recording/recording.h"
#include "evidence/write.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::merge {
namespace {

using evidence::Pause;
using evidence::Who;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

TEST(SchedulingSeriesOf, NamesWhoWokeAThreadAndWhoHadItsCpu) {
  evidence::Scheduling all;
  all.processes = {{.pid = 40, .start_ticks = 7, .pid_namespace_inode = 5, .own_pid = 4},
                   {.pid = 50, .start_ticks = 9, .own_pid = 6, .name = "loader"}};
  all.threads = {{.process = 0, .tid = 41, .own_tid = 28, .name = "main"},
                 {.process = 1, .tid = 51, .own_tid = 0, .name = "io"}};
  all.others = {{17, 17, "kworker/0:1", ""}, {90, 91, "worker", "stress-ng"}, {0, 0, "x", "y"}};
  all.takers = {{{Who::Kind::kOther, 1}, 5}, {{}, 6}, {{Who::Kind::kIdle, 0}, 7}};
  evidence::Turn turn;
  turn.thread = 1;
  turn.until_ns = 100;
  turn.ran_ns = 10;
  turn.ready_ns = 18;
  turn.pause_ns = 3;
  turn.pause = Pause::kUnknown;
  turn.cpu = 2;
  turn.waker = {Who::Kind::kThread, 0};
  turn.takers = 3;
  all.turns = {turn};
  all.losses = {{200, 300, 4}};
  timeline::NodeInput node;
  node.processes.resize(1);
  node.processes[0].key = {9, 5, 4, 7};
  node.processes[0].rank = 3;
  const timeline::SchedulingSeries series = SchedulingSeriesOf(all, node);
  EXPECT_THAT(series.names,
              ElementsAre("no one", "an interrupt", "main 28 of rank 3", "io 51 of loader (pid 6)",
                          "kworker/0:1 (pid 17)", "worker of stress-ng (pid 90)", "x of y"));
  ASSERT_THAT(series.threads, SizeIs(2));
  EXPECT_THAT(series.threads[0].turns, IsEmpty());
  EXPECT_EQ(series.threads[1].tid, 51);
  const timeline::ScheduledTurn& made = series.threads[1].turns.at(0);
  EXPECT_EQ(made.waker, 2U);
  EXPECT_EQ(made.pause_ns, 0) << "what it did before is not known";
  EXPECT_EQ(made.ready_ns, 18);
  EXPECT_EQ(made.cpu, 2);
  ASSERT_THAT(series.takers, SizeIs(3));
  EXPECT_EQ(series.takers[made.first_taker].who, 5U);
  EXPECT_EQ(series.takers[1].who, timeline::kNoName);
  EXPECT_EQ(series.takers[2].who, 0U);
  ASSERT_THAT(series.losses, SizeIs(1));
  EXPECT_EQ(series.losses[0].count, 4U);
}

class NodeSchedulingTest : public testing::JobTest {
 protected:
  // The worker's thread is watched from the window's begin on: runs for `run_ms`, then waits for
  // half as long for the CPU, which stress-ng has.
  void WriteScheduling(int64_t run_ms) {
    const auto recording = recording::ReadRecording(run_);
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (const recording::NodeRecord& node : recording->nodes) {
      if (node.name != "worker-0") continue;
      process_ = node.processes.at(0);
    }
    const int64_t begin_ns = timeline::testing::kJobZeroNs + timeline::testing::kJobOffsetNs;
    std::string text;
    evidence::AppendSchedulingHead(begin_ns, &text);
    evidence::Append(evidence::ProcessIdentity{.pid = 700,
                                               .start_ticks = process_.start_ticks,
                                               .pid_namespace_inode = process_.pid_namespace_inode,
                                               .own_pid = process_.own_pid,
                                               .name = "python"},
                     &text);
    evidence::Append(evidence::ScheduledThread{0, 701, process_.own_pid, "python"}, &text);
    evidence::Append(evidence::OtherThread{90, 90, "stress", "stress-ng"}, &text);
    evidence::Turn turn;
    turn.cpu = 3;
    turn.until_ns = begin_ns + run_ms * kMs;
    turn.ran_ns = run_ms * kMs;
    evidence::Append(turn, {}, &text);
    turn.pause = Pause::kPreempted;
    turn.ready_ns = run_ms * kMs / 2;
    turn.until_ns += turn.ready_ns + turn.ran_ns;
    evidence::Append(turn, {{{Who::Kind::kOther, 0}, turn.ready_ns}}, &text);
    text += "what\n";
    evidence::AppendEnd(&text);
    Write(text);
  }
  void Write(const std::string& text) const {
    const std::filesystem::path folder = recording::Layout(run_).Evidence("worker-0");
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(WriteFileAtomically(folder / evidence::kSchedulingFileName, text).ok());
  }

  recording::ProcessRecord process_;
};

TEST_F(NodeSchedulingTest, IsInTheReportAndOnTheTimeline) {
  WriteScheduling(4);
  MergeOptions options = Of({run_.string()});
  const auto merged = Merge(options);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT(merged->complaints, IsEmpty());
  EXPECT_THAT(merged->notes, Contains(HasSubstr("1 damaged lines of its scheduler's trace")));
  ASSERT_THAT(merged->report.scheduling, SizeIs(1));
  const analysis::NodeScheduling& node = merged->report.scheduling[0];
  EXPECT_EQ(merged->report.nodes[node.node].name, "worker-0");
  ASSERT_THAT(node.processes, SizeIs(1));
  EXPECT_THAT(node.processes[0].name, HasSubstr("worker-0"));
  const analysis::SchedulingTimes& times = node.processes[0].times;
  EXPECT_NEAR(static_cast<double>(times.running_ns), 8 * kMs, kMs);
  EXPECT_EQ(times.ready_ns, 2 * kMs);
  EXPECT_EQ(node.processes[0].takers.at(0).name, "stress");
  EXPECT_EQ(node.processes[0].threads.at(0).tid, process_.own_pid);
  const auto timeline = ReadFile(options.out_dir / "timeline.perfetto-trace");
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_THAT(*timeline, HasSubstr("CPU 3"));
  EXPECT_THAT(*timeline, HasSubstr("had the CPU: stress of stress-ng (pid 90), ns"));
  const auto report = MakeReport({.input = {.inputs = {run_.string()}}, .step = {}});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->scheduling, SizeIs(1));
  EXPECT_EQ(report->scheduling[0].processes.at(0).times.ready_ns, node.processes[0].times.ready_ns);
}

TEST_F(NodeSchedulingTest, ACutCountsWhatLiesInIt) {
  WriteScheduling(60);
  const auto whole = Merge(Of({run_.string()}));
  ASSERT_TRUE(whole.ok()) << whole.status();
  MergeOptions options = Of({run_.string()});
  const auto middle = (whole->report.window_begin.ns + whole->report.window_end.ns) / 2;
  options.range.to = TimelineTime{middle};
  const auto cut = Merge(options);
  ASSERT_TRUE(cut.ok()) << cut.status();
  const analysis::NodeScheduling& all = whole->report.scheduling.at(0);
  const analysis::NodeScheduling& part = cut->report.scheduling.at(0);
  EXPECT_EQ(part.window_ns, (all.window_ns + 1) / 2);
  EXPECT_NEAR(static_cast<double>(all.processes.at(0).times.known_ns()), 150 * kMs, kMs);
  EXPECT_NEAR(static_cast<double>(part.processes.at(0).times.known_ns()), 100 * kMs, kMs);
}

TEST_F(NodeSchedulingTest, WhatCannotBeReadIsAComplaint) {
  Write("syncline-scheduling 2\n");
  const auto merged = Merge(Of({run_.string()}));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_TRUE(merged->incomplete);
  EXPECT_THAT(merged->complaints,
              Contains(HasSubstr("worker-0: evidence/scheduling.txt is skipped, and with it when "
                                 "the node's threads ran")));
  EXPECT_THAT(merged->report.scheduling, IsEmpty());
}

}  // namespace
}  // namespace syncline::merge
