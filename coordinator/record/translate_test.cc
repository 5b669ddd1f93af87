// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::record {
namespace {

using recording::NodeState;
using ::testing::HasSubstr;

TEST(DescribeLoss, AProfileThatWasLost) {
  recording::NodeRecord node;
  node.state = NodeState::kComplete;
  node.stop.complete = true;
  EXPECT_EQ(DescribeLoss(node), "");
  node.fetched.lost_profiles = 1;
  EXPECT_THAT(DescribeLoss(node), HasSubstr("1 profile was lost"));
}

TEST(DescribeLoss, ANodeThatNeverStarted) {
  recording::NodeRecord node;
  node.state = NodeState::kComplete;
  node.stop.complete = true;
  node.start.requested_monotonic_raw_ns = 1;
  node.stop.requested_monotonic_raw_ns = 2;
  node.stop.reason = "agent shutdown";
  EXPECT_EQ(DescribeLoss(node), "it never started: agent shutdown");
}

TEST(DescribeLoss, AProcessWhoseCallsLttngDidNotRecord) {
  recording::NodeRecord node;
  node.state = NodeState::kComplete;
  node.stop.complete = true;
  node.processes.resize(2);
  node.processes[0].on_monotonic_ns = 5;
  node.processes[1].own_pid = 8;
  node.processes[1].command_line = "train";
  node.processes[1].present_at_prepare = true;
  EXPECT_EQ(DescribeLoss(node), "") << "another one covers the window: this one was idle";
  node.processes[1].lost = 7;
  EXPECT_EQ(DescribeLoss(node),
            "7 events that processes could not write, pid 8 (train) covers nothing of the window: "
            "calls were made, and LTTng recorded none (delayed for seconds, or of another session "
            "daemon)");
}

TEST(DescribeLoss, AProgramThatBecameAnotherOneOrPaused) {
  recording::NodeRecord node;
  node.state = NodeState::kComplete;
  node.stop.complete = true;
  node.processes.resize(2);
  node.processes[0].own_pid = 7;
  node.processes[0].command_line = "launch";
  node.processes[1].own_pid = 8;
  node.processes[1].command_line = "train";
  EXPECT_EQ(DescribeLoss(node), "");
  node.processes[0].became_another_program = true;
  node.processes[1].pauses = 3;
  EXPECT_EQ(DescribeLoss(node),
            "pid 7 (launch) became another program (exec), of which nothing is recorded, pid 8 "
            "(train) was paused by the program (__itt_pause)");
}

// Parents end before their children: what was known at first stays.
TEST(Apply, AProcessKeepsItsPart) {
  v1::PrepareResponse prepared;
  v1::StopResponse stopped;
  const auto add = [](auto* response, int32_t pid, const char* part) {
    v1::ProcessInfo* const process = response->add_processes();
    process->set_own_pid(pid);
    process->set_part(part);
    process->set_rank(0);
  };
  for (const int32_t pid : {7, 8}) add(&prepared, pid, pid == 7 ? "child" : "");
  for (const int32_t pid : {7, 8, 9}) add(&stopped, pid, pid == 9 ? "acme" : "rank");
  add(&prepared, 10, "child");
  add(&stopped, 10, "loader worker");
  add(&prepared, 11, "launcher");
  add(&stopped, 11, "");
  recording::NodeRecord node;
  Apply(prepared, &node);
  Apply(stopped, &node);
  std::map<int32_t, std::pair<std::string, int32_t>> parts;
  for (const recording::ProcessRecord& process : node.processes) {
    parts[process.own_pid] = {process.part, process.rank};
  }
  EXPECT_EQ(node.processes.size(), 5u);
  EXPECT_EQ(parts[7], std::pair(std::string("child"), 0));
  EXPECT_EQ(parts[8], std::pair(std::string("rank"), 0));
  EXPECT_EQ(parts[9].first, "") << "no part that we know";
  EXPECT_EQ(parts[10].first, "loader worker") << "it had not named its thread";
  EXPECT_EQ(parts[11], std::pair(std::string("launcher"), -1)) << "its thread's name is gone";
}

TEST(Apply, WhatAProcessSaysOfItselfIsInTheRecord) {
  v1::StopResponse response;
  v1::ProcessCoverage* const coverage = response.add_coverage();
  coverage->set_own_pid(7);
  coverage->set_became_another_program(true);
  coverage->set_pauses_count(2);
  coverage->set_ended_monotonic_ns(6);
  v1::ProcessInfo* const process = response.add_processes();
  process->set_own_pid(7);
  process->set_started_monotonic_ns(5);
  recording::NodeRecord node;
  Apply(response, &node);
  ASSERT_EQ(node.processes.size(), 1u);
  EXPECT_TRUE(node.processes[0].became_another_program);
  EXPECT_EQ(node.processes[0].pauses, 2u);
  EXPECT_EQ(node.processes[0].ended_monotonic_ns, 6);
  EXPECT_EQ(node.processes[0].started_monotonic_ns, 5);
}

}  // namespace
}  // namespace syncline::record
