// SPDX-License-Identifier: Apache-2.0
#include "agent/node/shared_ranks.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class SharedRanks : public testing::Test {
 protected:
  SharedRanks() {
    std::string pattern = testing::TempDir() + "ranks-XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
  }
  ~SharedRanks() override { std::filesystem::remove_all(proc_); }

  // A process of rank 3; `environment` as "A=1 B=2".
  void Add(int32_t pid, int32_t parent_pid, std::string environment, std::string job = "night") {
    for (char& c : environment) c = c == ' ' ? '\0' : c;
    EXPECT_TRUE(MakeDirectories(proc_ / absl::StrCat(pid)).ok());
    EXPECT_TRUE(WriteFileAtomically(proc_ / absl::StrCat(pid) / "environ", environment).ok());
    ProcessEntry entry;
    entry.pid = pid;
    entry.parent_pid = parent_pid;
    entries_.push_back(entry);
    v1::ProcessInfo info;
    info.set_pid(pid);
    info.set_rank(3);
    info.set_job(job);
    infos_.push_back(info);
  }
  std::vector<v1::Complaint> Complaints() { return ComplainOfSharedRanks(proc_, infos_, entries_); }

  std::filesystem::path proc_;
  std::vector<v1::ProcessInfo> infos_;
  std::vector<ProcessEntry> entries_;
};

TEST_F(SharedRanks, ALauncherThatNobodySaw) {
  Add(10, 1, "SYNCLINE_RANK=3");  // the launcher itself, which is a Python program with torch
  Add(11, 10, "SYNCLINE_RANK=3 RANK=0");
  Add(12, 10, "SYNCLINE_RANK=3 RANK=1");
  const auto complaints = Complaints();
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_THAT(complaints[0].what(), HasSubstr("10, 11, 12 of job night are all rank 3"));
  EXPECT_THAT(complaints[0].fix(), HasSubstr("omit --rank"));
}

TEST_F(SharedRanks, BrothersWithoutALaunchersRank) {
  Add(11, 10, "SYNCLINE_RANK=3");
  Add(12, 10, "SYNCLINE_RANK=3");
  EXPECT_EQ(Complaints().size(), 1u);
}

TEST_F(SharedRanks, AProgramsOwnHelpersHaveItsRankRightly) {
  Add(10, 1, "SYNCLINE_RANK=3 RANK=3");
  Add(11, 10, "SYNCLINE_RANK=3 RANK=3");
  Add(12, 11, "SYNCLINE_RANK=3 RANK=3");
  EXPECT_THAT(Complaints(), IsEmpty());
}

TEST_F(SharedRanks, OtherJobsAndRanksOfLaunchersAreNobodysMistake) {
  Add(10, 1, "SYNCLINE_RANK=3", "a");
  Add(11, 1, "SYNCLINE_RANK=3", "b");
  Add(12, 1, "RANK=3", "c");
  Add(13, 1, "RANK=3", "c");
  EXPECT_THAT(Complaints(), IsEmpty());
}

}  // namespace
}  // namespace syncline::agent
