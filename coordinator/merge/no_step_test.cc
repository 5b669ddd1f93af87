// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/no_step.h"

#include <gtest/gtest.h>

namespace syncline::merge {
namespace {

using analysis::why::NoStep;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kEndMs = 50'000;  // of the window, in each node's trace clock

class NoStepTest : public testing::Test {
 protected:
  NoStepTest() {
    recording_.window.end_timeline_ns = 10'000 * kMs;
    for (int rank = 0; rank < 2; ++rank) {
      recording::NodeRecord& node = recording_.nodes.emplace_back();
      node.name = rank == 0 ? "a" : "b";
      node.state = recording::NodeState::kComplete;
      recording::ProcessRecord& process = node.processes.emplace_back();
      process.own_pid = 10 + rank;
      process.rank = rank;
      process.job = "night";
      process.incarnation = "3f2a";
      process.part = "rank";
      process.sources = {"itt", "python"};
    }
  }
  recording::ProcessRecord& Process(size_t rank) { return recording_.nodes[rank].processes[0]; }
  // What it recorded, and how long before the window's end the last call ended.
  analysis::why::CollectedProcess& Record(uint32_t rank, uint64_t calls, int64_t quiet_ms) {
    analysis::why::CollectedProcess& process = collected_.processes.emplace_back();
    process.node = rank;
    process.key.pid = static_cast<int32_t>(10 + rank);
    process.calls = calls;
    process.last_call_ns = (kEndMs - quiet_ms) * kMs;
    return process;
  }
  std::optional<NoStep> Find(std::optional<std::string> job = std::nullopt) const {
    return NoStepOf(
        {&recording_, &collected_, {"a", "b"}, {kEndMs * kMs, kEndMs * kMs}, std::move(job)});
  }

  recording::Recording recording_;
  analysis::why::Collected collected_;
};

TEST_F(NoStepTest, RanksThatRecordedNothingWereQuietAllTheWindow) {
  const auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->certain);
  ASSERT_EQ(found->ranks.size(), 2u);
  EXPECT_EQ(found->ranks[1].node, "b");
  EXPECT_EQ(found->ranks[1].pid, 11);
  EXPECT_EQ(found->ranks[1].calls, 0u);
  EXPECT_EQ(found->quiet_ns(), 10'000 * kMs);
}

TEST_F(NoStepTest, CallsWithoutAStepAreMovement) {
  Record(1, 5'310, 20).ended_launches = 3;
  const auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->ranks[1].calls, 5'310u);
  EXPECT_EQ(found->ranks[1].collectives, 3u);
  EXPECT_EQ(found->quiet_ns(), 20 * kMs);
}

TEST_F(NoStepTest, WhereStepsEndItIsNotAsked) {
  Record(0, 100, 30).ended_steps = 1;
  EXPECT_FALSE(Find().has_value());
}

TEST_F(NoStepTest, AJobThatStoppedInTheWindowIs) {
  Record(0, 100, 7'000).ended_steps = 9;
  Record(1, 100, 6'900).ended_steps = 9;
  const auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->steps, 18u);
  EXPECT_EQ(found->quiet_ns(), 6'900 * kMs);
}

TEST_F(NoStepTest, AJobThatEndedDoesNotStandStill) {
  Record(0, 100, 7'000).ended_steps = 9;
  Process(0).ended_monotonic_ns = 44'000 * kMs;
  const auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->ranks[0].ended);
  EXPECT_FALSE(found->ranks[1].ended);
  Process(1).ended_monotonic_ns = 44'000 * kMs;
  EXPECT_FALSE(Find().has_value());
}

TEST_F(NoStepTest, OnlyRanksWithTheHookAreAsked) {
  Process(0).sources = {"itt"};
  Process(1).part = "loader worker";
  EXPECT_FALSE(MayHaveNoStep(recording_));
  EXPECT_FALSE(Find().has_value());
  Process(1).part = "";
  EXPECT_TRUE(MayHaveNoStep(recording_));
  EXPECT_EQ(Find()->ranks.size(), 1u);
}

TEST_F(NoStepTest, ByJob) {
  Process(1).job = "morning";
  Record(0, 100, 30).ended_steps = 4;
  EXPECT_FALSE(Find().has_value());
  EXPECT_FALSE(Find("night").has_value());
  EXPECT_EQ(Find("morning")->ranks.size(), 1u);
  EXPECT_EQ(Find("morning/3f2a")->ranks.size(), 1u);
  EXPECT_FALSE(Find("noon").has_value());
}

TEST_F(NoStepTest, OneOfSeveralJobsMayStandStill) {
  for (const size_t node : {0, 1}) {
    recording::ProcessRecord other = Process(node);
    other.own_pid = 50;
    other.job = "morning";
    recording_.nodes[node].processes.push_back(other);
  }
  Record(0, 100, 30).ended_steps = 4;
  const auto jobs = [&] {
    return JobsThatStandStill(
        {&recording_, &collected_, {"a", "b"}, {kEndMs * kMs, kEndMs * kMs}, std::nullopt});
  };
  EXPECT_FALSE(Find().has_value());
  EXPECT_EQ(jobs(), std::vector<std::string>{"morning"});
  recording_.nodes[1].processes[1].lost = 1;
  EXPECT_TRUE(jobs().empty()) << "it is not certain";
}

TEST_F(NoStepTest, WhereSomethingIsMissingItIsNotCertain) {
  Process(1).lost = 4;
  EXPECT_FALSE(Find()->certain);
  EXPECT_EQ(Find()->ranks[1].lost, 4u);
  Process(1).lost = 0;
  recording_.nodes[0].state = recording::NodeState::kMissing;
  EXPECT_FALSE(Find()->certain);
}

}  // namespace
}  // namespace syncline::merge
