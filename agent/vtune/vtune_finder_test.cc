// SPDX-License-Identifier: Apache-2.0
#include "agent/vtune/vtune_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

#include "common/files.h"

namespace syncline::agent {
namespace {

using ::testing::HasSubstr;

class FakeRunner : public ProcessRunner {
 public:
  absl::StatusOr<RunResult> Run(const SpawnOptions& options, int) override {
    asked.push_back(options.arguments);
    return answer;
  }
  std::vector<std::vector<std::string>> asked;
  absl::StatusOr<RunResult> answer = RunResult{0, "VTune 2025.0\nCopyright\n"};
};

class Finder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/syncline-vtune-XXXXXX"};
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name.data();
    options_.versions = root_ / "versions";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Install(const std::filesystem::path& directory) {
    std::filesystem::create_directories(root_ / directory);
    const std::filesystem::path file = root_ / directory / "vtune";
    EXPECT_TRUE(WriteFileAtomically(file, "#!/bin/sh\n", 0755).ok());
    return file.string();
  }
  std::string Found() {
    VtuneFinder finder(&runner_, options_);
    const auto tool = finder.Find();
    return tool.has_value() ? tool->path() : "";
  }

  std::filesystem::path root_;
  VtuneFinderOptions options_;
  FakeRunner runner_;
};

TEST_F(Finder, LooksWhereTheAgentWasToldThenInPathThenForTheNewestVersion) {
  EXPECT_EQ(Found(), "");
  Install("versions/2024.2/bin64");
  Install("versions/latest/bin64");
  const std::string newest = Install("versions/2024.10/bin64");
  EXPECT_EQ(Found(), newest);
  const std::string in_path = Install("bin");
  options_.path = "relative:/nowhere:" + (root_ / "bin").string();
  EXPECT_EQ(Found(), in_path);
  const std::string told = Install("told/bin64");
  options_.profiler_directory = (root_ / "told").string();
  EXPECT_EQ(Found(), told);
}

TEST_F(Finder, AsksForTheVersionOnceUntilTheFileChanges) {
  options_.path = root_ / "bin";
  const std::string file = Install("bin");
  VtuneFinder finder(&runner_, options_);
  EXPECT_EQ(finder.Find()->version(), "VTune 2025.0");
  EXPECT_EQ(finder.Find()->version(), "VTune 2025.0");
  ASSERT_EQ(runner_.asked.size(), 1u);
  EXPECT_EQ(runner_.asked[0], (std::vector<std::string>{file, "-version"}));
  runner_.answer = RunResult{0, "VTune 2026.0\n"};
  std::filesystem::last_write_time(
      file, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(finder.Find()->version(), "VTune 2026.0");
}

TEST_F(Finder, SaysWhyOneIsNotUsed) {
  options_.path = root_ / "bin";
  Install("bin");
  runner_.answer = RunResult{3, "no licence\n"};
  VtuneFinder finder(&runner_, options_);
  EXPECT_THAT(finder.Find()->problem(), HasSubstr("ends with code 3: no licence"));
  runner_.answer = absl::DeadlineExceededError("slow");
  const auto slow = finder.Find();
  EXPECT_EQ(slow->problem(), "");  // it may still collect
  EXPECT_THAT(slow->detail(), HasSubstr("did not say its version"));
}

TEST_F(Finder, AnAgentOfRootsRunsNothingThatOthersCouldHavePutThere) {
  options_.path = root_ / "bin";
  options_.only_roots = true;
  Install("bin");  // below /tmp, where everybody can write
  VtuneFinder finder(&runner_, options_);
  EXPECT_THAT(finder.Find()->problem(), HasSubstr("writable by root alone"));
  EXPECT_TRUE(runner_.asked.empty());
  EXPECT_TRUE(CheckOnlyRoots(std::filesystem::canonical("/bin/sh")).ok());
  EXPECT_FALSE(CheckOnlyRoots(root_ / "bin" / "vtune").ok());
  EXPECT_TRUE(absl::IsNotFound(CheckOnlyRoots("/nowhere/vtune")));
}

TEST_F(Finder, ALinkThatOthersCouldChangeIsNotFollowedLater) {
  std::filesystem::create_directories(root_ / "bin");
  const std::filesystem::path real = std::filesystem::canonical("/bin/sh");
  std::filesystem::create_symlink(real, root_ / "bin" / "vtune");
  options_.path = root_ / "bin";
  options_.only_roots = true;
  EXPECT_EQ(Found(), real.string());
  EXPECT_EQ(runner_.asked.at(0).at(0), real.string());
  EXPECT_FALSE(CheckOnlyRoots(root_ / "bin" / "vtune").ok());
}

TEST(Versions, AreOrderedByTheirNumbers) {
  EXPECT_TRUE(IsOlderVersion("2024.2.1", "2024.10"));
  EXPECT_TRUE(IsOlderVersion("2024.2", "2024.2.1"));
  EXPECT_FALSE(IsOlderVersion("2025.0", "2024.9"));
}

}  // namespace
}  // namespace syncline::agent
