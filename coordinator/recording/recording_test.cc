// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recording/recording.h"

#include <filesystem>
#include <string>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::recording {
namespace {

using testing::HasSubstr;

Recording Sample() {
  Recording recording;
  recording.recording_id = "20261121-093012-7f3a";
  recording.created_by = {"ann", "laptop", "0.1.0", {"syncline", "record"}};
  recording.epoch_unix_ns = -5;
  recording.window = {5'000'000'000, 0, 5'000'000'123, "requested"};
  recording.reference = {"master-0", 1234567890123456789};
  NodeRecord node;
  node.name = "master-0";
  node.address = "[::1]:7611";
  node.role = "master";
  node.state = NodeState::kIncomplete;
  node.failure = "disk full";
  node.start.requested_monotonic_raw_ns = 17;
  node.start.processes_switched = 3;
  node.stop.gate_end_monotonic_ns = 99;
  node.stop.complete = true;
  node.prepare.session = "syncline-x";
  node.channels.push_back({"syncline", 7, false, 2});
  node.streams.push_back({"ust/uid/0/64-bit/syncline_0", 4096, 1, 0, 0, false});
  ProcessRecord process;
  process.own_pid = 26;
  process.start_ticks = ~uint64_t{0};
  process.command_line = "python train.py";
  process.rank = -1;
  process.sources = {"itt", "net"};
  node.processes.push_back(process);
  node.complaints.push_back({"warning", "no ITT process", "start it with `syncline run`", 12});
  node.fetched = {4096, true, 2};
  recording.nodes.push_back(node);
  return recording;
}

TEST(Recording, RoundTripsThroughJson) {
  const std::string text = FormatRecording(Sample());
  const auto read = ParseRecording(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatRecording(*read), text);
  EXPECT_EQ(read->reference.zero_monotonic_raw_ns, 1234567890123456789);
  ASSERT_EQ(read->nodes.size(), 1u);
  const NodeRecord& node = read->nodes[0];
  EXPECT_EQ(node.state, NodeState::kIncomplete);
  EXPECT_EQ(node.start.requested_monotonic_raw_ns, 17);
  EXPECT_EQ(node.stop.gate_end_monotonic_ns, 99);
  EXPECT_EQ(node.processes[0].start_ticks, ~uint64_t{0});
  EXPECT_EQ(node.processes[0].sources, (std::vector<std::string>{"itt", "net"}));
  EXPECT_FALSE(node.channels[0].discarded_events_valid);
}

TEST(Recording, UnknownKeysAreIgnoredAndMissingOnesKeepTheirDefaults) {
  const auto read = ParseRecording(
      R"({"format_version": 1, "recording_id": "r", "later": {"x": 1}, "nodes": [{"name": "a"}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->nodes[0].state, NodeState::kMissing);
}

TEST(Recording, ErrorsNameTheKey) {
  const auto message = [](const std::string& text) {
    const auto read = ParseRecording(text);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(read.status().message());
  };
  EXPECT_THAT(message("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(message("{"), HasSubstr("JSON object"));
  EXPECT_THAT(message(R"({"recording_id": "r"})"), HasSubstr("format_version"));
  EXPECT_THAT(message(R"({"format_version": 1})"), HasSubstr("recording_id"));
  const std::string head = R"({"format_version": 1, "recording_id": "r", "nodes": )";
  EXPECT_THAT(message(head + "3}"), HasSubstr("\"nodes\" is not a list"));
  EXPECT_THAT(message(head + R"([{"name": "a"}, {"name": 7}]})"), HasSubstr("nodes[1].name"));
  EXPECT_THAT(message(head + R"([{"name": "a", "start": {"processes_switched": -1}}]})"),
              HasSubstr("nodes[0].start.processes_switched"));
  EXPECT_THAT(message(head + R"([{"name": "a", "processes": [{"rank": 3000000000}]}]})"),
              HasSubstr("rank"));
  EXPECT_THAT(message(head + R"([{"name": "a", "state": "fine"}]})"), HasSubstr("state"));
  EXPECT_THAT(message(head + R"([{"name": "a"}, {"name": "a"}]})"), HasSubstr("two nodes"));
  EXPECT_THAT(message(head + R"([{"name": "../a"}]})"), HasSubstr("cannot be a node's name"));
}

TEST(Recording, AnotherVersionIsNoDamage) {
  const auto read = ParseRecording(R"({"format_version": 2})");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("reads 1"));
}

TEST(Recording, TextThatIsNotUtf8IsReplacedNotRefused) {
  Recording recording = Sample();
  recording.nodes[0].processes[0].command_line = "python \xff.py";
  EXPECT_TRUE(ParseRecording(FormatRecording(recording)).ok());
}

TEST(Recording, NodeNamesAreSafeAsDirectories) {
  EXPECT_TRUE(CheckNodeName("gpu-01.rack_2").ok());
  for (const char* bad : {"", ".", "..", "-x", "a/b", "a b", "coordinator", "ä"}) {
    EXPECT_FALSE(CheckNodeName(bad).ok()) << bad;
  }
  EXPECT_FALSE(CheckNodeName(std::string(65, 'a')).ok());
}

TEST(Recording, ADirectoryThatIsNoRecordingIsSaid) {
  const auto read = ReadRecording(testing::TempDir() + "/syncline-no-recording");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("is not a recording"));
}

TEST(Recording, OneWithoutItsJsonIsNamedAsThat) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / "syncline-headless-recording";
  ASSERT_TRUE(MakeDirectories(directory / "nodes/a/trace").ok());
  const auto read = ReadRecording(directory);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.status().message()),
              testing::AllOf(HasSubstr("a recording without recording.json: nodes/ is there"),
                             HasSubstr("syncline merge " + (directory / "nodes").string())));
  std::filesystem::remove_all(directory);
}

TEST(Recording, ADamagedOneIsNotTheCallersMistake) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / "syncline-damaged-recording";
  ASSERT_TRUE(MakeDirectories(directory).ok());
  ASSERT_TRUE(WriteFileAtomically(Layout(directory).RecordingJson(), "{ half").ok());
  const auto read = ReadRecording(directory);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("is damaged"));
  std::filesystem::remove_all(directory);
}

// A window, and processes that were there before.
NodeRecord WithProcesses(size_t count) {
  NodeRecord node;
  node.start.requested_monotonic_raw_ns = 1000;
  node.stop.requested_monotonic_raw_ns = 2000;
  node.processes.resize(count);
  for (ProcessRecord& process : node.processes) process.present_at_prepare = true;
  return node;
}

TEST(MissedWindowTest, AnIdleProcessBesideOthersMissedNothingAStoppedOneDid) {
  NodeRecord node = WithProcesses(3);
  for (const ProcessRecord& process : node.processes) EXPECT_TRUE(MissedWindow(node, process));
  node.processes[0].on_monotonic_ns = 1500;
  node.processes[1].stopped = true;
  EXPECT_FALSE(MissedWindow(node, node.processes[0]));
  EXPECT_TRUE(MissedWindow(node, node.processes[1]));
  EXPECT_FALSE(MissedWindow(node, node.processes[2]));
  node.processes[2].lost = 5;  // it called, and the tracer took none of it
  EXPECT_TRUE(MissedWindow(node, node.processes[2]));
}

TEST(MissedWindowTest, OneThatCannotBeRecordedIsNotIdle) {
  NodeRecord node = WithProcesses(2);
  node.processes[0].on_monotonic_ns = 1500;
  node.processes[1].pid = 7;
  node.complaints = {{"warning", "is slow", "", 7, false}};
  EXPECT_FALSE(MissedWindow(node, node.processes[1]));
  node.complaints.push_back({"warning", "can open no more files", "", 7, true});
  EXPECT_TRUE(MissedWindow(node, node.processes[1]));
  EXPECT_EQ(NotRecorded(node, node.processes[1])->what, "can open no more files");
  EXPECT_EQ(NotRecorded(node, node.processes[0]), nullptr);
}

TEST(MissedWindowTest, NoProcessOfAUserWhoIsLeftOutIsIdle) {
  NodeRecord node = WithProcesses(3);
  node.processes[0].on_monotonic_ns = 1500;
  node.processes[1].uid = node.processes[2].uid = 1001;
  node.processes[1].pid = 7;
  node.complaints = {{"warning", "one would be aborted: none of the user is", "", 7, true, 1001}};
  EXPECT_FALSE(MissedWindow(node, node.processes[0]));
  EXPECT_TRUE(MissedWindow(node, node.processes[1]));
  EXPECT_TRUE(MissedWindow(node, node.processes[2]));
}

TEST(LateStartTest, ALittleIsNoLoss) {
  NodeRecord node;
  EXPECT_FALSE(LateStartNs(node).has_value());
  node.start.requested_monotonic_raw_ns = 1'000;
  node.start.gate_begin_monotonic_raw_ns = 200'000'000;
  EXPECT_FALSE(LateStartNs(node).has_value());
  node.start.gate_begin_monotonic_raw_ns = 2'000'001'000;
  EXPECT_EQ(LateStartNs(node), 2'000'000'000);
}

TEST(MissedWindowTest, OneThatCameAndWentIsALossOneThatMadeNoCallIsNone) {
  NodeRecord node;
  node.processes.resize(1);
  ProcessRecord& process = node.processes[0];
  EXPECT_FALSE(MissedWindow(node, process)) << "a program that never made a call";
  process.has_control_block = true;
  EXPECT_TRUE(MissedWindow(node, process));
  EXPECT_TRUE(CameTooLate(node, process));
  process.present_at_prepare = true;
  EXPECT_FALSE(CameTooLate(node, process));
  process.present_at_prepare = false;
  EXPECT_EQ(DescribeBegun(node), "");
  process.on_monotonic_ns = 1500;
  EXPECT_FALSE(CameTooLate(node, process));
  EXPECT_EQ(DescribeBegun(node).substr(0, 42), "1 process started during the window: what ");
}

TEST(CameTooLateTest, OneThatBeganBehindTheWindowsEndDidNot) {
  NodeRecord node;
  node.stop.requested_monotonic_raw_ns = 2'000;
  node.stop.gate_begin_monotonic_raw_ns = node.stop.gate_begin_monotonic_ns = 9'000;
  node.stop.gate_end_monotonic_raw_ns = node.stop.gate_end_monotonic_ns = 9'000;
  ProcessRecord process;
  process.has_control_block = true;
  for (const auto& [started_ns, late] : {std::pair(0, true), {1'999, true}, {2'000, false}}) {
    process.started_monotonic_ns = started_ns;
    EXPECT_EQ(CameTooLate(node, process), late) << started_ns;
  }
}

TEST(EarlyEndTest, IsAgainstWhatWasAskedFor) {
  NodeRecord node;
  node.stop.gate_end_monotonic_raw_ns = 5'000'000'000;
  node.stop.reason = "lease expired";
  EXPECT_FALSE(EarlyEndNs(node).has_value()) << "nobody told it when";
  EXPECT_TRUE(EndedByItself(node));
  node.stop.requested_monotonic_raw_ns = 5'000'000'000;
  EXPECT_FALSE(EarlyEndNs(node).has_value());
  EXPECT_FALSE(EndedByItself(node)) << "it had all of the window by then";
  for (const char* without_agent : {"guard: the agent was dead at the end", "adopted: it was"}) {
    node.stop.reason = without_agent;
    EXPECT_TRUE(EndedByItself(node)) << "nobody saw programs begin";
  }
  node.stop.reason = "lease expired";
  node.stop.requested_monotonic_raw_ns = 7'000'000'000;
  EXPECT_EQ(EarlyEndNs(node), 2'000'000'000);
  EXPECT_TRUE(EndedByItself(node));
}

TEST(NeverStartedTest, ANodeWhoseGateWasNeverMoved) {
  NodeRecord node;
  EXPECT_FALSE(NeverStarted(node)) << "nobody asked it to";
  node.start.requested_monotonic_raw_ns = 1'000;
  EXPECT_TRUE(NeverStarted(node));
  node.stop.gate_begin_monotonic_raw_ns = 2'000;  // it was opened: only the answer was lost
  node.stop.gate_end_monotonic_raw_ns = 2'100;
  EXPECT_FALSE(NeverStarted(node));
  node.stop.gate_begin_monotonic_raw_ns = 800;
  node.stop.gate_end_monotonic_raw_ns = 900;
  EXPECT_TRUE(NeverStarted(node)) << "its agent was dead, and a guard ended the recording";
}

TEST(VolumeTest, WhatNobodyCountedIsUnknown) {
  NodeRecord node;
  EXPECT_FALSE(VolumeOf(node).discarded_events.has_value());
  EXPECT_FALSE(VolumeOf(node).lost_packets.has_value());
  node.channels.push_back({.name = "syncline"});
  EXPECT_EQ(VolumeOf(node).discarded_events, 0u);
  EXPECT_EQ(VolumeOf(node).lost_packets, 0u);
}

TEST(CompleteTest, ARecordingOfNothingIsNotComplete) {
  Recording recording;
  recording.window.stop_reason = "requested";
  recording.nodes.resize(2);
  for (NodeRecord& node : recording.nodes) node.state = NodeState::kComplete;
  recording.nodes[1].processes.resize(1);  // seen through /proc only
  EXPECT_TRUE(NothingToTrace(recording));
  EXPECT_FALSE(IsComplete(recording));
  Recording idle = recording;
  idle.nodes[1].processes[0].has_control_block = true;
  EXPECT_FALSE(NothingToTrace(idle));
  EXPECT_TRUE(IsComplete(idle));
  Recording profiled = recording;
  profiled.nodes[0].fetched.profiles = 1;
  EXPECT_TRUE(IsComplete(profiled));
  Recording other = recording;
  other.extra_events = {"jvm:*"};
  EXPECT_TRUE(IsComplete(other));
  Recording left = recording;
  left.nodes[1].state = NodeState::kLeft;
  EXPECT_FALSE(NothingToTrace(left)) << "nobody knows what lies there";
}

}  // namespace
}  // namespace syncline::recording
