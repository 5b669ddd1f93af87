// SPDX-License-Identifier: Apache-2.0
// Profiles that are no PyTorch's, as inputs: XSpaces of JAX and TensorFlow, tables of spans.
#include "coordinator/merge/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "coordinator/merge/merge.h"
#include "xspace/testing/space_builder.h"

namespace syncline::merge {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using xspace::IntStat;
using xspace::LineBuilder;
using xspace::PlaneBuilder;
using xspace::TextStat;
using xspace::UintStat;

constexpr int64_t kBegin = 1'795'247'214'126'097'847;
constexpr char kHeader[] = "rank,step,name,start_ns,duration_ns,kind,node,device,stream\n";

// Two steps of 100 ns, of which each launches a kernel 50 ns later.
std::string SpaceOfJax() {
  PlaneBuilder metadata("/host:metadata");
  metadata.AddStat(TextStat(metadata.StatId("jax_version"), "0.10.2"));
  metadata.AddStat(UintStat(metadata.StatId("process_id"), 635));
  PlaneBuilder gpu("/device:GPU:0");
  PlaneBuilder host("/host:CPU");
  LineBuilder queue("Stream #14(Compute)", 0, 14);
  LineBuilder thread("python3", 0, 7);
  for (int64_t step = 0; step < 2; ++step) {
    const int64_t at = step * 100;
    thread.Event(host.EventId("train"), {at, 100}, {IntStat(host.StatId("step_num"), step)});
    thread.Event(host.EventId("execute"), {at + 5, 50});
    thread.Event(host.EventId("cuLaunchKernel"), {at + 10, 5},
                 {UintStat(host.StatId("correlation_id"), static_cast<uint64_t>(step + 1))});
    queue.Event(gpu.EventId("gemm"), {at + 60, 30},
                {UintStat(gpu.StatId("correlation_id"), static_cast<uint64_t>(step + 1))});
  }
  gpu.Add(queue);
  host.Add(thread);
  return xspace::SpaceBytes({metadata.Bytes(), gpu.Bytes(), host.Bytes(),
                             xspace::EnvironmentPlane(kBegin, kBegin + 1000)});
}

class ProfileFileTest : public testing::Test {
 protected:
  ProfileFileTest() : directory_(fs::path(testing::TempDir()) / "profile_file") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~ProfileFileTest() override { fs::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& content) {
    const fs::path path = directory_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  static absl::StatusOr<analysis::Report> Report(std::vector<std::string> inputs) {
    return MakeReport({.input = {.inputs = std::move(inputs)}, .step = {}});
  }
  static std::vector<std::string> Processes(const absl::StatusOr<analysis::Report>& report) {
    EXPECT_TRUE(report.ok()) << report.status();
    std::vector<std::string> names;
    if (!report.ok()) return names;
    for (const auto& node : report->nodes) {
      for (const auto& profile : node.profiles) {
        names.push_back(node.name + ": " + profile.name + ", " + std::to_string(profile.events));
      }
    }
    return names;
  }

  const fs::path directory_;
};

TEST_F(ProfileFileTest, AnXSpaceIsANodeWithItsDevicesAndSteps) {
  const auto report = Report({Write("vm.xplane.pb", SpaceOfJax())});
  EXPECT_THAT(Processes(report), ElementsAre("vm: vm · pid 635, 8"));
  EXPECT_FALSE(report->incomplete);
  EXPECT_EQ(report->nodes[0].profiles[0].profiler, timeline::Profiler::kJax);
  EXPECT_EQ(report->nodes[0].profiles[0].steps, 2u);
  ASSERT_THAT(report->nodes[0].devices, SizeIs(1));
  const analysis::DeviceReport& device = report->nodes[0].devices[0];
  EXPECT_EQ(device.device, "GPU 0");
  EXPECT_EQ(device.steps_by, timeline::StepsBy::kMark);
  ASSERT_THAT(device.steps, SizeIs(2));
  EXPECT_EQ(device.steps[0].name, "train 0");
  EXPECT_EQ(device.steps[0].duration_ns(), 100);
  EXPECT_EQ(device.steps[0].use.computing_ns, 30);
  EXPECT_EQ(device.steps[0].use.unlaunched_ns, 20);  // from 90 to the next launch at 110
  ASSERT_THAT(device.operators, SizeIs(1));
  EXPECT_EQ(device.operators[0].name, "execute");
  EXPECT_EQ(device.operators[0].count, 2u);
}

TEST_F(ProfileFileTest, TheRankIsTheNamesOrTheLogDirectorys) {
  const std::string bytes = SpaceOfJax();
  Write("logs/rank1/plugins/profile/2026_11_26/vm.xplane.pb", bytes);
  Write("logs/rank1/plugins/profile/2026_11_26/vm.trace.json.gz", "the same for Perfetto");
  Write("logs/rank0.xplane.pb", bytes);
  EXPECT_THAT(Processes(Report({(directory_ / "logs").string()})),
              ElementsAre("rank 0: rank 0 · pid 635, 8", "rank 1: rank 1 · pid 635, 8"));
  EXPECT_THAT(FindProfiles(directory_ / "logs"), SizeIs(2));
  EXPECT_EQ(RankOfPath("rank2/vm.xplane.pb"), std::nullopt);
}

// Whatever a file is called.
TEST_F(ProfileFileTest, TheContentSaysWhatAFileIs) {
  EXPECT_THAT(Processes(Report({Write("odd.json", SpaceOfJax())})),
              ElementsAre("odd: odd · pid 635, 8"));
  EXPECT_THAT(Processes(Report({Write(
                  "table.txt", std::string(kHeader) + "3,,a,1795247214126097847,1,x,,,\n")})),
              ElementsAre("rank 3: rank 3, 1"));
  const auto report = Report({Write("notes.txt", "hello\n")});
  EXPECT_THAT(report.status().ToString(), HasSubstr("no profile of PyTorch"));
  EXPECT_THAT(Report({Write("x.parquet", "PAR1....")}).status().ToString(),
              HasSubstr("Parquet is not read: write the table as CSV"));
}

TEST_F(ProfileFileTest, ADamagedXSpaceIsALoss) {
  const std::string bytes = SpaceOfJax();
  const std::string good = Write("rank0.xplane.pb", bytes);
  const std::string garbled = xspace::BytesField(1, "\x12\x01x\x07\x07");  // a plane
  const auto report = Report({good, Write("rank1.xplane.pb", bytes + garbled),
                              Write("rank2.xplane.pb", bytes.substr(0, bytes.size() / 2))});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->incomplete);
  EXPECT_THAT(report->complaints, Contains(HasSubstr("rank1.xplane.pb: ")));
  EXPECT_THAT(report->complaints, Contains(HasSubstr("it does not say when the profile began")));
}

// A real one, packed; then cut off.
TEST_F(ProfileFileTest, APackedXSpaceIsRead) {
  const std::string real = "tests/golden/jax_profile/vm.xplane.pb.gz";
  const auto report = Report({real});
  EXPECT_THAT(Processes(report), ElementsAre("vm: vm · pid 635, 434"));
  ASSERT_THAT(report->nodes[0].devices, SizeIs(1));
  EXPECT_EQ(report->nodes[0].devices[0].work, 108u);
  EXPECT_THAT(report->nodes[0].devices[0].steps, SizeIs(6));
  std::ifstream file(real, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto cut = Report({real, Write("cut.xplane.pb.gz", bytes.substr(0, bytes.size() / 2))});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_TRUE(cut->incomplete);
  EXPECT_THAT(cut->complaints,
              Contains(HasSubstr("cut.xplane.pb.gz: truncated: it cannot be unpacked to its end")));
}

TEST_F(ProfileFileTest, ATableHasManyRanksAndTheClocksOfItsNodes) {
  const std::string begin = std::to_string(kBegin);
  const auto report =
      Report({Write("job.csv", std::string(kHeader) +                                     //
                                   "0,1,mm," + begin + ",30,kernel,h0,GPU 0,7\n" +        //
                                   "0,2,mm,1795247214126097947,30,kernel,h0,GPU 0,7\n" +  //
                                   "0,2,sync,1795247214126097967,30,collective,h0,GPU 0,8\n" +
                                   "1,1,copy," + begin + ",10,copy,h0,,\n" +  //
                                   "2,,load," + begin + ",10,data,h1,,\n")});
  EXPECT_THAT(Processes(report),
              ElementsAre("h0: h0 · rank 0, 3", "h0: h0 · rank 1, 1", "h1: h1 · rank 2, 1"));
  EXPECT_FALSE(report->incomplete);
  ASSERT_THAT(report->nodes[0].devices, SizeIs(2));
  const analysis::DeviceReport& device = report->nodes[0].devices[0];
  EXPECT_EQ(device.steps_by, timeline::StepsBy::kTable);
  ASSERT_THAT(device.steps, SizeIs(2));
  EXPECT_EQ(device.steps[0].name, "step 1");
  EXPECT_EQ(device.steps[0].duration_ns(), 100);
  EXPECT_EQ(device.steps[1].use.computing_ns, 30);
  EXPECT_EQ(device.steps[1].use.communication_ns, 20);  // not what the kernel hides
  EXPECT_EQ(report->nodes[0].devices[1].device, "device");
  EXPECT_THAT(report->nodes[1].devices, IsEmpty());
}

TEST_F(ProfileFileTest, ATableWithAWrongRowIsRefusedWithItsPlace) {
  const std::string good =
      Write("a.csv", std::string(kHeader) + "0,,a,1795247214126097847,1,x,,,\n");
  const std::string bad =
      Write("b.csv", std::string(kHeader) + "1,,a,1795247214126097847,1,x,,,\n" +
                         "1,,a,1795247214126097847,-1,x,,,\n");
  const auto report = Report({good, bad});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->incomplete);
  EXPECT_THAT(report->complaints, Contains(HasSubstr("b.csv is skipped: line 3, column "
                                                     "duration_ns: -1 is negative")));
  EXPECT_THAT(
      Report({"x=" + Write("c.csv", std::string(kHeader) + "0,,a,1795247214126097847,1,x,h0,,\n")})
          .status()
          .ToString(),
      HasSubstr("it names its nodes itself (h0)"));
}

TEST_F(ProfileFileTest, OfADirectoryOnlyTablesOfSpansAreTaken) {
  Write("run/spans.jsonl",
        R"({"rank":4,"step":1,"name":"a","start_ns":1795247214126097847,"duration_ns":1,)"
        R"("kind":"b"})");
  Write("run/losses.csv", "epoch,loss\n1,0.5\n");
  Write("run/log.jsonl", "{\"message\": \"hello\"}\n");
  const auto report = Report({(directory_ / "run").string()});
  EXPECT_THAT(Processes(report), ElementsAre("rank 4: rank 4, 1"));
  EXPECT_FALSE(report->incomplete);
}

}  // namespace
}  // namespace syncline::merge
