// SPDX-License-Identifier: Apache-2.0
#include "common/process_part.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline {
namespace {

TEST(ProcessPart, IsSaidInWords) {
  EXPECT_EQ(PartText({kPartRank, 3}), "rank 3");
  EXPECT_EQ(PartText({"", 3}), "rank 3");  // an older recording
  EXPECT_EQ(PartText({kPartLauncher, -1}), "launcher");
  EXPECT_EQ(PartText({kPartLoaderWorker, 0, 3}), "loader worker 3 of rank 0");
  EXPECT_EQ(PartText({kPartLoaderWorker, -1, 3}), "loader worker 3");
  EXPECT_EQ(PartText({kPartLoaderWorker, 0}), "loader worker of rank 0");
  EXPECT_EQ(PartText({kPartChild, 2}), "child of rank 2");
  EXPECT_EQ(PartText({"", -1}), "");
  EXPECT_EQ(WorkersText(2, 0), "2 loader workers of rank 0");
  EXPECT_EQ(WorkersText(1, -1), "1 loader worker");
  EXPECT_EQ(ChildrenText(3, "b · child of rank 2 · a child"), "b · 3 children of rank 2 · a child");
}

TEST(ProcessPart, AreFew) {
  for (const char* part : {kPartRank, kPartLauncher, kPartLoaderWorker, kPartChild}) {
    EXPECT_TRUE(IsPart(part)) << part;
  }
  for (const char* text : {"", "ranks", "acme"}) EXPECT_FALSE(IsPart(text)) << text;
}

TEST(ProcessPart, WorkersOfOneRankAreOneRowAndChildrenOfOneName) {
  struct Process {
    int pid;
    std::string part, job;
    int32_t rank;
    std::string name = "train";
  };
  const std::vector<Process> processes = {
      {1, kPartLauncher, "", -1},
      {2, kPartRank, "a", 0},
      {3, kPartLoaderWorker, "a", 0},
      {4, kPartLoaderWorker, "a", 1},
      {5, kPartChild, "a", 0},
      {6, kPartLoaderWorker, "a", 0},
      {7, kPartLoaderWorker, "b", 0},
      {8, kPartChild, "a", 0},
      {11, kPartChild, "a", 0, "ffmpeg"},
      {9, "", "a", 0},
      {10, kPartLoaderWorker, "b", 0},
  };
  std::vector<std::vector<int>> pids;
  for (const auto& row : Folded(processes)) {
    pids.emplace_back();
    for (const Process* process : row) pids.back().push_back(process->pid);
  }
  EXPECT_EQ(pids,
            (std::vector<std::vector<int>>{{1}, {2}, {3, 6}, {4}, {5, 8}, {7, 10}, {11}, {9}}));
}

}  // namespace
}  // namespace syncline
