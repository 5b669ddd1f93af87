// SPDX-License-Identifier: Apache-2.0
#include "common/trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace syncline {
namespace {

constexpr uint32_t kSomebody = 61234;

class TrustedFileTest : public testing::Test {
 protected:
  TrustedFileTest() : opened_(-1) {
    std::string pattern = testing::TempDir() + "trusted-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(root_ / "user");
    ::chmod((root_ / "user").c_str(), 0700);
    Write("user/good", "good");
    Write("secret", "secret");
    auto opened = OpenTrustedDirectory(AT_FDCWD, root_ / "user", trust_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    opened_ = *std::move(opened);
  }
  ~TrustedFileTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
    ::chmod((root_ / name).c_str(), 0600);
  }
  std::string Secret() { return ReadFile(root_ / "secret").value(); }
  // What opening "user/NAME" is refused with, in both ways; empty: it is not.
  std::string Refusal(const std::string& name) {
    const auto opened = OpenTrustedFile(opened_.get(), root_ / "user" / name, trust_);
    const auto made = OpenOrMakeTrustedFile(opened_.get(), root_ / "user" / name, trust_);
    EXPECT_EQ(opened.status(), made.status());
    EXPECT_TRUE(opened.ok() || absl::IsPermissionDenied(opened.status())) << opened.status();
    return std::string(opened.status().message());
  }

  std::filesystem::path root_;
  const TrustOptions trust_ = {.owner = ::geteuid(), .flags = O_RDWR};
  Descriptor opened_;
};

TEST_F(TrustedFileTest, WhatIsPlantedUnderANameIsNotOpened) {
  EXPECT_EQ(Refusal("good"), "");
  std::filesystem::create_symlink("../secret", root_ / "user/link");
  std::filesystem::create_symlink("../nothing", root_ / "user/dangling");
  std::filesystem::create_hard_link(root_ / "secret", root_ / "user/second");
  ASSERT_EQ(::mkfifo((root_ / "user/pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(root_ / "user/folder");
  EXPECT_NE(Refusal("link").find("it is a link"), std::string::npos) << Refusal("link");
  EXPECT_NE(Refusal("dangling").find("it is a link"), std::string::npos);
  EXPECT_NE(Refusal("second").find("second name"), std::string::npos) << Refusal("second");
  EXPECT_NE(Refusal("pipe").find("it is a FIFO"), std::string::npos) << Refusal("pipe");
  EXPECT_NE(Refusal("folder").find("it is a directory"), std::string::npos) << Refusal("folder");
  ::chmod((root_ / "user/good").c_str(), 0640);
  EXPECT_NE(Refusal("good").find("mode 0640"), std::string::npos) << Refusal("good");
  EXPECT_EQ(Secret(), "secret");
  EXPECT_FALSE(std::filesystem::exists(root_ / "nothing"));
}

TEST_F(TrustedFileTest, AnAbsentFileIsMadeOrNotFound) {
  EXPECT_TRUE(
      absl::IsNotFound(OpenTrustedFile(opened_.get(), root_ / "user/new", trust_).status()));
  EXPECT_TRUE(OpenOrMakeTrustedFile(opened_.get(), root_ / "user/new", trust_).ok());
  EXPECT_TRUE(OpenTrustedFile(opened_.get(), root_ / "user/new", trust_).ok());
}

TEST_F(TrustedFileTest, AFileIsOpenedInTheDirectoryThatWasChecked) {
  std::filesystem::create_directory(root_ / "elsewhere");
  std::filesystem::rename(root_ / "user", root_ / "moved");
  std::filesystem::create_symlink("elsewhere", root_ / "user");
  EXPECT_EQ(Refusal("good"), "") << "the one that was opened before";
  EXPECT_TRUE(OpenOrMakeTrustedFile(opened_.get(), root_ / "user/new", trust_).ok());
  EXPECT_TRUE(std::filesystem::exists(root_ / "moved/new"));
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "elsewhere"));
  EXPECT_TRUE(
      absl::IsPermissionDenied(OpenTrustedDirectory(AT_FDCWD, root_ / "user", trust_).status()));
}

TEST_F(TrustedFileTest, WhatIsMadeByRootBelongsToTheOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown((root_ / "user").c_str(), kSomebody, kSomebody), 0);
  EXPECT_TRUE(
      absl::IsPermissionDenied(OpenTrustedDirectory(AT_FDCWD, root_ / "user", trust_).status()))
      << "not root's";
  const TrustOptions theirs = {.owner = kSomebody, .flags = O_RDWR};
  const auto directory = OpenTrustedDirectory(AT_FDCWD, root_ / "user", theirs);
  ASSERT_TRUE(directory.ok()) << directory.status();
  ASSERT_TRUE(OpenOrMakeTrustedFile(directory->get(), root_ / "user/new", theirs).ok());
  struct stat info;
  ASSERT_EQ(::stat((root_ / "user/new").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kSomebody);
  EXPECT_TRUE(absl::IsPermissionDenied(
      OpenOrMakeTrustedFile(directory->get(), root_ / "user/good", theirs).status()))
      << "root's file in it";
}

TEST_F(TrustedFileTest, TheWayToADirectoryIsNobodyElses) {
  const uint32_t me = ::geteuid();
  const std::filesystem::path root = std::filesystem::canonical(root_);
  EXPECT_EQ(CheckWay(root / "user/lttng/more", me), absl::OkStatus()) << "it ends early";
  std::filesystem::create_symlink("user", root / "link");
  EXPECT_EQ(CheckWay(root / "link/../link/lttng", me), absl::OkStatus());
  ::chmod((root / "user").c_str(), 0777);
  EXPECT_TRUE(absl::IsPermissionDenied(CheckWay(root / "link/lttng", me)));
  ::chmod((root / "user").c_str(), 01777);
  EXPECT_EQ(CheckWay(root / "link/lttng", me), absl::OkStatus()) << "like /tmp";
  std::filesystem::create_symlink("loop", root / "loop");
  EXPECT_TRUE(absl::IsPermissionDenied(CheckWay(root / "loop/lttng", me)));
  if (me != 0) return;
  ASSERT_EQ(::lchown((root / "link").c_str(), kSomebody, kSomebody), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(CheckWay(root / "link/lttng", me)));
  std::filesystem::create_directory(root / "user/lttng");
  ASSERT_EQ(::chown((root / "user/lttng").c_str(), kSomebody, kSomebody), 0);
  const absl::Status squatted = CheckWay(root / "user/lttng", me);
  EXPECT_NE(squatted.message().find("a directory of user 61234"), std::string::npos) << squatted;
  EXPECT_EQ(CheckWay(root / "user/lttng", kSomebody), absl::OkStatus());
}

}  // namespace
}  // namespace syncline
