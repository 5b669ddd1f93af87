// SPDX-License-Identifier: Apache-2.0
#include "coordinator/record/recorder.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"
#include "coordinator/record/finish.h"
#include "coordinator/record/translate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::record {
namespace {

using fleet::FakeAgent;
using recording::NodeState;
using testing::HasSubstr;
namespace fs = std::filesystem;

// Remembers what was told.
class Log : public Observer {
 public:
  void OnPhase(std::string_view what) override {
    absl::StrAppend(&text, "phase ", std::string(what), "\n");
  }
  void OnNode(const std::string& node, const v1::DescribeResponse& description) override {
    absl::StrAppend(&text, "node ", node, "\n");
    for (const v1::Complaint& one : description.complaints()) {
      absl::StrAppend(&text, "complaint ", node, ": ", one.what(), "\n");
    }
  }
  void OnNote(std::string_view severity, const std::string& node, std::string_view what,
              std::string_view) override {
    absl::StrAppend(&text, std::string(severity), " ", node, ": ", std::string(what), "\n");
  }
  void OnCounters(int64_t, std::span<const NodeCounters> counters) override {
    for (const NodeCounters& node : counters) events = std::max(events, node.events);
  }
  void OnFetched(const std::string&, uint64_t, uint64_t) override {}
  std::string text;
  uint64_t events = 0;
};

class Record : public testing::Test {
 protected:
  Record()
      : directory_(fs::path(testing::TempDir()) /
                   (std::string("syncline_record_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  void SetUp() override { fs::remove_all(directory_); }
  void TearDown() override { fs::remove_all(directory_); }

  FakeAgent& Add(const std::string& name) {
    auto agent = std::make_unique<FakeAgent>(&clock_);
    FakeAgent& added = *agent;
    added.files = {{"trace/metadata", "m"}, {"agent.log", "log"}};
    members_.push_back({hosts::Node{name, "10.0.0.1"}, std::move(agent)});
    return added;
  }
  absl::StatusOr<Recorded> Run() {
    RecordOptions options;
    options.recording_id = "r1";
    options.directory = directory_;
    options.window_ns = window_ns_;
    options.allow_missing = allow_missing_;
    options.prepare = prepare_;
    options.created_by = {"ann", "laptop", "0.1.0", {}};
    Recorder recorder(&members_, options, &clock_, &interrupts_, &log_);
    return recorder.Run();
  }

  host::FakeClock clock_;
  fs::path directory_;
  std::vector<fleet::Member> members_;
  Interrupts interrupts_;
  Log log_;
  int64_t window_ns_ = 5'000'000'000;
  bool allow_missing_ = false;
  v1::PrepareRequest prepare_;
};

v1::NodeTool Vtune(const std::string& problem = "") {
  v1::NodeTool tool;
  tool.set_name("vtune");
  tool.set_version("2025.0");
  tool.set_problem(problem);
  return tool;
}

TEST_F(Record, VtuneIsAskedOfTheNodesThatHaveIt) {
  FakeAgent& with = Add("with");
  FakeAgent& without = Add("without");
  with.behaviour.tools = {Vtune()};
  prepare_.mutable_vtune()->set_analysis("hotspots");
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(with.last_prepare().vtune().analysis(), "hotspots");
  EXPECT_FALSE(without.last_prepare().has_vtune());
  EXPECT_THAT(log_.text, HasSubstr("warning without: recorded without VTune: VTune was not found"));
  EXPECT_THAT(log_.text, testing::Not(HasSubstr("warning with:")));
  for (const recording::NodeRecord& node : recorded->recording.nodes) {
    EXPECT_EQ(node.state, NodeState::kComplete) << node.name;
  }
}

TEST_F(Record, NothingIsRecordedWhereNoNodeHasVtune) {
  FakeAgent& a = Add("a");
  Add("b").behaviour.tools = {Vtune("it is not root's")};
  prepare_.mutable_vtune()->set_analysis("hotspots");
  const auto recorded = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(recorded.status()));
  EXPECT_THAT(recorded.status().message(), HasSubstr("VTune is usable on no node"));
  EXPECT_THAT(recorded.status().message(), HasSubstr("\n  a (10.0.0.1"));
  EXPECT_THAT(recorded.status().message(), HasSubstr("it is not root's"));
  EXPECT_EQ(a.Count("prepare"), 0);
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(Record, TwoNodesStartAtOneInstantEachInItsOwnClock) {
  FakeAgent& a = Add("a");
  FakeAgent& b = Add("b");
  a.behaviour.clock_offset_ns = 1'000'000'000'000;
  b.behaviour.clock_offset_ns = -500'000'000;
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  const recording::Recording& recording = recorded->recording;
  EXPECT_EQ(recording.reference.node, "a");
  EXPECT_EQ(recording.reference.zero_monotonic_raw_ns, a.last_start().at_monotonic_raw_ns());
  // The probes' round trip is 20 us, so the instants agree within 10 us.
  const int64_t apart = a.last_start().at_monotonic_raw_ns() - b.last_start().at_monotonic_raw_ns();
  EXPECT_NEAR(static_cast<double>(apart), 1'000'500'000'000.0, 10'000.0);
  EXPECT_EQ(recording.window.stop_reason, "requested");
  EXPECT_EQ(recording.window.end_timeline_ns, 5'000'000'000);
  for (const recording::NodeRecord& node : recording.nodes) {
    EXPECT_EQ(node.state, NodeState::kComplete) << node.failure;
    EXPECT_TRUE(fs::exists(recording::Layout(directory_).Trace(node.name) / "metadata"));
  }
  EXPECT_EQ(a.Count("release"), 1);
  EXPECT_TRUE(fs::exists(directory_ / "clocks/coordinator--a.samples"));
  EXPECT_TRUE(fs::exists(directory_ / "clocks/models.json"));
  EXPECT_TRUE(recording::ReadRecording(directory_).ok());
  EXPECT_EQ(log_.events, 1000u);
}

TEST_F(Record, OneThatCannotBePreparedRollsAllBack) {
  FakeAgent& a = Add("a");
  Add("b").behaviour.prepare = absl::ResourceExhaustedError("/dev/shm is full");
  const auto recorded = Run();
  EXPECT_EQ(recorded.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(recorded.status().message()),
              HasSubstr("1 of 2 nodes cannot be prepared"));
  EXPECT_THAT(std::string(recorded.status().message()), HasSubstr("b (10.0.0.1:7611): /dev/shm"));
  EXPECT_THAT(std::string(recorded.status().message()), HasSubstr("--allow-missing"));
  EXPECT_EQ(a.Count("start"), 0);
  EXPECT_EQ(a.Count("release"), 1);
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(Record, WithAllowMissingTheOthersGoOn) {
  Add("a").behaviour.describe = absl::UnavailableError("nothing listens");
  FakeAgent& b = Add("b");
  Add("c").behaviour.prepare = absl::ResourceExhaustedError("full");
  allow_missing_ = true;
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kMissing);
  EXPECT_EQ(recorded->recording.nodes[0].failure, "nothing listens");
  EXPECT_EQ(recorded->recording.nodes[1].state, NodeState::kComplete);
  EXPECT_EQ(recorded->recording.nodes[2].state, NodeState::kMissing);
  EXPECT_EQ(recorded->recording.reference.node, "b");
  EXPECT_EQ(b.Count("stop"), 1);
}

TEST_F(Record, ABlockerIsSaidBeforeAnythingIsCreated) {
  FakeAgent& a = Add("a");
  Add("b").behaviour.blocked = true;
  const auto recorded = Run();
  EXPECT_THAT(std::string(recorded.status().message()), HasSubstr("mount it with size=1g"));
  EXPECT_EQ(a.Count("prepare"), 0);
}

TEST_F(Record, AnAgentOfAnotherProtocolIsNamed) {
  Add("a").behaviour.protocol = "syncline.v7";
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("speaks \"syncline.v7\""));
}

TEST_F(Record, AnotherVersionOfTheSameProtocolIsToldAndRecorded) {
  Add("a").behaviour.version = "0.9.9";
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(log_.text,
              HasSubstr("complaint a: Its agent is version 0.9.9, this program is 0.1.0"));
}

TEST_F(Record, ANodeThatStoppedByItselfIsIncomplete) {
  Add("a");
  FakeAgent& b = Add("b");
  b.behaviour.stop_reason = "disk nearly full: \"/data\" has 3 MiB left";
  b.behaviour.early_end_ns = 2'000'000'000;
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kComplete);
  EXPECT_EQ(recorded->recording.nodes[1].state, NodeState::kIncomplete);
  EXPECT_THAT(DescribeLoss(recorded->recording.nodes[1]),
              HasSubstr("it stopped 2.000 s early: disk nearly full: \"/data\""));
}

// It was ended by its lease, say, when the coordinator was gone: the window was over by then.
TEST_F(Record, ANodeThatStoppedByItselfBehindTheWindowsEndIsComplete) {
  FakeAgent& a = Add("a");
  a.behaviour.stop_reason = "agent shutdown";
  a.behaviour.early_end_ns = -1'000'000'000;
  EXPECT_EQ(Run()->recording.nodes[0].state, NodeState::kComplete);
}

TEST_F(Record, ANodeWhoseAgentWasKilledWhileRecordingIsIncomplete) {
  Add("a").behaviour.stop_reason = "adopted: the agent was killed while recording";
  EXPECT_EQ(Run()->recording.nodes[0].state, NodeState::kIncomplete);
}

TEST_F(Record, AFirstInterruptWhileStoppingLosesNothing) {
  FakeAgent& a = Add("a");
  a.behaviour.on_stop = [this] { interrupts_.Press(); };
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->recording.window.stop_reason, "requested");
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kComplete);
  EXPECT_THAT(log_.text, HasSubstr("once more leaves the data on the nodes"));
}

TEST_F(Record, ASecondInterruptWhileStoppingLeavesTheDataOnTheNodes) {
  FakeAgent& a = Add("a");
  a.behaviour.on_stop = [this] {
    interrupts_.Press();
    interrupts_.Press();
  };
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kLeft);
  EXPECT_EQ(a.Count("release"), 0);
  a.behaviour.on_stop = nullptr;
  const auto resumed = Resume(directory_, members_, &clock_, &interrupts_, &log_);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->recording.nodes[0].state, NodeState::kComplete);
}

// Killed between the first writing of recording.json and the answers to Start.
TEST_F(Record, WhereTWasNeverWrittenTheWindowBeginsWithTheReference) {
  FakeAgent& a = Add("a");
  a.behaviour.has_process = true;
  a.behaviour.on_stop = [this] {
    interrupts_.Press();
    interrupts_.Press();
  };
  ASSERT_TRUE(Run().ok());
  auto known = recording::ReadRecording(directory_);
  ASSERT_TRUE(known.ok()) << known.status();
  known->reference.zero_monotonic_raw_ns = 0;
  known->nodes[0].start = {};
  known->window.end_timeline_ns = 0;
  known->window.stop_reason.clear();
  ASSERT_TRUE(recording::WriteRecording(directory_, *known).ok());
  a.behaviour.on_stop = nullptr;
  const auto resumed = Resume(directory_, members_, &clock_, &interrupts_, &log_);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  const recording::NodeRecord& node = resumed->recording.nodes[0];
  ASSERT_EQ(node.processes.size(), 1u);
  const int64_t began_ns = node.processes[0].on_monotonic_ns;  // the fake's clocks are one
  EXPECT_EQ(resumed->recording.reference.zero_monotonic_raw_ns, began_ns);
  EXPECT_EQ(resumed->recording.window.end_timeline_ns,
            node.stop.gate_end_monotonic_raw_ns - began_ns);
}

TEST_F(Record, ANodeWithoutAClockIsNamed) {
  Add("a").behaviour.clock = absl::UnimplementedError("no such call");
  EXPECT_THAT(std::string(Run().status().message()),
              HasSubstr("clock cannot be read: no such call"));
}

TEST_F(Record, OneThatDiesWhileRecordingIsLeftAndTheOtherIsWhole) {
  Add("a");
  Add("b").behaviour.dies_while_recording = true;
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kComplete);
  EXPECT_EQ(recorded->recording.nodes[1].state, NodeState::kLeft);
  EXPECT_THAT(recorded->recording.nodes[1].failure, HasSubstr("could not be stopped"));
  EXPECT_THAT(log_.text, HasSubstr("warning b: does not answer while recording"));
}

TEST_F(Record, WhatWasLeftIsFetchedLater) {
  Add("a");
  FakeAgent& b = Add("b");
  b.behaviour.dies_while_recording = true;
  ASSERT_TRUE(Run().ok());
  b.behaviour.dies_while_recording = false;
  const auto resumed = Resume(directory_, members_, &clock_, &interrupts_, &log_);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->recording.nodes[1].state, NodeState::kComplete);
  EXPECT_EQ(b.Count("release"), 1);
  EXPECT_TRUE(fs::exists(directory_ / "nodes/b/trace/metadata"));
}

TEST_F(Record, LossMakesANodeIncomplete) {
  Add("a").behaviour.discarded_events = 7;
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok());
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kIncomplete);
  EXPECT_EQ(recorded->recording.nodes[0].channels[0].discarded_events, 7u);
}

TEST_F(Record, AProcessThatMissedTheWindowMakesItsNodeIncomplete) {
  Add("covers").behaviour.has_process = true;
  FakeAgent& late = Add("late");  // its first call came when the window was over
  late.behaviour.has_process = true;
  late.behaviour.on_after_start_ns = window_ns_ + 500;
  FakeAgent& silent = Add("silent");
  silent.behaviour.has_process = true;
  silent.behaviour.on_after_start_ns = 0;
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kComplete);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const recording::NodeRecord& node = recorded->recording.nodes[i];
    EXPECT_EQ(node.state, NodeState::kIncomplete) << node.name;
    EXPECT_TRUE(node.processes[0].present_at_prepare);
    EXPECT_THAT(DescribeLoss(node), HasSubstr("pid 7 (python train.py) covers nothing of the"));
  }
}

TEST_F(Record, WhatCannotBeFetchedIsNotReleased) {
  FakeAgent& a = Add("a");
  a.behaviour.lie_about_hash = true;
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok());
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kLeft);
  EXPECT_EQ(a.Count("release"), 0);
}

TEST_F(Record, WhatIsNotWhatTheNodeCountedIsNotReleased) {
  FakeAgent& a = Add("a");  // its list of files was empty where events are
  a.files = {{"node.json", "{}"}};
  a.behaviour.change_stopped = [](v1::StopResponse* response) {
    response->add_coverage()->set_events_count(4100);
  };
  FakeAgent& b = Add("b");
  b.files = {{"trace/metadata", "m"}, {"trace/syncline_0", "1234"}};
  b.behaviour.change_stopped = [](v1::StopResponse* response) {
    v1::StreamResult* const stream = response->add_streams();
    stream->set_path("syncline_0");
    stream->set_bytes(4096);
    stream->set_closed(true);
  };
  FakeAgent& c = Add("c");
  c.files = {{"trace/metadata", "m"}, {"trace/syncline_0", std::string(4096, 's')}};
  c.behaviour.change_stopped = [&](v1::StopResponse* response) {
    a.behaviour.change_stopped(response);
    b.behaviour.change_stopped(response);
  };
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  const auto& nodes = recorded->recording.nodes;
  EXPECT_EQ(nodes[0].state, NodeState::kLeft);
  EXPECT_THAT(nodes[0].failure, HasSubstr("counted 4100 events, and none came"));
  EXPECT_EQ(nodes[1].state, NodeState::kLeft);
  EXPECT_THAT(nodes[1].failure, HasSubstr("4 of 4096 bytes came"));
  EXPECT_EQ(nodes[2].state, NodeState::kComplete) << nodes[2].failure;
  EXPECT_EQ(a.Count("release") + b.Count("release"), 0);
  EXPECT_EQ(c.Count("release"), 1);
  // What was wrong may pass.
  a.files["trace/syncline_0"] = "s";
  const auto resumed = Resume(directory_, members_, &clock_, &interrupts_, &log_);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(a.Count("release"), 1);
  EXPECT_EQ(b.Count("release"), 0);
}

TEST_F(Record, AnInterruptStopsEarlyAndKeepsEverything) {
  FakeAgent& a = Add("a");
  window_ns_ = 0;
  bool pressed = false;
  clock_.on_wait = [&] {
    if (a.Count("status") > 3 && !std::exchange(pressed, true)) interrupts_.Press();
  };
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->recording.window.stop_reason, "interrupted");
  EXPECT_GT(recorded->recording.window.end_timeline_ns, 0);
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kComplete);
}

TEST_F(Record, TwoInterruptsAtOnceStillStopTheNodes) {
  FakeAgent& a = Add("a");
  window_ns_ = 0;
  bool pressed = false;
  clock_.on_wait = [&] {
    if (a.Count("status") <= 3 || std::exchange(pressed, true)) return;
    interrupts_.Press();
    interrupts_.Press();
  };
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->recording.nodes[0].state, NodeState::kLeft);
  EXPECT_EQ(a.Count("stop"), 1);
  EXPECT_THAT(log_.text, HasSubstr("error a: interrupted before it said that it stopped"));
  EXPECT_THAT(log_.text, Not(HasSubstr("could not be stopped")));
}

TEST_F(Record, AnInterruptBeforeTheStartLeavesNothing) {
  FakeAgent& a = Add("a");
  a.behaviour.on_prepare = [this] { interrupts_.Press(); };
  const auto recorded = Run();
  EXPECT_EQ(recorded.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(a.Count("start"), 0);
  EXPECT_EQ(a.Count("release"), 1);
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(Record, AForeignDirectoryIsRefused) {
  FakeAgent& a = Add("a");
  ASSERT_TRUE(MakeDirectories(directory_).ok());
  ASSERT_TRUE(WriteFileAtomically(directory_ / "thesis.tex", "x").ok());
  const auto recorded = Run();
  EXPECT_EQ(recorded.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(fs::exists(directory_ / "thesis.tex"));
  EXPECT_EQ(a.Count("describe"), 0);
}

TEST_F(Record, AThousandNodes) {
  for (int i = 0; i < 1000; ++i) {
    Add(absl::StrCat("n", i)).behaviour.clock_offset_ns = int64_t{i} * 1'000'003;
  }
  static_cast<FakeAgent*>(members_[17].client.get())->behaviour.start =
      absl::UnavailableError("gone");
  const auto recorded = Run();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(recorded->recording.nodes[i].state,
              i == 17 ? NodeState::kIncomplete : NodeState::kComplete)
        << i;
  }
}

}  // namespace
}  // namespace syncline::record
