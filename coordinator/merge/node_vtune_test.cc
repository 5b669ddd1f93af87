// SPDX-License-Identifier: Apache-2.0
// Results of VTune beside the two-node job.
#include "coordinator/merge/node_vtune.h"

#include <gmock/gmock.h>

#include <string>

#include "common/files.h"
#include "coordinator/merge/job_test.h"
#include "vtune/result_record.h"

namespace syncline::merge {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr char kNode[] = "worker-0";

class VtuneTest : public testing::JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    Change([&](recording::Recording* recording) {
      for (recording::NodeRecord& node : recording->nodes) {
        if (node.name != kNode) continue;
        zero_ns_ = node.start.gate_begin_monotonic_raw_ns - 20'000;
        node.start.requested_monotonic_raw_ns = zero_ns_;
      }
    });
    ASSERT_NE(zero_ns_, 0);
    record_.analysis = "hotspots";
    record_.pid = 4711;
    record_.own_pid = 10;
    record_.pid_namespace_inode = 5;
    record_.start_ticks = 7;
    record_.rank = 1;
    record_.bytes = 1;
    record_.collect.begin_raw_ns = zero_ns_ - 2 * kSecondNs;
    record_.ready_raw_ns = zero_ns_ - kSecondNs;
    record_.resume.begin_raw_ns = zero_ns_ + 1'000;
    record_.resume.end_raw_ns = zero_ns_ + 9'000;
  }

  std::filesystem::path Folder() const { return run_ / "nodes" / kNode / "vtune" / "4711"; }
  void Write() {
    ASSERT_TRUE(MakeDirectories(Folder() / "result").ok());
    ASSERT_TRUE(WriteFileAtomically(Folder() / "result" / "result.vtune", "x").ok());
    ASSERT_TRUE(
        WriteFileAtomically(Folder() / vtune::kRecordFile, vtune::FormatRecord(record_)).ok());
  }
  analysis::Report Report() {
    auto report = MakeReport({.input = {.inputs = {run_.string()}}});
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value_or(analysis::Report{});
  }

  vtune::ResultRecord record_;
  int64_t zero_ns_ = 0;
};

TEST_F(VtuneTest, AResultHasTheLongestSpansByItsOwnTime) {
  Write();
  const analysis::Report report = Report();
  ASSERT_THAT(report.vtune, SizeIs(1));
  const analysis::VtuneResult& result = report.vtune[0];
  EXPECT_EQ(result.path, "nodes/worker-0/vtune/4711/result");
  ASSERT_TRUE(result.resumed.has_value());
  EXPECT_EQ(result.resumed->begin_ns, 1'000);
  EXPECT_EQ(result.resumed->end_ns, 9'000);
  EXPECT_FALSE(result.stopped.has_value());
  ASSERT_THAT(result.spans, Not(IsEmpty()));
  for (const analysis::VtuneSpan& span : result.spans) {
    EXPECT_EQ(span.tid, 10) << span.name;
    // VTune began between two seconds and one before the window: both ends lie outside.
    EXPECT_NEAR(static_cast<double>(span.since_begin_ns - span.begin.ns), 1e9, 1e5);
    EXPECT_NEAR(static_cast<double>(span.since_end_ns - span.end.ns), 2e9, 1e5);
  }
}

TEST_F(VtuneTest, AMergeWritesWhatVtuneImportsUnasked) {
  MergeOptions options;
  options.input.inputs = {run_.string()};
  auto merged = Merge(options);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(std::filesystem::exists(run_ / "out" / "vtune"));
  EXPECT_THAT(merged->notes, Not(Contains(HasSubstr("vtune -import"))));
  Write();
  merged = Merge(options);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT(merged->files, Contains("vtune"));
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(run_ / "out" / "vtune")) {
    if (entry.path().filename().string().starts_with(kNode)) file = entry.path().string();
  }
  EXPECT_THAT(file, AllOf(HasSubstr("-hostname-"), EndsWith(".csv")));
  EXPECT_THAT(merged->notes, Contains(HasSubstr("`vtune -import " + file + " -result-dir " +
                                                (Folder() / "result").string() + "`")));
}

TEST_F(VtuneTest, AFailedCollectionIsInTheReportToo) {
  record_.bytes = 0;
  record_.problem = "VTune ended with code 1: no driver";
  ASSERT_TRUE(MakeDirectories(Folder()).ok());
  ASSERT_TRUE(
      WriteFileAtomically(Folder() / vtune::kRecordFile, vtune::FormatRecord(record_)).ok());
  const analysis::Report report = Report();
  ASSERT_THAT(report.vtune, SizeIs(1));
  EXPECT_EQ(report.vtune[0].path, "");
  EXPECT_EQ(report.vtune[0].problem, record_.problem);
  EXPECT_THAT(report.vtune[0].spans, IsEmpty());
  EXPECT_FALSE(report.incomplete);
}

TEST_F(VtuneTest, ARecordThatIsNoneIsNamed) {
  Write();
  ASSERT_TRUE(WriteFileAtomically(Folder() / vtune::kRecordFile, "{").ok());
  const analysis::Report report = Report();
  EXPECT_THAT(report.vtune, IsEmpty());
  EXPECT_THAT(report.complaints,
              Contains(HasSubstr("worker-0: vtune/4711/syncline-vtune.json is skipped")));
}

TEST_F(VtuneTest, LateRanksGetTheirCommands) {
  Write();
  auto inputs = OpenInputs({.inputs = {run_.string()}});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const auto results = ReadVtuneResults(&*inputs);
  EXPECT_THAT(VtuneOfRanks(*inputs, results, {{1, kNode, 10}}),
              ElementsAre(AllOf(HasSubstr("rank 1 on worker-0: VTune's hotspots of it"),
                                HasSubstr("vtune -finalize -result-dir " + run_.string()),
                                HasSubstr("vtune -report hotspots"))));
  EXPECT_THAT(VtuneOfRanks(*inputs, results, {{1, "", 0}}), SizeIs(1));
  EXPECT_THAT(VtuneOfRanks(*inputs, results, {{0, kNode, 10}, {1, "master-0", 10}, {1, kNode, 9}}),
              IsEmpty());
}

}  // namespace
}  // namespace syncline::merge
