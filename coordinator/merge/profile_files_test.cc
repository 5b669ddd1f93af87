// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/profile_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "coordinator/merge/merge.h"
#include "coordinator/merge/profile_file.h"

namespace syncline::merge {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ProfileFilesTest : public testing::Test {
 protected:
  ProfileFilesTest() : directory_(fs::path(testing::TempDir()) / "profile_files") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~ProfileFilesTest() override { fs::remove_all(directory_); }

  // One step of 100 us with one kernel of 20 us, from `begin_us` on; rank -1: it is not said.
  std::string Write(const std::string& name, int rank, int64_t begin_us, int pid = 7) {
    const fs::path path = directory_ / name;
    fs::create_directories(path.parent_path());
    const auto event = [&](const std::string& category, const std::string& what, int who,
                           int64_t at_us, int64_t long_us) {
      return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + what + R"(", "pid": )" +
             std::to_string(who) + R"(, "tid": 7, "ts": )" + std::to_string(begin_us + at_us) +
             R"(, "dur": )" + std::to_string(long_us) + R"(, "args": {"correlation": 5}},)";
    };
    std::string text = R"({"baseTimeNanoseconds": 1790857026000000000,)";
    if (rank >= 0) {
      text += R"("distributedInfo": {"rank": )" + std::to_string(rank) + R"(, "world_size": 2},)";
    }
    text += R"("traceEvents": [)" + event("user_annotation", "ProfilerStep#1", pid, 0, 100) +
            event("cpu_op", "aten::mm", pid, 10, 20) +
            event("cuda_runtime", "cudaLaunchKernel", pid, 15, 2) +
            event("kernel", "gemm", 0, 40, 20) + R"({"ph": "M", "name": "process_name", "pid": )" +
            std::to_string(pid) + R"(, "tid": 0, "args": {"name": "python3"}}]})";
    std::ofstream(path) << text;
    return path.string();
  }
  std::string At(const std::string& name) const { return (directory_ / name).string(); }

  static absl::StatusOr<analysis::Report> Report(std::vector<std::string> inputs) {
    return MakeReport({.input = {.inputs = std::move(inputs)}, .step = {}});
  }

  // "node: process [begin, end] of its profiles ...".
  static std::vector<std::string> Nodes(const absl::StatusOr<analysis::Report>& report) {
    if (!report.ok()) return {report.status().ToString()};
    std::vector<std::string> texts;
    for (const analysis::NodeReport& node : report->nodes) {
      std::string text = node.name + ":";
      for (const timeline::ProfileResult& profile : node.profiles) {
        text += " " + profile.name + " [" + std::to_string(profile.begin->ns / 1000) + ", " +
                std::to_string(profile.end->ns / 1000) + "]";
      }
      texts.push_back(text);
    }
    return texts;
  }

  const fs::path directory_;
};

TEST_F(ProfileFilesTest, ANodePerRankInOrderOfRank) {
  const auto report = Report({Write("b.json", 10, 50), Write("a.json", 2, 0)});
  EXPECT_THAT(Nodes(report), ElementsAre("rank 2: rank 2 · python3 [0, 100]",
                                         "rank 10: rank 10 · python3 [50, 150]"));
  EXPECT_FALSE(report->incomplete);
  EXPECT_EQ(report->nodes[0].bound_ns, std::nullopt);
  ASSERT_THAT(report->nodes[0].devices, SizeIs(1));
  const analysis::DeviceReport& device = report->nodes[0].devices[0];
  EXPECT_EQ(device.device, "GPU 0");
  ASSERT_THAT(device.steps, SizeIs(1));
  EXPECT_EQ(device.steps[0].name, "ProfilerStep#1");
  EXPECT_EQ(device.steps[0].begin.ns, 40'000);
  EXPECT_EQ(device.steps[0].use.computing_ns, 20'000);
  ASSERT_THAT(device.operators, SizeIs(1));
  EXPECT_EQ(device.operators[0].name, "aten::mm");
}

TEST_F(ProfileFilesTest, TheRankIsWhatTheFileSaysElseItsNameElseNone) {
  EXPECT_THAT(
      Nodes(Report({Write("rank7.json", 3, 0), Write("job-rank_12.pt.trace.json", -1, 0),
                    Write("vm_533.179.pt.trace.json", -1, 0), Write("x.json", -1, 0),
                    Write("more/x.json", -1, 0)})),
      ElementsAre("rank 3: rank 3 · python3 [0, 100]", "rank 12: rank 12 · python3 [0, 100]",
                  "vm_533.179: vm_533.179 · python3 [0, 100]", "x: x · python3 [0, 100]",
                  "x-2: x-2 · python3 [0, 100]"));
  EXPECT_EQ(RankOfName("rank3"), 3);
  EXPECT_EQ(RankOfName("Job-RANK-003.x"), 3);
  EXPECT_EQ(RankOfName("frank_rank_4"), 4);
  EXPECT_EQ(RankOfName("rank"), std::nullopt);
  EXPECT_EQ(RankOfName("rankings"), std::nullopt);
  EXPECT_EQ(RankOfName("rank99999999999"), std::nullopt);
}

TEST_F(ProfileFilesTest, WindowsOfARankAreOneNodeAndMustNotOverlap) {
  const std::string first = Write("a.json", 0, 0);
  EXPECT_THAT(Nodes(Report({Write("b.json", 0, 200), first})),
              ElementsAre("rank 0: rank 0 · python3 [0, 100] rank 0 · python3 [200, 300]"));
  const auto overlapping = Report({first, Write("c.json", 0, 70)});
  EXPECT_TRUE(absl::IsInvalidArgument(overlapping.status()));
  EXPECT_THAT(overlapping.status().ToString(), HasSubstr("both of rank 0 and overlap by 30"));
  EXPECT_THAT(Report({"a=" + first, "b=" + first}).status().ToString(),
              HasSubstr("both of rank 0 and overlap by 100"));
  // Without a rank: the same process of a host.
  const std::string stranger = Write("x.json", -1, 0);
  EXPECT_THAT(Report({"a=" + stranger, "a=" + stranger}).status().ToString(),
              HasSubstr("both of process 7 of a and overlap by 100"));
  EXPECT_TRUE(Report({"a=" + stranger, "a=" + Write("y.json", -1, 0, 8)}).ok());
  EXPECT_TRUE(Report({"a=" + stranger, "b=" + Write("z.json", -1, 0)}).ok());
}

// The ids of a later window may count from the same number on.
// What lies between the last optimizer's step of a window and the first one of the next is no step,
// however short the pause.
TEST_F(ProfileFilesTest, NoStepSpansThePauseBetweenTwoWindows) {
  const auto write = [&](const std::string& name, int64_t begin_us) {
    std::string text =
        R"({"baseTimeNanoseconds": 1790857026000000000, "distributedInfo": {"rank": 3},
      "traceEvents": [)";
    const auto add = [&](const std::string& category, const std::string& what, int pid,
                         int64_t at_us, int64_t long_us, int64_t correlation) {
      text += R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + what + R"(", "pid": )" +
              std::to_string(pid) + R"(, "tid": 7, "ts": )" + std::to_string(begin_us + at_us) +
              R"(, "dur": )" + std::to_string(long_us) + R"(, "args": {"correlation": )" +
              std::to_string(begin_us + correlation) + "}},";
    };
    for (const int64_t step : {0, 100, 200, 300}) {
      add("user_annotation", "Optimizer.step#SGD.step", 7, step, 10, 0);
      add("cuda_runtime", "cudaLaunchKernel", 7, step + 20, 2, step + 1);
      add("kernel", "gemm", 0, step + 30, 20, step + 1);
    }
    std::ofstream(At(name)) << text << R"({"ph": "M", "name": "process_name", "pid": 7, "tid": 0,
      "args": {"name": "python3"}}]})";
    return At(name);
  };
  const auto report = Report({write("a.json", 0), write("b.json", 390)});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->nodes, SizeIs(1));
  ASSERT_THAT(report->nodes[0].devices, SizeIs(1));
  std::vector<int64_t> lengths_us;
  for (const analysis::DeviceStep& step : report->nodes[0].devices[0].steps) {
    lengths_us.push_back(step.duration_ns() / 1000);
  }
  // Of each window three; the last of each ends with its work.
  EXPECT_THAT(lengths_us, ElementsAre(100, 100, 20, 100, 100, 20));
}

TEST_F(ProfileFilesTest, AnArrowLeadsFromTheCallOfTheSameWindow) {
  const std::string a = Write("a.json", 0, 0);
  const std::string b = Write("b.json", 0, 200);
  const fs::path out = directory_ / "out";
  ASSERT_TRUE(Merge({.input = {.inputs = {a, b}}, .out_dir = out, .formats = {"chrome"}}).ok());
  std::ifstream file(out / "chrome/rank-0.json");
  std::vector<double> lengths_us;
  std::vector<double> begins_us;
  const auto trace = nlohmann::json::parse(file);  // outlives the loop over its events
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "s") begins_us.push_back(event["ts"]);
    if (event["ph"] == "f") lengths_us.push_back(event["ts"].get<double>() - begins_us.back());
  }
  EXPECT_THAT(lengths_us, ElementsAre(25, 25));
}

TEST_F(ProfileFilesTest, OneNameIsOneNodeWithSeveralProcesses) {
  // The same pid in two containers is two processes.
  const auto report = Report({"host=" + Write("a.json", 0, 0), "host=" + Write("b.json", 1, 0),
                              "other=" + Write("c.json", 2, 0)});
  EXPECT_THAT(Nodes(report),
              ElementsAre("host: host · rank 0 · python3 [0, 100] host · rank 1 · python3 [0, 100]",
                          "other: other · rank 2 · python3 [0, 100]"));
  EXPECT_THAT(report->nodes[0].devices, SizeIs(2));
}

TEST_F(ProfileFilesTest, ADirectoryOfProfiles) {
  Write("run/a.json", 0, 0);
  Write("run/deeper/b.json", 1, 0);
  std::ofstream(directory_ / "run/config.json") << R"({"model": "small"})";
  const auto report = Report({At("run")});
  EXPECT_THAT(Nodes(report), ElementsAre("rank 0: rank 0 · python3 [0, 100]",
                                         "rank 1: rank 1 · python3 [0, 100]"));
  EXPECT_FALSE(report->incomplete);
  ASSERT_THAT(report->notes, testing::Not(IsEmpty()));
  EXPECT_THAT(report->notes[0], HasSubstr("config.json is skipped: it holds no event"));
}

TEST_F(ProfileFilesTest, WhatCannotBeReadIsSaid) {
  const std::string good = Write("a.json", 0, 0);
  std::ofstream(directory_ / "bad.json") << "hello";
  const auto report = Report({good, At("bad.json")});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->incomplete);
  EXPECT_THAT(report->complaints, testing::Contains(HasSubstr("bad.json is skipped")));

  EXPECT_THAT(Report({At("bad.json")}).status().ToString(), HasSubstr("no file holds a profile\n"));
  std::ofstream(directory_ / "notes.txt") << "hello";
  EXPECT_THAT(Report({At("notes.txt")}).status().ToString(), HasSubstr("no profile of PyTorch"));
  fs::create_directories(directory_ / "empty");
  EXPECT_THAT(Report({good, At("empty")}).status().ToString(),
              HasSubstr("profiles are merged with each other only"));
  EXPECT_TRUE(absl::IsNotFound(Report({At("gone.json")}).status()));
}

// Spans with their arrows, and arrows.
class ArrowSink final : public timeline::SpanSink {
 public:
  void OnText(timeline::TextId id, std::string_view text) override { texts_[id] = text; }
  void OnTrack(const timeline::Track& track) override { tracks_[track.id] = track.name; }
  void OnSpanBegin(const timeline::Span& span) override { arrows[texts_[span.name]] = span.arrow; }
  void OnSpanEnd(const timeline::Span&) override {}
  void OnFlow(const timeline::Flow& flow) override {
    EXPECT_TRUE(flow.between_begins);
    flows.push_back(texts_[flow.name] + ": " + tracks_[flow.from] + " " +
                    std::to_string(flow.sent.ns) + " > " + tracks_[flow.to] + " " +
                    std::to_string(flow.received.ns));
  }

  std::map<std::string, uint64_t> arrows;
  std::vector<std::string> flows;

 private:
  std::map<timeline::TextId, std::string> texts_ = {{timeline::kNoText, ""}};
  std::map<timeline::TrackId, std::string> tracks_;
};

TEST_F(ProfileFilesTest, AnArrowFromTheCallToTheKernel) {
  const InputOptions options{.inputs = {Write("a.json", 0, 0)}};
  const auto list = ListInputs(options.inputs);
  ASSERT_TRUE(list.ok());
  const auto inputs = OpenProfileFiles(options, *list);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ArrowSink sink;
  timeline::TimelineSink* const sinks[] = {&sink};
  ASSERT_TRUE(timeline::BuildTimeline(inputs->nodes, inputs->build, sinks).ok());
  EXPECT_THAT(sink.flows, ElementsAre("launch: thread 7 15000 > stream 7 40000"));
  EXPECT_NE(sink.arrows["cudaLaunchKernel"], 0U);
  EXPECT_EQ(sink.arrows["cudaLaunchKernel"], sink.arrows["gemm"]);
  EXPECT_EQ(sink.arrows["aten::mm"], 0U);
}

// It would be empty, and say that nothing ran.
// Each kernel's operator is there, and one in a thousand kernels' call is not.
TEST_F(ProfileFilesTest, OfManyKernelsNoOperatorIsGuessed) {
  constexpr int kKernels = 100'000;
  std::mt19937 random(20261201);
  std::map<std::string, uint64_t> expected;
  uint64_t missing = 0;
  std::ofstream file(directory_ / "rank0.json");
  const auto event = [&](const char* category, const std::string& name, int pid, int at,
                         int number) {
    file << R"({"ph":"X","cat":")" << category << R"(","name":")" << name << R"(","pid":)" << pid
         << R"(,"tid":7,"ts":)" << at << R"(,"dur":)" << (pid == 0 ? 9 : 8)
         << R"(,"args":{"correlation":)" << number << "}},\n";
  };
  file << R"({"baseTimeNanoseconds":1790857026000000000,"traceEvents":[)";
  for (int i = 0; i < kKernels; ++i) {
    const std::string name = "aten::op" + std::to_string(i % 7);
    const int at = 1'000 + 10 * i;
    event("cpu_op", name, 1, at, 0);
    if (random() % 1'000 == 0) {
      ++missing;
    } else {
      event("cuda_runtime", "cudaLaunchKernel", 1, at, i + 1);
      ++expected[name];
    }
    event("kernel", "gemm", 0, at + 5, i + 1);
  }
  file << R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"python3"}}]})";
  file.close();
  const auto report = Report({At("rank0.json")});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->nodes[0].devices, SizeIs(1));
  EXPECT_GT(missing, 50);
  EXPECT_EQ(report->nodes[0].devices[0].work, kKernels);
  EXPECT_EQ(report->nodes[0].devices[0].without_launch, missing);
  std::map<std::string, uint64_t> found;
  for (const auto& one : report->nodes[0].devices[0].operators) {
    if (!one.name.empty()) found[one.name] = one.count;
  }
  EXPECT_EQ(found, expected);
}

TEST_F(ProfileFilesTest, ThereIsNoPictureOfProfiles) {
  const ReportOptions options{.input = {.inputs = {Write("a.json", 0, 0)}}, .step = {}};
  EXPECT_THAT(MakePicture(options, *MakeReport(options)).status().ToString(),
              HasSubstr("profiles given as input have none"));
}

TEST_F(ProfileFilesTest, TheMergeMayLieBesideTheFilesButNotOverThem) {
  const std::string a = Write("a.json", 0, 0);
  const auto merged = Merge({.input = {.inputs = {a}}, .out_dir = directory_ / "out"});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_TRUE(fs::exists(directory_ / "out/timeline.perfetto-trace"));
  EXPECT_TRUE(fs::exists(directory_ / "out/report.json"));
  EXPECT_FALSE(Merge({.input = {.inputs = {a}}, .out_dir = directory_}).ok());
  const auto copied =
      Merge({.input = {.inputs = {a}}, .out_dir = directory_ / "copied", .formats = {"ctf"}});
  EXPECT_TRUE(absl::IsInvalidArgument(copied.status()));
  EXPECT_FALSE(fs::exists(directory_ / "copied"));
  EXPECT_TRUE(fs::exists(a));
}

}  // namespace
}  // namespace syncline::merge
