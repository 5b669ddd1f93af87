// SPDX-License-Identifier: Apache-2.0
// Test support: the two-node job as a recording on disk, to be damaged, moved and merged.
#ifndef SYNCLINE_COORDINATOR_MERGE_JOB_TEST_H_
#define SYNCLINE_COORDINATOR_MERGE_JOB_TEST_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "coordinator/merge/merge.h"
#include "coordinator/merge/test_recording.h"
#include "coordinator/recording/recording.h"

namespace syncline::merge::testing {

inline constexpr char kTrace[] = "ust/uid/0/64-bit";
inline constexpr int64_t kWallErrorNs = -6'000'000;  // of the worker

class JobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/syncline-merge-XXXXXX"};
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name.data();
    run_ = root_ / "run";
    WriteJob("first", kWallErrorNs, run_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::filesystem::path Trace(const char* node) const {
    return recording::Layout(run_).Trace(node) / kTrace;
  }
  MergeOptions Of(const std::vector<std::string>& inputs) const {
    MergeOptions options;
    options.input.inputs = inputs;
    options.out_dir = root_ / "merged";
    return options;
  }
  void Change(const std::function<void(recording::Recording*)>& change) const {
    absl::StatusOr<recording::Recording> recording = recording::ReadRecording(run_);
    ASSERT_TRUE(recording.ok()) << recording.status();
    change(&*recording);
    ASSERT_TRUE(recording::WriteRecording(run_, *recording).ok());
  }

  std::filesystem::path root_;
  std::filesystem::path run_;
};

}  // namespace syncline::merge::testing

#endif  // SYNCLINE_COORDINATOR_MERGE_JOB_TEST_H_
