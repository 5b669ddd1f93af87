// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/finish.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"
#include "coordinator/record/interrupts.h"
#include "coordinator/record/recorder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::record {
namespace {

using recording::NodeState;

class Silent : public Observer {
 public:
  void OnPhase(std::string_view) override {}
  void OnNode(const std::string&, const v1::DescribeResponse&) override {}
  void OnNote(std::string_view, const std::string&, std::string_view, std::string_view) override {}
  void OnCounters(int64_t, std::span<const NodeCounters>) override {}
  void OnFetched(const std::string&, uint64_t, uint64_t) override {}
};

// A node that no longer has the recording, as StopNode() leaves its record.
recording::NodeRecord StopForgotten(const absl::Status& start, const std::string& failure) {
  host::FakeClock clock;
  fleet::FakeAgent agent(&clock);
  agent.behaviour.stop = absl::NotFoundError("This node has no such recording");
  recording::NodeRecord record;
  record.name = "a";
  record.state = NodeState::kLeft;
  record.failure = failure;
  NodeProgress node = {.client = &agent, .record = &record};
  node.failure = start;
  Silent observer;
  Reporter reporter(&observer);
  StopNode({}, fleet::AgentClient::Timeout{1'000}, {}, &clock, &reporter, &node);
  EXPECT_FALSE(node.stopped);
  EXPECT_EQ(node.gone, start.ok());
  return record;
}

TEST(StopNode, WhereTheStartFailedAndItsLeaseHasEndedItNothingIsLeftToFetch) {
  const recording::NodeRecord record =
      StopForgotten(absl::UnavailableError("cut"), "did not start: cut");
  EXPECT_EQ(record.state, NodeState::kMissing);
  EXPECT_EQ(record.failure, "did not start: cut");
}

TEST(StopNode, AnotherThatDoesNotKnowTheRecordingMayHaveItsDataYet) {
  const recording::NodeRecord record = StopForgotten(absl::OkStatus(), "");
  EXPECT_EQ(record.state, NodeState::kLeft);
  EXPECT_EQ(record.failure, "nothing to fetch: This node has no such recording");
}

// One agent deleted it (a release, the retention): the other node is whole, and nobody is told to
// wait for a lease. One that knows it may answer at that address later.
TEST(Resume, WhereANodeHasItNoMoreNothingIsLeftToFetchThere) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / absl::StrCat("gone", ::getpid());
  std::filesystem::create_directories(directory);
  host::FakeClock clock;
  std::vector<fleet::Member> members;
  std::vector<fleet::FakeAgent*> agents;
  recording::Recording before{.recording_id = "r1"};
  for (const char* name : {"a", "b"}) {
    auto agent = std::make_unique<fleet::FakeAgent>(&clock);
    agent->files = {{"trace/metadata", "m"}};
    agents.push_back(agent.get());
    members.push_back({hosts::Node{name, "10.0.0.1"}, std::move(agent)});
    recording::NodeRecord& node = before.nodes.emplace_back();
    node.name = name;
    node.state = NodeState::kLeft;
  }
  before.reference.node = "a";
  before.window = {.end_timeline_ns = 1'000'000'000, .stop_reason = "requested"};
  ASSERT_TRUE(recording::WriteRecording(directory, before).ok());
  agents[1]->behaviour.stop = absl::NotFoundError("This node has no recording \"r1\"");
  Interrupts interrupts;
  Silent observer;
  const auto resumed = Resume(directory, members, &clock, &interrupts, &observer);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_TRUE(resumed->recording.nodes[0].fetched.complete);
  EXPECT_EQ(resumed->recording.nodes[1].state, NodeState::kLeft);
  EXPECT_EQ(resumed->recording.nodes[1].failure,
            "nothing to fetch: This node has no recording \"r1\"");
  EXPECT_THAT(resumed->gone_from, testing::ElementsAre("b"));
  EXPECT_EQ(agents[1]->Count("fetch") + agents[1]->Count("release"), 0);
  agents[1]->behaviour.stop = absl::OkStatus();
  const auto again = Resume(directory, members, &clock, &interrupts, &observer);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->recording.nodes[1].fetched.complete);
  EXPECT_THAT(again->gone_from, testing::IsEmpty());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace syncline::record
