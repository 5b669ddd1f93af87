// SPDX-License-Identifier: Apache-2.0
#include "agent/host/process_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::UnorderedElementsAre;

constexpr int kEntriesMax = 20;

class ProcessFolderTest : public testing::Test {
 protected:
  ProcessFolderTest() {
    std::string pattern = testing::TempDir() + "folder-XXXXXX";
    runtime_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(runtime_ / "ours");
    EXPECT_EQ(::chmod((runtime_ / "ours").c_str(), 0700), 0);
  }
  ~ProcessFolderTest() override { std::filesystem::remove_all(runtime_); }

  void Make(const std::string& name) {
    const Descriptor file(::open((runtime_ / "ours" / name).c_str(), O_WRONLY | O_CREAT, 0600));
    ASSERT_GE(file.get(), 0) << name;
  }
  absl::Status Clear() {
    const auto folder = OpenProcessFolder(runtime_, ::geteuid(), "ours");
    if (!folder.ok()) return folder.status();
    return ClearProcessFolder(folder->get(), kEntriesMax, [this](std::string_view name) {
      ++asked_;
      return name.ends_with(".ours");
    });
  }
  std::vector<std::string> Left() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(runtime_ / "ours")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::filesystem::path runtime_;
  int asked_ = 0;  // names that were looked at
};

TEST_F(ProcessFolderTest, OnlyRegularFilesOfOursAreRemoved) {
  Make("a.ours");
  Make("b.ours");
  Make("b.theirs");
  std::filesystem::create_directory(runtime_ / "ours/folder.ours");
  std::filesystem::create_symlink("b.theirs", runtime_ / "ours/link.ours");
  ASSERT_EQ(::mkfifo((runtime_ / "ours/pipe.ours").c_str(), 0600), 0);
  EXPECT_TRUE(Clear().ok());
  EXPECT_THAT(Left(), UnorderedElementsAre("b.theirs", "folder.ours", "link.ours", "pipe.ours"));
}

TEST_F(ProcessFolderTest, SoManyEntriesAreLookedAtAndNoMore) {
  constexpr int kForeign = 100;
  for (int i = 0; i < kForeign; ++i) Make(std::to_string(i));
  const absl::Status status = Clear();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_EQ(asked_, kEntriesMax);
  EXPECT_EQ(Left().size(), size_t{kForeign});
}

TEST_F(ProcessFolderTest, WhatIsOverTheBoundIsRemovedTheNextTime) {
  for (int i = 0; i < kEntriesMax + 10; ++i) Make(std::to_string(i) + ".ours");
  EXPECT_TRUE(absl::IsOutOfRange(Clear()));
  EXPECT_EQ(Left().size(), 10u);
  EXPECT_TRUE(Clear().ok());
  EXPECT_TRUE(Left().empty());
}

TEST_F(ProcessFolderTest, AFolderThatOthersMayEnterIsNotOpened) {
  ASSERT_EQ(::chmod((runtime_ / "ours").c_str(), 0755), 0);
  Make("a.ours");
  EXPECT_TRUE(absl::IsPermissionDenied(Clear()));
  EXPECT_EQ(Left().size(), 1u);
}

TEST_F(ProcessFolderTest, AStemIsThatOfAProcesssControlBlock) {
  EXPECT_TRUE(IsStemOfProcess("4026531836-1234-98765"));
  for (const char* other : {"", "1-2", "1-2-3-4", "1-02-3", "1--2-3", "a-b-c", "1-2-3.block"}) {
    EXPECT_FALSE(IsStemOfProcess(other)) << other;
  }
}

}  // namespace
}  // namespace syncline::agent
