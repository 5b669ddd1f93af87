// SPDX-License-Identifier: Apache-2.0
// What merge, report and events are given by mistake, and what became of a recording on its way:
// all of it is refused or said, by name, and the rest is merged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "coordinator/merge/input_list.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/job_test.h"
#include "coordinator/merge/merge.h"
#include "coordinator/recording/recording.h"
#include "ctf/generator.h"
#include "timeline/testing/two_node_job.h"
#include "xspace/profile_list.h"

namespace syncline::merge {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using timeline::testing::kJobStepNs;
using timeline::testing::kJobSteps;

class InputsTest : public testing::JobTest {
 protected:
  static std::string Why(const absl::Status& status) { return std::string(status.message()); }
  static std::vector<std::string> Names(const MergeResult& result) {
    std::vector<std::string> names;
    for (const auto& node : result.report.nodes) names.push_back(node.name);
    return names;
  }
  void ExpectRefused(const MergeOptions& options, absl::StatusCode code,
                     const ::testing::Matcher<std::string>& why) const {
    const auto merged = Merge(options);
    EXPECT_EQ(merged.status().code(), code) << merged.status();
    EXPECT_THAT(Why(merged.status()), why);
    EXPECT_FALSE(std::filesystem::exists(root_ / "merged"));
  }
  // Merges the recording, which is damaged: it must say so, go on, and not be complete.
  void ExpectSaid(const ::testing::Matcher<std::string>& what) const {
    const auto merged = Merge(Of({run_.string()}));
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_TRUE(merged->incomplete);
    EXPECT_THAT(merged->complaints, Contains(what));
    EXPECT_EQ(merged->report.nodes.size(), 2u);
  }
  // The master's process gets a control block with two names.
  std::filesystem::path AddControlBlock() const {
    const std::filesystem::path directory = recording::Layout(run_).Processes("master-0");
    EXPECT_TRUE(MakeDirectories(directory).ok());
    const std::string names = control_block::MakeNamesBytes({"train_step", "conv"});
    std::vector<uint8_t> block = control_block::MakeBlockBytes();
    auto* header = reinterpret_cast<syncline_block*>(block.data());
    header->names_bytes = names.size();
    header->names_count = 2;
    const std::filesystem::path stem = directory / "4026531836-1234-5678";
    EXPECT_TRUE(WriteFileAtomically(stem.string() + ".names", names).ok());
    EXPECT_TRUE(WriteFileAtomically(stem.string() + ".block",
                                    {reinterpret_cast<const char*>(block.data()), block.size()})
                    .ok());
    Change([](recording::Recording* recording) {
      recording::ProcessRecord process;
      process.own_pid = 1234;
      process.pid_namespace_inode = 4026531836;
      process.start_ticks = 5678;
      process.has_control_block = true;
      process.present_at_prepare = true;
      recording::ProcessRecord other;  // it was idle beside this one
      other.own_pid = 1235;
      other.on_monotonic_ns = 1;
      recording->nodes[0].processes = {process, other};
    });
    return stem;
  }
};

TEST(ReadProcesses, NumbersLoaderWorkersAsTheyBegan) {
  recording::NodeRecord node;
  const auto add = [&](int32_t pid, uint64_t ticks, const char* part, int32_t rank) {
    recording::ProcessRecord& process = node.processes.emplace_back();
    process.own_pid = pid;
    process.start_ticks = ticks;
    process.part = part;
    process.rank = rank;
  };
  add(40, 900, "loader worker", 0);
  add(21, 700, "rank", 0);
  add(7, 901, "loader worker", 0);  // pids begin anew some day
  add(39, 900, "loader worker", 0);
  add(41, 900, "loader worker", 1);
  std::vector<int32_t> ids;
  for (const auto& process : ReadProcesses(recording::Layout("/nowhere"), node).processes) {
    ids.push_back(process.worker_id);
  }
  EXPECT_THAT(ids, ElementsAre(1, -1, 2, 0, 0));
}

TEST_F(InputsTest, HostsBelowOneDirectoryAreNodesOfTheirOwn) {
  const auto apart =
      Merge(Of({"m=" + Trace("master-0").string(), "w=" + Trace("worker-0").string()}));
  ASSERT_TRUE(apart.ok()) << apart.status();
  const auto together = Merge(Of({(run_ / "nodes").string()}));
  ASSERT_TRUE(together.ok()) << together.status();
  EXPECT_THAT(Names(*together), ElementsAre("master-0", "worker-0"));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(together->report.nodes[i].events, apart->report.nodes[i].events);
    EXPECT_EQ(together->report.nodes[i].processes.size(), 1u);
  }
  EXPECT_THAT(together->notes,
              AllOf(Contains(HasSubstr("holds traces of 2 clocks")),
                    Contains(HasSubstr("a part of the recording " + run_.string()))));
  // Where they lie is in no file.
  EXPECT_THAT(*ReadFile(root_ / "merged/report.json"), Not(HasSubstr(root_.string())));
  std::filesystem::remove_all(root_ / "merged");
  ExpectRefused(Of({"a=" + (run_ / "nodes").string()}), absl::StatusCode::kInvalidArgument,
                HasSubstr("master-0="));
}

TEST_F(InputsTest, ClocksWithoutANameThatBeganAtDifferentTimesAreTwo) {
  ctf::GeneratorOptions options;
  options.events_per_stream = 10;
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(ctf::GenerateTrace(root_ / "both" / name, options).ok());
  }
  const std::filesystem::path metadata = root_ / "both/b/metadata";
  const auto merged_with_offset = [&](const std::string& offset_ns) {
    const std::string text =
        absl::StrReplaceAll(*ReadFile(root_ / "both/a/metadata"),
                            {{"offset = 1700000000000000000", "offset = " + offset_ns}});
    EXPECT_TRUE(WriteFileAtomically(metadata, text).ok());
    const auto merged = Merge(Of({(root_ / "both").string()}));
    EXPECT_TRUE(merged.ok()) << merged.status();
    std::filesystem::remove_all(root_ / "merged");
    return Names(*merged).size();
  };
  EXPECT_EQ(merged_with_offset("1700000000900000000"), 1u);
  EXPECT_EQ(merged_with_offset("1700004000000000000"), 2u);
}

TEST_F(InputsTest, NodesWithoutANameAreCalledByTheirHost) {
  const auto merged = Merge(Of({Trace("worker-0").string(), Trace("master-0").string()}));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT(Names(*merged), ElementsAre("master-0", "worker-0"));
  const std::string report = *ReadFile(root_ / "merged/report.json");
  std::filesystem::remove_all(root_ / "merged");
  ASSERT_TRUE(Merge(Of({Trace("master-0").string(), Trace("worker-0").string()})).ok());
  EXPECT_EQ(*ReadFile(root_ / "merged/report.json"), report) << "in whatever order they are given";
  std::filesystem::remove_all(root_ / "merged");
  // Two directories are two nodes, whatever their traces say; a name that was given is kept.
  const std::filesystem::path copy = root_ / "copy";
  std::filesystem::copy(Trace("worker-0"), copy, std::filesystem::copy_options::recursive);
  const auto twins = Merge(Of({copy.string(), "worker-0=" + Trace("worker-0").string()}));
  ASSERT_TRUE(twins.ok()) << twins.status();
  EXPECT_THAT(Names(*twins), ElementsAre("worker-0", "worker-0-2"));
  EXPECT_THAT(twins->notes, Contains(HasSubstr(copy.string() + " is worker-0-2 here")));
}

TEST_F(InputsTest, TheCurrentDirectoryIsCalledByItsName) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(root_ / "here");
  std::filesystem::current_path(root_ / "here");
  ExpectRefused(Of({"."}), absl::StatusCode::kInvalidArgument, HasSubstr("here: skipped"));
  std::filesystem::current_path(before);
}

TEST_F(InputsTest, NodesAreChosenAmongTracesToo) {
  MergeOptions options = Of({"a=" + Trace("worker-0").string(), "b=" + Trace("master-0").string()});
  options.input.nodes = {"b"};
  const auto merged = Merge(options);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT(Names(*merged), ElementsAre("b"));
  // Choosing a node does not move its time.
  std::set<int64_t> zeros;
  for (const auto& nodes : std::vector<std::vector<std::string>>{{}, {"a"}, {"b"}}) {
    options.input.nodes = nodes;
    zeros.insert(Merge(options)->report.epoch_unix_ns);
  }
  EXPECT_EQ(zeros.size(), 1u);
  options.input.nodes = {"c"};
  EXPECT_THAT(std::string(Merge(options).status().message()),
              AllOf(HasSubstr("'c'"), HasSubstr("a, b")));
}

TEST_F(InputsTest, NamesThatSayTooLittleOrTooMuchAreRefused) {
  const std::string master = Trace("master-0").string();
  const std::string worker = Trace("worker-0").string();
  const auto wrong = absl::StatusCode::kInvalidArgument;
  ExpectRefused(Of({"a=" + master, "a=" + worker}), wrong,
                AllOf(HasSubstr("the name a is given twice"), HasSubstr(worker)));
  ExpectRefused(Of({"a=" + run_.string()}), wrong, HasSubstr("given without a name"));
  ExpectRefused(Of({master, master}), wrong, HasSubstr("is given twice, by"));
  ExpectRefused(Of({master, (run_ / "nodes").string()}), wrong, HasSubstr("is given twice, by"));
  ExpectRefused(Of({"\xff\n=" + master}), wrong, HasSubstr("\"??\" cannot be a node's name"));
  MergeOptions refit = Of({master});
  refit.input.refit = true;
  ExpectRefused(refit, wrong, HasSubstr("--refit"));
  std::filesystem::create_directories(root_ / "runs");
  std::filesystem::rename(run_, root_ / "runs/one");
  ExpectRefused(Of({(root_ / "runs").string()}), wrong,
                HasSubstr("contains one: `syncline merge " + (root_ / "runs/one").string()));
}

TEST_F(InputsTest, TextFromOutsideBecomesAName) {
  EXPECT_EQ(AsName("knoten-ä €"), "knoten-ä €");
  EXPECT_EQ(AsName("a\nb\xff\xc3"), "a?b??");
  EXPECT_EQ(AsName("\xe2\x82"), "??");
}

TEST_F(InputsTest, ARecordingWithoutItsJsonIsNamedAsThat) {
  std::filesystem::remove(run_ / "recording.json");
  ExpectRefused(Of({run_.string()}), absl::StatusCode::kNotFound,
                AllOf(HasSubstr("a recording without recording.json: nodes/ and clocks/ are there"),
                      HasSubstr("syncline merge " + (run_ / "nodes").string())));
  EXPECT_TRUE(Merge(Of({(run_ / "nodes").string()})).ok());  // what it advises
}

TEST_F(InputsTest, ControlBlocksThatLostSomethingSaySo) {
  const std::string stem = AddControlBlock().string();
  const auto whole = Merge(Of({run_.string()}));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_FALSE(whole->incomplete);
  EXPECT_THAT(whole->complaints, IsEmpty());
  const std::string names = *ReadFile(stem + ".names");
  const std::string block = *ReadFile(stem + ".block");
  const auto damage = [&](const std::string& path, const std::string& bytes, const char* what) {
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
    ExpectSaid(AllOf(HasSubstr(std::filesystem::path(path).filename().string()), HasSubstr(what)));
    ASSERT_TRUE(WriteFileAtomically(stem + ".names", names).ok());
    ASSERT_TRUE(WriteFileAtomically(stem + ".block", block).ok());
  };
  damage(stem + ".names", "", "0 of 2 names are left");
  damage(stem + ".names", names.substr(0, names.size() / 2), "0 of 2 names are left");
  damage(stem + ".names", names.substr(0, names.size() - 4), "1 of 2 names are left");
  damage(stem + ".names", std::string(names.size(), '\0'), "no SYNCNAM1");
  damage(stem + ".block", "", "no SYNCBLK1");
  damage(stem + ".block", block.substr(0, block.size() / 2), "bytes are left");
  std::filesystem::remove(stem + ".names");
  ExpectSaid(AllOf(HasSubstr("5678.names"), HasSubstr("No such file")));
  std::filesystem::remove(stem + ".block");
  // It had recorded nothing: it may have ended before there was anything to fetch.
  const auto merged = Merge(Of({run_.string()}));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(merged->incomplete);
  Change([](recording::Recording* recording) {
    for (recording::ProcessRecord& process : recording->nodes[0].processes) {
      if (process.has_control_block) process.on_monotonic_ns = 1;
    }
  });
  ExpectSaid(AllOf(HasSubstr("5678.block"), HasSubstr("No such file")));
}

TEST_F(InputsTest, AFifoInPlaceOfAFileIsNamedAndNotWaitedFor) {
  const std::string stem = AddControlBlock().string();
  Change([](recording::Recording* recording) {
    recording->nodes[0].streams.push_back(
        {.path = std::string(testing::kTrace) + "/syncline_0", .bytes = 1, .packets = 1});
  });
  for (const std::string& path :
       {(run_ / "clocks/models.json").string(), stem + ".names", stem + ".block",
        (Trace("master-0") / "metadata").string(), (Trace("master-0") / "syncline_0").string()}) {
    std::filesystem::rename(path, root_ / "aside");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << path;
    ExpectSaid(AllOf(HasSubstr(std::filesystem::path(path).filename().string()),
                     HasSubstr("a FIFO, not a regular file")));
    std::filesystem::rename(root_ / "aside", path);
  }
  std::filesystem::remove(run_ / "recording.json");
  ASSERT_EQ(::mkfifo((run_ / "recording.json").c_str(), 0600), 0);
  std::filesystem::remove_all(root_ / "merged");
  ExpectRefused(Of({run_.string()}), absl::StatusCode::kFailedPrecondition, HasSubstr("a FIFO"));
}

TEST_F(InputsTest, WhatIsMissingOfARecordingIsSaid) {
  std::filesystem::create_directories(run_ / "nodes/stranger/trace");
  ExpectSaid(HasSubstr("nodes/stranger is skipped"));
  std::filesystem::remove_all(run_ / "nodes/stranger");
  Change([](recording::Recording* recording) {
    recording->nodes[0].streams.push_back(
        {.path = std::string(testing::kTrace) + "/syncline_0", .bytes = 1, .packets = 1});
  });
  std::filesystem::rename(Trace("master-0") / "metadata", root_ / "aside");
  ExpectSaid(HasSubstr("64-bit/metadata is gone since it was fetched"));
  std::filesystem::rename(root_ / "aside", Trace("master-0") / "metadata");
  std::filesystem::rename(Trace("master-0") / "syncline_0", root_ / "aside");
  std::filesystem::create_directories(Trace("master-0") / "syncline_0");
  ExpectSaid(HasSubstr("syncline_0 is no longer a file since it was fetched"));
  std::filesystem::remove_all(run_ / "nodes/master-0");
  ExpectSaid(AllOf(HasSubstr("master-0: skipped"), HasSubstr("is not a directory")));
  Change([](recording::Recording* recording) { recording->nodes.clear(); });
  EXPECT_THAT(Why(Merge(Of({run_.string()})).status()), HasSubstr("names no node"));
}

TEST_F(InputsTest, WhatMayNotBeReadIsSaid) {
  namespace fs = std::filesystem;
  fs::permissions(root_, fs::perms::all);
  const fs::path stream = Trace("worker-0") / "syncline_0";
  fs::permissions(Trace("master-0"), fs::perms::none);
  fs::permissions(stream, fs::perms::none);
  const bool root = ::geteuid() == 0;  // to whom everything is open
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  ExpectSaid(AllOf(HasSubstr("64-bit"), HasSubstr("cannot be listed: Permission denied")));
  ExpectSaid(AllOf(HasSubstr("syncline_0"), HasSubstr("Permission denied")));
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  fs::permissions(Trace("master-0"), fs::perms::all);
}

TEST_F(InputsTest, AWindowThatLiesElsewhereIsRefused) {
  constexpr int64_t kEndNs = kJobSteps * kJobStepNs;
  MergeOptions options = Of({run_.string()});
  options.range.from = TimelineTime{kEndNs};
  ExpectRefused(options, absl::StatusCode::kInvalidArgument,
                AllOf(HasSubstr("nothing was recorded"), HasSubstr("the recording's window is 0")));
  options.range.from = TimelineTime{-2};
  options.range.to = TimelineTime{-1};
  ExpectRefused(options, absl::StatusCode::kInvalidArgument, HasSubstr("nothing was recorded"));
  // Traces without a recording: what lies between their first event and their last.
  MergeOptions traces = Of({Trace("master-0").string()});
  traces.range.from = TimelineTime{3600'000'000'000};
  ExpectRefused(traces, absl::StatusCode::kInvalidArgument, HasSubstr("nothing was recorded"));
}

TEST_F(InputsTest, StepsThatDoNotExistAreAnError) {
  ReportOptions options;
  options.input.inputs = {run_.string()};
  for (const char* step : {"nosuch", "", ":", "training:", "training:nosuch"}) {
    options.step = step;
    const auto report = MakeReport(options);
    EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument) << step;
    EXPECT_THAT(Why(report.status()), HasSubstr("train_step\"")) << step;
  }
  options.step = "train_step";
  const auto report = MakeReport(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->steps.size(), 1u);
}

TEST_F(InputsTest, TheOutputMustNotTouchAnInput) {
  MergeOptions options = Of({run_.string()});
  const auto refused = [&](const std::filesystem::path& out, const char* why) {
    options.out_dir = out;
    ExpectRefused(options, absl::StatusCode::kFailedPrecondition, HasSubstr(why));
  };
  std::filesystem::create_directories(root_ / "empty");
  std::filesystem::create_directory_symlink(root_ / "empty", root_ / "link");
  refused(root_ / "link", "is a symbolic link");
  refused(root_ / "link/", "is a symbolic link");
  std::filesystem::create_directory_symlink(root_ / "nowhere", root_ / "dangling");
  refused(root_ / "dangling", "is a symbolic link");
  refused(Trace("master-0") / "merged", "inside the input");
  refused(run_ / "merged", "inside the input");
  refused(run_ / "out/merged", "inside the input");
  refused(root_ / "empty/../run/nodes/new", "inside the input");
  options.input.inputs = {Trace("master-0").string()};
  refused(run_ / "out", "inside the recording");
  refused(run_ / "nodes/worker-0/merged", "inside the recording");
  // A merge's own directory becomes another one, in which this would not be read to its end.
  options = Of({run_.string()});
  options.out_dir = root_ / "old";
  ASSERT_TRUE(Merge(options).ok());
  std::filesystem::copy(Trace("master-0"), root_ / "old/trace");
  options.input.inputs = {(root_ / "old/trace").string()};
  refused(root_ / "old", "is inside it");
  EXPECT_TRUE(std::filesystem::exists(root_ / "old/trace/metadata"));
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "empty"));
  EXPECT_FALSE(std::filesystem::exists(run_ / "out"));
  options = Of({run_.string()});
  options.out_dir = run_ / "nodes/../out";  // its own, by another way
  EXPECT_TRUE(Merge(options).ok());
}

// What is read of it is tested in kineto/; here: nothing of it takes the recording along.
TEST_F(InputsTest, DamagedProfilesOfKinetosAreSaidAndTheRestIsMerged) {
  const std::filesystem::path directory = recording::Layout(run_).Kineto("master-0");
  ASSERT_TRUE(MakeDirectories(directory).ok());
  const std::string event = R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7,)"
                            R"( "tid": 7, "ts": 1.0, "dur": 1.0})";
  const auto write = [&](const std::string& file, const std::string& text,
                         xspace::ProfileState state = xspace::ProfileState::kComplete,
                         const std::string& failure = "") {
    xspace::ProfileRecord record;
    record.file = file;
    record.own_pid = 1234;
    record.state = state;
    record.failure = failure;
    record.begin_realtime_ns = 1;
    record.end_realtime_ns = 2'000;
    ASSERT_TRUE(
        WriteFileAtomically(directory / "profiles.json", xspace::FormatProfileList({record})).ok());
    ASSERT_TRUE(WriteFileAtomically(directory / "a.kineto.json", text).ok());
  };
  const std::string whole = R"({"baseTimeNanoseconds": 0, "traceEvents": [)" + event + "]}";
  write("a.kineto.json", whole);
  const auto merged = Merge(Of({run_.string()}));
  ASSERT_TRUE(merged.ok()) << merged.status();
  ASSERT_EQ(merged->report.nodes[0].profiles.size(), 1u);
  EXPECT_EQ(merged->report.nodes[0].profiles[0].events, 1u);
  EXPECT_THAT(merged->complaints, Not(Contains(HasSubstr("Kineto"))));

  const auto expect_quiet = [&](const char* absence) {
    const auto quiet = Merge(Of({run_.string()}));
    ASSERT_TRUE(quiet.ok()) << quiet.status();
    EXPECT_FALSE(quiet->incomplete);
    EXPECT_THAT(quiet->complaints, Not(Contains(HasSubstr("Kineto"))));
    EXPECT_EQ(quiet->report.nodes[0].profiles[0].absence, absence);
  };
  write("a.kineto.json", R"({"traceEvents": []})");  // of a process that does nothing
  expect_quiet("its profile arrived without an event");
  write("", "", xspace::ProfileState::kMissing, "there is no room");
  expect_quiet("there is no room");

  write("a.kineto.json", R"({"traceEvents": [)" + event + "]}");
  ExpectSaid(AllOf(HasSubstr("Kineto"), HasSubstr("no \"baseTimeNanoseconds\"")));
  write("a.kineto.json", whole.substr(0, whole.size() - 2));
  ExpectSaid(AllOf(HasSubstr("Kineto"), HasSubstr("ends in the middle")));
  write("a.kineto.json", "{\"traceEvents\": \0");
  ExpectSaid(HasSubstr("Kineto"));
  write("gone.kineto.json", "");
  ExpectSaid(AllOf(HasSubstr("Kineto, pid 1234"), HasSubstr("cannot be read")));
  write("../../../recording.json", "");
  ExpectSaid(HasSubstr("names no file of its directory"));
  ASSERT_TRUE(WriteFileAtomically(directory / "profiles.json", "[").ok());
  ExpectSaid(HasSubstr("Kineto's profiles are skipped"));
}

TEST_F(InputsTest, ADamagedModelIsMadeAnewOrNamed) {
  ASSERT_TRUE(WriteFileAtomically(run_ / "clocks/models.json", "{").ok());
  ExpectSaid(HasSubstr("models.json"));
}

TEST_F(InputsTest, TheSameBytesHoweverTheInputIsSpelt) {
  std::filesystem::create_directories(run_ / "nodes/stranger");
  std::ofstream(Trace("worker-0") / "metadata") << "not a trace";
  std::string report;
  for (const std::string& text :
       {run_.string(), run_.string() + "/", (run_ / "nodes/..").string()}) {
    ASSERT_TRUE(Merge(Of({text})).ok()) << text;
    const std::string again = *ReadFile(root_ / "merged/report.json");
    EXPECT_TRUE(report.empty() || report == again) << text;
    EXPECT_THAT(again, Not(HasSubstr(root_.string()))) << text;
    report = again;
  }
}

}  // namespace
}  // namespace syncline::merge
