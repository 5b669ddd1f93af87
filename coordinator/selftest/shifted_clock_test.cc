// SPDX-License-Identifier: Apache-2.0
#include "coordinator/selftest/shifted_clock.h"

#include <gtest/gtest.h>

#include "clocksync/sample_file.h"
#include "common/files.h"
#include "coordinator/recording/recording.h"

namespace syncline::selftest {
namespace {

using clocksync::ProbeSample;

std::string File(const std::string& local, const std::string& remote) {
  std::string bytes = clocksync::EncodeSamplesHeader(local, remote);
  clocksync::AppendSample({.t1_local_ns = 10,
                           .t2_remote_ns = 120,
                           .t3_remote_ns = 130,
                           .t4_local_ns = 40,
                           .source = clocksync::StampSource::kKernel},
                          &bytes);
  clocksync::AppendSample({.t1_local_ns = 50, .t2_remote_ns = 160}, &bytes);
  return bytes;
}

TEST(ShiftedClock, ShiftsTheStampsOfOneNodeOnEitherSide) {
  const auto remote = clocksync::DecodeSamples(*ShiftSamples(File("a", "b"), "b", 1'000));
  ASSERT_EQ(remote->samples.size(), 2u);
  EXPECT_EQ(remote->samples[0].t1_local_ns, 10);
  EXPECT_EQ(remote->samples[0].t2_remote_ns, 1'120);
  EXPECT_EQ(remote->samples[0].t3_remote_ns, 1'130);
  EXPECT_EQ(remote->samples[0].t4_local_ns, 40);
  EXPECT_EQ(remote->samples[0].source, clocksync::StampSource::kKernel);
  EXPECT_EQ(remote->samples[1].t3_remote_ns, 0) << "a stamp that is missing stays so";
  const auto local = clocksync::DecodeSamples(*ShiftSamples(File("a", "b"), "a", 1'000));
  EXPECT_EQ(local->samples[0].t1_local_ns, 1'010);
  EXPECT_EQ(local->samples[0].t2_remote_ns, 120);
  EXPECT_EQ(local->samples[0].t4_local_ns, 1'040);
  EXPECT_EQ(*ShiftSamples(File("a", "b"), "c", 1'000), File("a", "b"));
  EXPECT_TRUE(absl::IsInvalidArgument(ShiftSamples("no samples", "a", 1).status()));
}

TEST(ShiftedClock, CopiesWhatSaysWhatOfTheClocksAndLinksTheTraces) {
  const auto scratch = ScratchDirectory::Make();
  ASSERT_TRUE(scratch.ok()) << scratch.status();
  const recording::Layout run(scratch->path() / "run");
  const recording::Layout copy(scratch->path() / "copy");
  ASSERT_TRUE(MakeDirectories(run.Clocks()).ok());
  ASSERT_TRUE(MakeDirectories(run.Trace("b")).ok());
  recording::Recording recording;
  recording.recording_id = "20261128-090358-b069";
  recording.reference.node = "a";
  recording.nodes.resize(2);
  recording.nodes[0].name = "a";
  recording.nodes[1].name = "b";
  ASSERT_TRUE(recording::WriteRecording(run.root(), recording).ok());
  ASSERT_TRUE(WriteFileAtomically(run.Models(), "{}").ok());
  ASSERT_TRUE(WriteFileAtomically(run.Tuples("b"), "tuples").ok());
  ASSERT_TRUE(WriteFileAtomically(run.Samples("a", "b"), File("a", "b")).ok());
  const absl::Status made = CopyWithShiftedClock(run.root(), "b", 1'000, copy.root());
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_EQ(*ReadFile(copy.Samples("a", "b")), *ShiftSamples(File("a", "b"), "b", 1'000));
  EXPECT_EQ(*ReadFile(copy.Tuples("b")), "tuples");
  EXPECT_EQ(*ReadFile(run.Samples("a", "b")), File("a", "b")) << "the recording stays as it is";
  EXPECT_NE(*ReadFile(copy.Models()), "{}") << "made of the shifted samples";
  EXPECT_TRUE(std::filesystem::is_symlink(copy.Nodes()));
  EXPECT_TRUE(std::filesystem::exists(copy.Trace("b")));
  const absl::Status unknown =
      CopyWithShiftedClock(run.root(), "c", 1'000, scratch->path() / "other");
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
}

TEST(ShiftedClock, RemovesItsCopyAndNothingBehindALink) {
  std::filesystem::path gone;
  const auto kept = ScratchDirectory::Make();
  ASSERT_TRUE(kept.ok());
  ASSERT_TRUE(WriteFileAtomically(kept->path() / "trace", "bytes").ok());
  {
    const auto scratch = ScratchDirectory::Make();
    ASSERT_TRUE(scratch.ok());
    gone = scratch->path();
    std::filesystem::create_directory_symlink(kept->path(), gone / "nodes");
  }
  EXPECT_FALSE(std::filesystem::exists(gone));
  EXPECT_EQ(*ReadFile(kept->path() / "trace"), "bytes");
}

}  // namespace
}  // namespace syncline::selftest
