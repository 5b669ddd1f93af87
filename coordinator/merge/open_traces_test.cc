// SPDX-License-Identifier: Apache-2.0
// Traces and files that are given more than once, in whatever way, or that only look like it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/files.h"
#include "coordinator/merge/job_test.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/open_traces.h"
#include "coordinator/recording/recording.h"
#include "ctf/test_trace.h"

namespace syncline::merge {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class OpenTracesTest : public testing::JobTest {};

TEST_F(OpenTracesTest, TracesThatWereNotFetchedWithTheRecordingAreLeftOut) {
  const auto before = MakeReport({{{run_.string()}}});
  ASSERT_TRUE(before.ok()) << before.status();
  const recording::Layout layout(run_);
  std::filesystem::copy(layout.Trace("master-0") / "ust", layout.Trace("worker-0") / "ust-master",
                        std::filesystem::copy_options::recursive);
  Change([](recording::Recording* recording) {
    recording->nodes[1].fetched.complete = true;
    recording->nodes[1].streams = {{std::string(testing::kTrace) + "/syncline_0"}};
  });
  const auto merged = Merge(Of({run_.string()}));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_TRUE(merged->incomplete);
  EXPECT_THAT(merged->complaints,
              Contains(AllOf(HasSubstr("worker-0: trace/ust-master/"), HasSubstr("skipped"))));
  EXPECT_EQ(merged->report.nodes[1].events, before->nodes[1].events);
}

TEST_F(OpenTracesTest, ACopyBesideATraceIsLeftOut) {
  const std::filesystem::path both = root_ / "both";
  std::filesystem::create_directories(both);
  std::filesystem::copy(Trace("worker-0"), both / "a", std::filesystem::copy_options::recursive);
  const auto once = Merge(Of({both.string()}));
  std::filesystem::copy(Trace("worker-0"), both / "b", std::filesystem::copy_options::recursive);
  const auto twice = Merge(Of({both.string()}));
  ASSERT_TRUE(once.ok() && twice.ok()) << once.status() << twice.status();
  EXPECT_FALSE(once->incomplete);
  EXPECT_TRUE(twice->incomplete);
  EXPECT_THAT(twice->complaints, Contains(HasSubstr("is a copy of")));
  ASSERT_EQ(twice->report.nodes.size(), 1u);
  EXPECT_EQ(twice->report.nodes[0].events, once->report.nodes[0].events);
}

TEST_F(OpenTracesTest, TracesThatOnlyLookAlikeAreNoCopies) {
  using ctf::testing::PacketBuilder;
  // Whose packets do not say whose they are.
  std::string metadata(ctf::testing::kMetadata);
  metadata.replace(metadata.find("stream_instance_id"), 18, "whatever__________");
  const auto write = [&](const char* name, uint32_t value) {
    const auto bytes = PacketBuilder(100, 200).Number(150, value).Close();
    std::filesystem::create_directories(root_ / "in" / name);
    ASSERT_TRUE(WriteFileAtomically(root_ / "in" / name / "metadata", metadata).ok());
    ASSERT_TRUE(WriteFileAtomically(root_ / "in" / name / "s",
                                    {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
                    .ok());
  };
  write("a", 1);
  write("b", 2);
  write("c", 2);  // a copy
  OpenedTraces opened = OpenTraces(root_ / "in");
  ASSERT_EQ(opened.traces.size(), 3u);
  const std::vector<std::string> dropped = DropCopies(&opened.traces);
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_THAT(dropped[0], AllOf(HasSubstr("in/c is skipped"), HasSubstr("in/b")));
}

// A packet that was damaged since is not the one of that number.
TEST_F(OpenTracesTest, PacketsThatDifferAreReadAndSaid) {
  const std::filesystem::path in = root_ / "in";
  const auto report = [&] { return MakeReport({{{in.string()}}}); };
  std::filesystem::create_directories(in / "a");
  std::filesystem::copy(Trace("worker-0"), in / "a");
  const auto once = report();
  std::filesystem::create_directories(in / "b");
  std::filesystem::copy(Trace("worker-0"), in / "b");
  const std::filesystem::path stream = in / "b" / "syncline_0";
  std::string bytes = *ReadFile(stream);
  bytes[bytes.find_last_not_of('\0')] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(stream, bytes).ok());
  const auto twice = report();
  ASSERT_TRUE(once.ok() && twice.ok()) << once.status() << twice.status();
  EXPECT_GT(twice->nodes[0].events, once->nodes[0].events);
}

TEST_F(OpenTracesTest, ALinkOutOfAnInputIsSaid) {
  const std::filesystem::path in = root_ / "in";
  std::filesystem::create_directories(in / "deep");
  std::filesystem::copy(Trace("worker-0"), in / "deep");
  std::filesystem::create_directory_symlink(in / "deep", in / "latest");
  std::filesystem::create_directory_symlink(in, in / "circle");
  const auto alone = Merge(Of({in.string()}));
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_FALSE(alone->incomplete);
  std::filesystem::create_directory_symlink(run_ / "nodes", in / "elsewhere");
  const auto merged = Merge(Of({in.string()}));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT(merged->notes,
              Contains(AllOf(HasSubstr("in/elsewhere"), HasSubstr("is not followed"))));
  EXPECT_EQ(merged->report.nodes.size(), 1u);
}

TEST_F(OpenTracesTest, AFileThatLiesThereTwiceIsReadOnce) {
  const auto once = MakeReport({{{run_.string()}}});
  ASSERT_TRUE(once.ok()) << once.status();
  const std::filesystem::path stream = Trace("worker-0") / "syncline_0";
  std::filesystem::copy(stream, Trace("worker-0") / "syncline_0.bak");
  const auto merged = Merge(Of({run_.string()}));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(merged->incomplete);
  EXPECT_THAT(merged->notes, Contains(AllOf(HasSubstr("syncline_0.bak: "),
                                            HasSubstr("in another file, too, and read once"))));
  EXPECT_EQ(merged->report.nodes[1].events, once->nodes[1].events);
}

}  // namespace
}  // namespace syncline::merge
