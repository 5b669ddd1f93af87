// SPDX-License-Identifier: Apache-2.0
#include "common/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace syncline {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / "syncline_files_test";
    std::filesystem::remove_all(directory_);
    ASSERT_TRUE(MakeDirectories(directory_ / "a/b").ok());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
};

TEST_F(Files, AFileEndsWhereItsFirstHoleBegins) {
  const std::filesystem::path path = directory_ / "sparse";
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT, 0600));
  const std::string page(1 << 16, 'x');
  EXPECT_EQ(BytesBeforeHole(file.get(), 100), 0u);
  ASSERT_EQ(::pwrite(file.get(), page.data(), page.size(), 0), 1 << 16);
  EXPECT_EQ(BytesBeforeHole(file.get(), 1 << 30), 1u << 16);
  EXPECT_EQ(BytesBeforeHole(file.get(), 100), 100u);
  ASSERT_EQ(::ftruncate(file.get(), 1 << 30), 0);
  EXPECT_EQ(BytesBeforeHole(file.get(), 1 << 30), 1u << 16);
  ASSERT_EQ(::pwrite(file.get(), "x", 1, 1 << 29), 1);
  EXPECT_EQ(BytesBeforeHole(file.get(), 1 << 30), 1u << 16);
}

TEST_F(Files, ATemporaryNameThatIsTakenIsNotWrittenTo) {
  ASSERT_TRUE(WriteFileAtomically(directory_ / "secret", "secret").ok());
  const std::string planted = (directory_ / "a/new.tmp.").string() + std::to_string(::getpid());
  std::filesystem::create_hard_link(directory_ / "secret", planted);
  ASSERT_TRUE(WriteFileAtomically(directory_ / "a/new", "ours").ok());
  EXPECT_EQ(ReadFile(directory_ / "secret").value(), "secret");
  EXPECT_EQ(ReadFile(directory_ / "a/new").value(), "ours");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_ / "a"), {}), 3)
      << "b, new and what was planted";
}

TEST_F(Files, WritesAndReadsBack) {
  const auto path = directory_ / "a/b/file";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  ASSERT_TRUE(WriteFileAtomically(path, std::string("new\0bytes", 9)).ok());
  EXPECT_EQ(*ReadFile(path), std::string("new\0bytes", 9));
  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->bytes().size(), 9u);
}

TEST_F(Files, ErrorsNameThePath) {
  const auto missing = ReadFile(directory_ / "nothing");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("nothing"), std::string::npos);
  EXPECT_EQ(ReadFile(directory_, 1).status().ok(), false);
  EXPECT_FALSE(MappedFile::Open(directory_).ok());
}

TEST_F(Files, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  const std::pair<std::filesystem::path, const char*> cases[] = {{directory_ / "fifo", "a FIFO"},
                                                                 {directory_ / "a", "a directory"},
                                                                 {"/dev/zero", "a device"}};
  for (const auto& [path, what] : cases) {
    for (const absl::Status& status :
         {ReadFile(path).status(), MappedFile::Open(path).status(), OpenRegular(path).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << path;
      const std::string message(status.message());
      EXPECT_NE(message.find(what), std::string::npos) << message;
      EXPECT_NE(message.find(path.filename().string()), std::string::npos) << message;
    }
  }
}

TEST_F(Files, APipeThatTheUserNamedIsRead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "left 10.0.0.1", 13), 13);
  ::close(ends[1]);
  EXPECT_EQ(ReadFileOrPipe("/dev/fd/" + std::to_string(ends[0]), 100).value(), "left 10.0.0.1");
  ::close(ends[0]);
}

TEST_F(Files, ALimitIsALimit) {
  ASSERT_TRUE(WriteFileAtomically(directory_ / "f", "12345").ok());
  EXPECT_EQ(ReadFile(directory_ / "f", 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ReadFile(directory_ / "f", 5).ok());
}

TEST_F(Files, ADirectoryInTheWayIsSaid) {
  ASSERT_TRUE(WriteFileAtomically(directory_ / "f", "x").ok());
  EXPECT_FALSE(MakeDirectories(directory_ / "f").ok());
  EXPECT_FALSE(MakeDirectories(directory_ / "f/g").ok());
}

TEST_F(Files, AppendsAllOrNothing) {
  const auto path = directory_ / "records";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  // A limit on the file's size is a disk that takes half of a write.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_TRUE(AppendWhole(fd, std::string(64, 'a'), path).ok());
  EXPECT_FALSE(AppendWhole(fd, std::string(64, 'b'), path).ok());
  EXPECT_TRUE(AppendWhole(fd, std::string(36, 'c'), path).ok());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_DFL);
  ::close(fd);
  EXPECT_EQ(*ReadFile(path), std::string(64, 'a') + std::string(36, 'c'));
}

TEST(WriteOutput, ReplacesFilesAndNothingElse) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "write_output_test";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const std::filesystem::path file = directory / "file";
  const std::filesystem::path link = directory / "link";
  ASSERT_TRUE(WriteOutput(file, "one").ok());
  std::filesystem::create_symlink("file", link);
  ASSERT_TRUE(WriteOutput(link, "two").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(ReadFile(file).value_or(""), "two");
  ASSERT_TRUE(WriteOutput("/dev/null", "three").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_FALSE(WriteOutput(directory, "four").ok());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace syncline
