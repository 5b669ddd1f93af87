// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/record_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocksync/builder.h"

namespace syncline::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A node whose processes were there before the window: one that was recorded, and `idle` others.
record::Recorded WithIdle(int idle) {
  auto clocks = clocksync::BuildModel({.nodes = {"n1"}}, {.reference = "n1"});
  record::Recorded recorded{.recording = {}, .clocks = *std::move(clocks)};
  recorded.recording.window.stop_reason = "requested";
  recording::NodeRecord& node = recorded.recording.nodes.emplace_back();
  node.name = "n1";
  node.state = recording::NodeState::kComplete;
  for (int i = 0; i <= idle; ++i) {
    recording::ProcessRecord& process = node.processes.emplace_back();
    process.own_pid = process.pid = 100 + i;
    process.command_line = "train";
    process.has_control_block = process.present_at_prepare = true;
    process.on_monotonic_ns = i == 0 ? 5 : 0;
  }
  return recorded;
}

// What is said of it on stderr.
std::string Said(const record::Recorded& recorded, int* code) {
  std::ostringstream out;
  std::ostringstream err;
  Context context;
  context.out = &out;
  context.err = &err;
  context.quiet = true;
  *code = PrintSummary(context, recorded, "run");
  return err.str();
}

std::string Said(int idle, int* code) { return Said(WithIdle(idle), code); }

TEST(RecordSummary, IdleProcessesAreOneLineAndNoLoss) {
  int code = 0;
  EXPECT_EQ(Said(0, &code), "");
  EXPECT_EQ(code, kDone);
  EXPECT_THAT(Said(1, &code), HasSubstr("pid 101 (train) made no recordable call in the window: it "
                                        "was idle"));
  const std::string many = Said(200, &code);
  EXPECT_EQ(code, kDone);
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 1) << many;
  EXPECT_THAT(many, HasSubstr("pid 104 (train) and 196 more made no recordable call in the window: "
                              "each was idle"));
}

// Its node says that it covers nothing of the window.
TEST(RecordSummary, AProcessWhoseCallsWereLostIsNotCalledIdle) {
  record::Recorded recorded = WithIdle(2);
  recorded.recording.nodes[0].processes[1].lost = 7;
  int code = 0;
  const std::string said = Said(recorded, &code);
  EXPECT_THAT(said, Not(HasSubstr("pid 101")));
  EXPECT_THAT(said, HasSubstr("pid 102 (train) made no recordable call in the window: it was"));
}

TEST(RecordSummary, WhatANodeThatDoesNotAnswerRecordedIsUnknown) {
  record::Recorded recorded = WithIdle(1);
  recording::NodeRecord& node = recorded.recording.nodes[0];
  node.state = recording::NodeState::kLeft;
  const auto row = [&] {
    std::ostringstream out;
    Context context;
    context.out = context.err = &out;
    PrintSummary(context, recorded, "run");
    const std::string text = out.str();
    const size_t begin = text.find("\nn1 ") + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_THAT(row(), ContainsRegex("^n1 +left +unknown +unknown +unknown +unknown +-$"));
  node.stop.gate_end_monotonic_ns = 9;  // it said so, and its data could not be fetched
  EXPECT_THAT(row(), ContainsRegex("1 of 2 +0 +-$"));
}

// What only the recording could say (its skews, its cost) is not said again.
TEST(RecordSummary, AfterAFetchItSaysWhatCameAndWhatIsStillMissing) {
  record::Recorded recorded = WithIdle(1);
  recorded.recording.window.end_timeline_ns = 1'000'000'000;
  recorded.recording.nodes[0].processes[0].events = 10;
  recorded.recording.nodes[0].stop.gate_end_monotonic_ns = 9;
  recorded.recording.nodes[0].fetched = {.bytes = 1000, .complete = true};
  recording::NodeRecord& left = recorded.recording.nodes.emplace_back();
  left.name = "n2";
  left.state = recording::NodeState::kLeft;
  left.failure = "its data could not be fetched: no route";
  recording::Recording before = recorded.recording;
  before.nodes[0].fetched = {};
  const auto print = [&](int* code) {
    std::ostringstream out;
    Context context;
    context.out = context.err = &out;
    *code = PrintFetchSummary(context, before, recorded, "run");
    return out.str();
  };
  int code = 0;
  std::string said = print(&code);
  EXPECT_EQ(code, kIncomplete);
  EXPECT_THAT(said, HasSubstr(": fetched 1000 B from n1\nit is not complete: 1 of 2 nodes; "));
  EXPECT_THAT(said, HasSubstr("n2: left: its data could not be fetched: no route"));
  EXPECT_THAT(said, HasSubstr("`syncline fetch run` collects it"));
  recorded.gone_from = {"n2"};
  EXPECT_THAT(print(&code), Not(HasSubstr("`syncline fetch run`")));
  EXPECT_EQ(code, kIncomplete);
  for (const char* once : {"STARTED", "overhead", "idle"}) {
    EXPECT_THAT(said, Not(HasSubstr(once)));
  }
  left.state = recording::NodeState::kComplete;
  left.fetched.complete = true;
  before = recorded.recording;
  said = print(&code);
  EXPECT_EQ(code, kDone);
  EXPECT_THAT(said, HasSubstr(": nothing was left to fetch: all its data is here\nit is complete"));
}

// A name is cut off in its middle where it is long: what tells parts apart stands in front.
TEST(RecordSummary, ReceiptNamesPartsAndFoldsThem) {
  record::Recorded recorded = WithIdle(6);
  recorded.recording.window.end_timeline_ns = 1'000'000'000;
  recording::NodeRecord& node = recorded.recording.nodes[0];
  node.stop.gate_end_monotonic_ns = 1'000'000'005;
  const char* const parts[] = {
      "", "rank", "child", "child", "loader worker", "loader worker", "launcher"};
  for (size_t i = 0; i < node.processes.size(); ++i) {
    recording::ProcessRecord& process = node.processes[i];
    process.part = parts[i];
    process.rank = process.part.empty() || process.part == "launcher" ? -1 : 3;
    process.on_monotonic_ns = 5;
    process.events = 10;
  }
  std::ostringstream out;
  Context context;
  context.out = &out;
  PrintSummary(context, recorded, "run");
  for (const char* name :
       {"n1 · 100 · train ", "n1 · rank 3 · 101 ", "n1 · launcher · 106 ",
        "n1 · 2 children of rank 3 · train ", "n1 · 2 loader workers of rank 3 "}) {
    EXPECT_THAT(out.str(), HasSubstr(absl::StrCat("\n", name)));
  }
  EXPECT_THAT(out.str(), Not(HasSubstr("not in it")));
  node.fetched.profiles = 2;
  node.fetched.kineto_profiles = 1;
  PrintSummary(context, recorded, "run");
  EXPECT_THAT(out.str(), HasSubstr("\nnot in it: what TensorFlow's profiler and PyTorch's profiler "
                                   "(Kineto) took, which ran too"));
}

}  // namespace
}  // namespace syncline::cli
