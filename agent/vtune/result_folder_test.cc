// SPDX-License-Identifier: Apache-2.0
#include "agent/vtune/result_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "common/files.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/syncline-vtune-XXXXXX"};
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name.data();
    auto made = ResultFolder::Make(root_, ::geteuid());
    ASSERT_TRUE(made.ok()) << made.status();
    folder_ = std::make_unique<ResultFolder>(*std::move(made));
    fs::create_directories(folder_->path() / "result" / "data.0");
    Write("result/result.vtune", "abc");
    Write("result/data.0/trace", std::string(5000, 'x'));
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(folder_->path() / name, bytes).ok());
  }
  absl::StatusOr<CopiedResult> Copy(uint64_t bytes_max = 1 << 20) {
    return folder_->Copy("result", root_ / "kept", {.bytes_max = bytes_max});
  }

  fs::path root_;
  std::unique_ptr<ResultFolder> folder_;
};

TEST_F(Folder, IsItsUsersAlone) {
  struct stat facts {};
  ASSERT_EQ(::stat(folder_->path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0700u);
  EXPECT_EQ(facts.st_uid, ::geteuid());
}

TEST_F(Folder, IsCopiedAndRemoved) {
  const auto copied = Copy();
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->bytes, 5003u);
  EXPECT_EQ(copied->left_out, 0u);
  EXPECT_EQ(copied->data_left_out, 0u);
  EXPECT_EQ(*ReadFile(root_ / "kept" / "result.vtune"), "abc");
  EXPECT_EQ(ReadFile(root_ / "kept" / "data.0" / "trace")->size(), 5000u);
  folder_->Remove();
  EXPECT_FALSE(fs::exists(folder_->path()));
}

TEST_F(Folder, LinksAndWhatIsNoFileStayOut) {
  Write("secret", "not a part of it");
  fs::create_symlink("/etc/passwd", folder_->path() / "result" / "link");
  fs::create_directory_symlink("/etc", folder_->path() / "result" / "folder");
  fs::create_symlink("../secret", folder_->path() / "result" / "up");
  ASSERT_EQ(::mkfifo((folder_->path() / "result" / "fifo").c_str(), 0600), 0);
  Write("result/\xff", "no name");
  const auto copied = Copy();
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->bytes, 5003u);
  EXPECT_EQ(copied->left_out, 5u);
  EXPECT_EQ(copied->data_left_out, 1u) << "the name";
  folder_->Remove();
  EXPECT_FALSE(fs::exists(folder_->path()));
  EXPECT_TRUE(fs::exists("/etc/passwd"));
}

TEST_F(Folder, FilesOfOthersStayOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown((folder_->path() / "result" / "data.0" / "trace").c_str(), 1, 1), 0);
  const auto copied = Copy();
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->bytes, 3u);
  EXPECT_EQ(copied->left_out, 1u);
  EXPECT_EQ(copied->data_left_out, 1u);
}

TEST_F(Folder, AResultThatIsALinkIsNoResult) {
  fs::remove_all(folder_->path() / "result");
  fs::create_directory_symlink("/etc", folder_->path() / "result");
  EXPECT_FALSE(Copy().ok());
  EXPECT_FALSE(fs::exists(root_ / "kept" / "passwd"));
}

TEST_F(Folder, NoResultIsNotFound) {
  fs::remove_all(folder_->path() / "result");
  EXPECT_TRUE(absl::IsNotFound(Copy().status()));
}

TEST_F(Folder, APlaceThatIsGoneIsNotAResultThatIsMissing) {
  ASSERT_TRUE(WriteFileAtomically(root_ / "file", "x").ok());
  const auto copied = folder_->Copy("result", root_ / "file" / "kept", {.bytes_max = 1 << 20});
  EXPECT_FALSE(copied.ok());
  EXPECT_FALSE(absl::IsNotFound(copied.status())) << copied.status();
  ASSERT_EQ(::symlink("nowhere/at/all", (root_ / "gone").c_str()), 0);
  const auto gone = folder_->Copy("result", root_ / "gone", {.bytes_max = 1 << 20});
  EXPECT_FALSE(gone.ok());
  EXPECT_FALSE(absl::IsNotFound(gone.status())) << gone.status();
}

TEST_F(Folder, LimitsHold) {
  const auto large = Copy(/*bytes_max=*/100);
  EXPECT_TRUE(absl::IsResourceExhausted(large.status()));
  fs::remove_all(root_ / "kept");
  const auto late =
      folder_->Copy("result", root_ / "kept", {.bytes_max = 1 << 20, .late = [] { return true; }});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status()));
  fs::remove_all(root_ / "kept");
  const auto many =
      folder_->Copy("result", root_ / "kept", {.bytes_max = 1 << 20, .entries_max = 1});
  EXPECT_THAT(many.status().message(), HasSubstr("more than 1 files"));
}

}  // namespace
}  // namespace syncline::agent
