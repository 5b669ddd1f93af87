// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/finish.h"

#include <string>

#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"
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
  EXPECT_EQ(record.failure, "could not be stopped: This node has no such recording");
}

}  // namespace
}  // namespace syncline::record
