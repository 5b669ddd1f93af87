// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/files.h"
#include "coordinator/merge/job_test.h"
#include "coordinator/merge/test_recording.h"
#include "coordinator/recording/recording.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::merge {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kWallErrorNs;
using ::testing::Not;
using timeline::testing::kJobStepNs;
using timeline::testing::kJobSteps;

class MergeTest : public testing::JobTest {
 protected:
  void TearDown() override {
    unsetenv("SYNCLINE_MUTANT");
    JobTest::TearDown();
  }

  static MergeOptions Of(const std::filesystem::path& run) {
    MergeOptions options;
    options.input.inputs = {run.string()};
    return options;
  }
  static std::string Read(const std::filesystem::path& path) {
    const auto text = ReadFile(path);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *text : "";
  }

  // What is wrong with a merge of run_, by everything that the test knows of it.
  std::vector<std::string> Problems() {
    std::vector<std::string> problems;
    const auto first = Merge(Of(run_));
    if (!first.ok()) return {std::string(first.status().message())};
    const analysis::Report& report = first->report;
    const bool groups =
        report.groups.size() == 1 && report.groups[0].inside == static_cast<uint64_t>(kJobSteps);
    if (!groups) problems.emplace_back("groups are not inside their steps");
    const std::string timeline = Read(run_ / "out" / "timeline.perfetto-trace");
    // Whole command lines stand on the processes' own tracks only; short names are in holes too.
    for (const char* process : {"/usr/bin/python master.py", "/usr/bin/python worker.py"}) {
      if (timeline.find(process) == std::string::npos)
        problems.emplace_back("a process is missing");
    }
    testing::WriteJob("second", kWallErrorNs, run_);
    if (!Merge(Of(run_)).ok()) problems.emplace_back("cannot merge again");
    if (Read(run_ / "out" / "report.json").find("\"second\"") == std::string::npos) {
      problems.emplace_back("the output is yesterday's");
    }
    return problems;
  }
};

TEST_F(MergeTest, ARecordingFromBytesToBytes) {
  const auto result = Merge(Of(run_));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->incomplete);
  EXPECT_THAT(result->complaints, IsEmpty());
  EXPECT_EQ(result->report.groups.at(0).moved_by_wall_clock, static_cast<uint64_t>(kJobSteps));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(MergeTest, MutantsAreNoticed) {
  for (const char* mutant : {"wallclock", "swap-nodes", "keys-without-node", "stale"}) {
    std::filesystem::remove_all(run_);
    testing::WriteJob("first", kWallErrorNs, run_);
    setenv("SYNCLINE_MUTANT", mutant, 1);
    EXPECT_THAT(Problems(), Not(IsEmpty())) << mutant;
  }
}

TEST_F(MergeTest, TheSameBytesAgainAndFromElsewhere) {
  ASSERT_TRUE(Merge(Of(run_)).ok());
  const std::filesystem::path copy = root_ / "deep" / "er" / "copy";
  std::filesystem::create_directories(copy.parent_path());
  std::filesystem::copy(run_, copy, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(copy / "out");
  // A damaged trace too: what is said about it must not name where it lies.
  for (const auto& run : {run_, copy}) {
    std::ofstream(run / "nodes/worker-0/trace/ust/uid/0/64-bit/metadata") << "not a trace";
    const auto merged = Merge(Of(run));
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_TRUE(merged->incomplete);
  }
  for (const char* name : {"timeline.perfetto-trace", "report.json"}) {
    EXPECT_EQ(Read(run_ / "out" / name), Read(copy / "out" / name)) << name;
  }
}

TEST_F(MergeTest, AnUnreadableTraceIsNamedAndLeftOut) {
  std::filesystem::remove_all(run_ / "nodes/worker-0/trace");
  std::filesystem::create_directories(run_ / "nodes/worker-0/trace");
  const auto result = Merge(Of(run_));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->incomplete);
  EXPECT_THAT(result->complaints, Contains(HasSubstr("worker-0")));
  EXPECT_EQ(result->report.steps.size(), 1u);  // the master is merged
}

TEST_F(MergeTest, AStreamThatIsGoneSinceItWasFetchedIsNamed) {
  absl::StatusOr<recording::Recording> whole = recording::ReadRecording(run_);
  ASSERT_TRUE(whole.ok()) << whole.status();
  recording::NodeRecord& node = whole->nodes.at(0);
  node.fetched.complete = true;
  node.streams.push_back({.path = "ust/uid/0/64-bit/syncline_7", .bytes = 8192});
  ASSERT_TRUE(recording::WriteRecording(run_, *whole).ok());
  const auto result = Merge(Of(run_));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->incomplete);
  EXPECT_THAT(result->complaints, Contains(HasSubstr("syncline_7 is gone")));
}

TEST_F(MergeTest, AForeignDirectoryIsNotTouched) {
  const std::filesystem::path out = root_ / "precious";
  std::filesystem::create_directories(out);
  std::ofstream(out / "thesis.tex") << "years";
  MergeOptions options = Of(run_);
  options.out_dir = out;
  EXPECT_EQ(Merge(options).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Read(out / "thesis.tex"), "years");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_), {}), 2);  // no leftovers
}

TEST_F(MergeTest, TraceDirectoriesWithoutARecording) {
  const std::string trace = run_ / "nodes/worker-0/trace";
  MergeOptions options;
  options.input.inputs = {"a=" + trace, "b=" + trace};
  EXPECT_FALSE(Merge(options).ok());  // where to?
  options.out_dir = root_ / "twins";
  const auto result = Merge(options);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->report.nodes.size(), 2u);
  EXPECT_EQ(result->report.nodes[0].events, result->report.nodes[1].events);
  EXPECT_THAT(Read(options.out_dir / "timeline.perfetto-trace"),
              AllOf(HasSubstr("a · pid 10"), HasSubstr("b · pid 10")));
}

TEST_F(MergeTest, WrongUseIsExplained) {
  MergeOptions options = Of(run_);
  options.input.nodes = {"nobody"};
  EXPECT_THAT(std::string(Merge(options).status().message()),
              AllOf(HasSubstr("nobody"), HasSubstr("master-0")));
  options = Of(run_);
  options.formats = {"vhs"};
  EXPECT_EQ(Merge(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = Of(run_ / "nowhere");
  EXPECT_EQ(Merge(options).status().code(), absl::StatusCode::kNotFound);
  options = Of(run_ / "clocks");
  EXPECT_EQ(Merge(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MergeTest, EventsInTimelineOrderAndAPicture) {
  std::ostringstream out;
  const auto events = PrintEvents({Of(run_).input, EventFormat::kJsonLines, {}}, &out);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_GT(events->events, 240u);
  std::istringstream lines(out.str());
  int64_t last_ns = INT64_MIN;
  for (std::string line; std::getline(lines, line);) {
    const int64_t time_ns = atoll(line.c_str() + line.find(':') + 1);
    EXPECT_GE(time_ns, last_ns);
    last_ns = time_ns;
  }
  ReportOptions options;
  options.input = Of(run_).input;
  const auto report = MakeReport(options);
  ASSERT_TRUE(report.ok()) << report.status();
  const auto picture = MakePicture(options, *report);
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_THAT(*picture, AllOf(HasSubstr("Two steps"), HasSubstr("convolution")));
}

TEST_F(MergeTest, WhatNodesCountedOfClockProbesIsInTheReceipt) {
  const std::filesystem::path path = recording::Layout(run_).Probes();
  const auto report = [&] {
    ReportOptions options;
    options.input = Of(run_).input;
    auto made = MakeReport(options);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : analysis::Report{};
  };
  const auto report_of = [&](const char* text) {
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return report();
  };
  const analysis::Report counted = report_of(
      R"({"format_version": 1, "edges": [], "nodes": [{"node": "nobody", "samples_count": 1},
          {"node": "worker-0", "cpu_ns": 5, "packets_sent_count": 7, "samples_count": 0}]})");
  ASSERT_EQ(counted.receipt.size(), 2u);
  EXPECT_FALSE(counted.receipt[0].probes.has_value());
  EXPECT_EQ(counted.receipt[1].probes, (analysis::ProbeCounts{{"packets_sent_count", 7}}));
  const analysis::Report damaged = report_of("{");
  EXPECT_FALSE(damaged.receipt[1].probes.has_value());
  EXPECT_THAT(damaged.notes, Contains(HasSubstr("is damaged")));
  std::filesystem::remove(path);
  EXPECT_THAT(report().notes, Not(Contains(HasSubstr("probes.json"))));
  std::filesystem::create_directory(path);
  EXPECT_THAT(report().notes, Contains(HasSubstr("probes.json\" cannot be read")));
}

TEST_F(MergeTest, CutsToAnInterval) {
  MergeOptions options = Of(run_);
  options.range.from = TimelineTime{50'000'000};
  options.range.to = TimelineTime{90'000'000};
  const auto result = Merge(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.steps.at(0).steps.size(), 4u);
}

TEST_F(MergeTest, AWindowThatReachesBeyondIsCutAndTheReportAgrees) {
  constexpr int64_t kEndNs = kJobSteps * kJobStepNs;
  const auto whole = Merge(Of(run_));
  ASSERT_TRUE(whole.ok()) << whole.status();
  MergeOptions options = Of(run_);
  options.range.from = TimelineTime{kEndNs / 2};
  options.range.to = TimelineTime{2 * kEndNs};
  const auto half = Merge(options);
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_FALSE(half->incomplete);
  EXPECT_THAT(half->complaints, ElementsAre(HasSubstr("--to is outside")));
  EXPECT_EQ(half->report.window_begin.ns, kEndNs / 2);
  EXPECT_EQ(half->report.window_end.ns, kEndNs);
  options.range.from.reset();
  options.range.to = TimelineTime{kEndNs / 2};
  const auto rest = Merge(options);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_THAT(rest->complaints, IsEmpty());
  ASSERT_EQ(rest->report.nodes.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto& node = half->report.nodes[i];
    // The whole may have a few events beyond the window's ends.
    EXPECT_LE(node.events + rest->report.nodes[i].events, whole->report.nodes[i].events);
    EXPECT_GE(node.events + rest->report.nodes[i].events + 10, whole->report.nodes[i].events);
    EXPECT_GT(node.events, 0u);
    EXPECT_LE(node.processes.at(0).covered_ns, kEndNs / 2);
    EXPECT_EQ(node.processes.at(0).events, node.events);
    EXPECT_FALSE(node.processes.at(0).counted_events.has_value());
  }
}

TEST_F(MergeTest, CountsOnlyWhatLiesInTheWindow) {
  // The gates closed late: what came after the window's end is in the traces, and on the timeline.
  auto recording = recording::ReadRecording(run_);
  ASSERT_TRUE(recording.ok()) << recording.status();
  recording->window.end_timeline_ns = 5 * timeline::testing::kJobStepNs + 3'000'000;
  ASSERT_TRUE(recording::WriteRecording(run_, *recording).ok());
  const auto merged = Merge(Of(run_));
  ASSERT_TRUE(merged.ok()) << merged.status();
  ReportOptions options;
  options.input.inputs = {run_.string()};
  const auto reported = MakeReport(options);
  ASSERT_TRUE(reported.ok()) << reported.status();
  for (const analysis::Report& report : {merged->report, *reported}) {
    ASSERT_EQ(report.steps.size(), 1u);
    EXPECT_EQ(report.steps[0].steps.size(), 5u);
    for (const analysis::TaskTotal& task : report.tasks) {
      if (task.name != "train_step") continue;
      EXPECT_EQ(task.count, 5u);
      EXPECT_EQ(task.clipped, 1u);  // the sixth straddles the end
    }
  }
}

TEST_F(MergeTest, AProcessThatWasThereAndCoversNothingOfTheWindowIsALoss) {
  auto recording = recording::ReadRecording(run_);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_FALSE(MakeReport({{{run_.string()}}})->incomplete);
  // Before its first event: a window of which nothing was covered.
  recording->window = {10'000, 10'000, 20'000, "requested"};
  recording->nodes[0].processes[0].present_at_prepare = true;
  recording->nodes[0].processes[0].on_monotonic_ns = 0;
  ASSERT_TRUE(recording::WriteRecording(run_, *recording).ok());
  const auto report = MakeReport({{{run_.string()}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->incomplete);
  EXPECT_TRUE(report->tasks.empty());
  ASSERT_EQ(report->nodes[0].losses.size(), 1u);
  EXPECT_EQ(report->nodes[0].losses[0].reason, LossReason::kNotCovered);
  EXPECT_EQ(report->nodes[0].losses[0].begin.ns, 10'000);
  EXPECT_EQ(report->nodes[0].losses[0].end.ns, 20'000);
  EXPECT_TRUE(report->nodes[1].losses.empty()) << "nobody expected that one";
}

TEST_F(MergeTest, AGateThatWasClosedBeforeTheWindowsEndIsALossUpToIt) {
  auto recording = recording::ReadRecording(run_);
  ASSERT_TRUE(recording.ok()) << recording.status();
  const int64_t end_ns = recording->window.end_timeline_ns;
  recording::NodeRecord& node = recording->nodes[0];
  // Its clock, by what the gates say of one instant.
  node.start.gate_begin_monotonic_ns = timeline::testing::kJobZeroNs;
  node.stop.gate_end_monotonic_ns = timeline::testing::kJobZeroNs + end_ns - 50'000'000;
  node.stop.reason = "disk nearly full";
  node.stop.complete = true;
  ASSERT_TRUE(recording::WriteRecording(run_, *recording).ok());
  const auto report = MakeReport({{{run_.string()}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->incomplete);
  ASSERT_EQ(report->nodes[0].losses.size(), 1u);
  const timeline::LossTotal& loss = report->nodes[0].losses[0];
  EXPECT_EQ(loss.reason, LossReason::kNotCovered);
  EXPECT_EQ(loss.detail, "the agent stopped recording early: disk nearly full");
  EXPECT_NEAR(static_cast<double>(loss.end.ns - loss.begin.ns), 50e6, 1e6);
  EXPECT_EQ(loss.end.ns, end_ns);
}

TEST_F(MergeTest, ANodeThatNeverStartedLacksAllOfTheWindow) {
  auto recording = recording::ReadRecording(run_);
  ASSERT_TRUE(recording.ok()) << recording.status();
  recording::NodeRecord& node = recording->nodes[1];
  node.start = {};
  node.stop = {};
  node.start.requested_monotonic_raw_ns = 1;
  ASSERT_TRUE(recording::WriteRecording(run_, *recording).ok());
  const auto report = MakeReport({{{run_.string()}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->incomplete);
  ASSERT_EQ(report->nodes[1].losses.size(), 1u);
  EXPECT_EQ(report->nodes[1].losses[0].detail, "the agent never started recording");
  EXPECT_EQ(report->nodes[1].losses[0].begin.ns, 0);
  EXPECT_EQ(report->nodes[1].losses[0].end.ns, recording->window.end_timeline_ns);
}

// Its agent was killed at T: nobody heard that the gate was opened, and a guard closed it.
TEST_F(MergeTest, ANodeWhoseStartNobodyHeardOfAndThatStoppedEarly) {
  auto recording = recording::ReadRecording(run_);
  ASSERT_TRUE(recording.ok()) << recording.status();
  const int64_t end_ns = recording->window.end_timeline_ns;
  recording::NodeRecord& node = recording->nodes[0];
  node.start = {};
  node.start.requested_monotonic_raw_ns = 1;
  node.stop.gate_begin_monotonic_raw_ns = node.stop.gate_end_monotonic_raw_ns = end_ns;
  node.stop.gate_end_monotonic_ns = timeline::testing::kJobZeroNs + end_ns - 50'000'000;
  node.stop.reason = "guard: the agent was dead";
  node.stop.complete = true;
  ASSERT_TRUE(recording::WriteRecording(run_, *recording).ok());
  const auto report = MakeReport({{{run_.string()}}});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->nodes[0].losses.size(), 1u);
  EXPECT_EQ(report->nodes[0].losses[0].detail,
            "the agent stopped recording early: guard: the agent was dead");
}

TEST_F(MergeTest, ARecordingOfNothingSaysSo) {
  auto recording = recording::ReadRecording(run_);
  ASSERT_TRUE(recording.ok()) << recording.status();
  for (recording::NodeRecord& node : recording->nodes) {
    node.processes.clear();
    std::filesystem::remove_all(recording::Layout(run_).Trace(node.name));
    std::filesystem::remove_all(recording::Layout(run_).Processes(node.name));
    node.streams.clear();
  }
  ASSERT_TRUE(recording::WriteRecording(run_, *recording).ok());
  const auto report = MakeReport({{{run_.string()}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->incomplete);
  EXPECT_THAT(report->complaints, Contains(HasSubstr("no node had a program that can be traced")));
}

TEST_F(MergeTest, AnInterruptRemovesWhatWasWrittenAndKeepsTheEarlierMerge) {
  MergeOptions options;
  options.input.inputs = {run_.string()};
  ASSERT_TRUE(Merge(options).ok());
  const std::string before = Read(run_ / "out" / "timeline.perfetto-trace");
  std::stop_source interrupts;
  interrupts.request_stop();
  options.interrupt = interrupts.get_token();
  options.leave = [] { std::_Exit(130); };
  EXPECT_EXIT(Merge(options).IgnoreError(), ::testing::ExitedWithCode(130), "");
  EXPECT_EQ(Read(run_ / "out" / "timeline.perfetto-trace"), before);
  for (const auto& entry : std::filesystem::directory_iterator(run_)) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

TEST_F(MergeTest, WhatOthersPutIntoTheOutputIsKept) {
  MergeOptions options;
  options.input.inputs = {run_.string()};
  ASSERT_TRUE(Merge(options).ok());
  const std::filesystem::path out = run_ / "out";
  ASSERT_TRUE(WriteFileAtomically(out / "notes.md", "mine").ok());
  ASSERT_TRUE(MakeDirectories(out / "more").ok());
  ASSERT_TRUE(WriteFileAtomically(out / "more/notes.md", "mine, too").ok());
  ASSERT_TRUE(WriteFileAtomically(out / "report.json", "changed").ok());
  const std::string timeline = Read(out / "timeline.perfetto-trace");
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(Merge(options).ok());
    EXPECT_EQ(Read(out / "notes.md"), "mine");
    EXPECT_EQ(Read(out / "more/notes.md"), "mine, too");
    EXPECT_NE(Read(out / "report.json"), "changed");
    EXPECT_EQ(Read(out / "timeline.perfetto-trace"), timeline);
  }
  // What the merge before wrote, and this one does not, goes.
  options.formats = {"chrome"};
  ASSERT_TRUE(Merge(options).ok());
  EXPECT_FALSE(std::filesystem::exists(out / "timeline.perfetto-trace"));
  EXPECT_EQ(Read(out / "notes.md"), "mine");
  for (const auto& entry : std::filesystem::directory_iterator(run_)) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

TEST_F(MergeTest, WhatAKilledMergeLeftIsClearedAway) {
  const std::filesystem::path left = run_ / ".out.4242.tmp";
  ASSERT_TRUE(MakeDirectories(left).ok());
  ASSERT_TRUE(WriteFileAtomically(left / ".syncline-merge", "half").ok());
  MergeOptions options;
  options.input.inputs = {run_.string()};
  ASSERT_TRUE(Merge(options).ok());
  EXPECT_FALSE(std::filesystem::exists(left));
}

}  // namespace
}  // namespace syncline::merge
