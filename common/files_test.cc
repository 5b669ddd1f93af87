#include "common/files.h"

#include <filesystem>

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

}  // namespace
}  // namespace syncline
