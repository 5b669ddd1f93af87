// SPDX-License-Identifier: Apache-2.0
#include "coordinator/clocks/sample_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "clocksync/sample_file.h"
#include "clocksync/thinning.h"
#include "common/files.h"

namespace syncline::clocks {
namespace {

namespace fs = std::filesystem;
using clocksync::ProbeSample;

constexpr int64_t kSecond = 1'000'000'000;
constexpr size_t kSampleBytes = 34;

std::vector<ProbeSample> Burst(int64_t second) {
  std::vector<ProbeSample> samples;
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t t = second * kSecond + i * 100'000 + 1;
    const int64_t way = 1'000 + (second * 7 + i * 13) % 97;
    samples.push_back({t, t + way, t + way + 500, t + 2 * way + 500});
  }
  return samples;
}

class SampleLogTest : public testing::Test {
 protected:
  SampleLogTest()
      : directory_(fs::path(testing::TempDir()) /
                   (std::string("syncline_sample_log_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name())),
        path_(directory_ / "a--b.samples") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~SampleLogTest() override { fs::remove_all(directory_); }

  std::vector<ProbeSample> InFile() const {
    const auto bytes = ReadFile(path_);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const auto edge = clocksync::DecodeSamples(bytes.ok() ? *bytes : "");
    EXPECT_TRUE(edge.ok()) << edge.status();
    EXPECT_EQ(edge.ok() ? edge->truncated_bytes : 0, 0u);
    return edge.ok() ? edge->samples : std::vector<ProbeSample>();
  }

  fs::path directory_;
  fs::path path_;
};

bool Same(const ProbeSample& a, const ProbeSample& b) {
  return a.t1_local_ns == b.t1_local_ns && a.t2_remote_ns == b.t2_remote_ns &&
         a.t3_remote_ns == b.t3_remote_ns && a.t4_local_ns == b.t4_local_ns;
}

TEST_F(SampleLogTest, TheFirstTwoMinutesAreKeptWhole) {
  SampleLog log(path_, "a", "b");
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE(log.Append({}).ok());
  EXPECT_TRUE(InFile().empty());
  for (int64_t second = 0; second < 120; ++second) ASSERT_TRUE(log.Append(Burst(second)).ok());
  EXPECT_EQ(InFile().size(), 120u * 8);
}

TEST_F(SampleLogTest, OlderSamplesAreThinnedAsTheyWouldBeAtOnce) {
  SampleLog log(path_, "a", "b");
  std::vector<ProbeSample> all;
  for (int64_t second = 0; second < 600; ++second) {
    const std::vector<ProbeSample> burst = Burst(second);
    all.insert(all.end(), burst.begin(), burst.end());
    ASSERT_TRUE(log.Append(burst).ok());
  }
  const std::vector<ProbeSample> kept = InFile();
  EXPECT_LT(kept.size(), all.size() / 2);
  // Up to some cell it is what thinning everything gives, from there on everything.
  const std::vector<ProbeSample> thin = clocksync::Thinned(all);
  size_t i = 0;
  while (i < kept.size() && i < thin.size() && Same(kept[i], thin[i])) ++i;
  ASSERT_GT(i, 0u);
  EXPECT_GE(kept[i - 1].t1_local_ns, 400 * kSecond);
  for (size_t back = 1; back <= 60 * 8; ++back) {
    ASSERT_TRUE(Same(kept[kept.size() - back], all[all.size() - back])) << back;
  }
}

TEST_F(SampleLogTest, AClockThatGoesBackBeginsAnew) {
  SampleLog log(path_, "a", "b");
  for (int64_t second = 1000; second < 1300; ++second) ASSERT_TRUE(log.Append(Burst(second)).ok());
  for (int64_t second = 0; second < 300; ++second) ASSERT_TRUE(log.Append(Burst(second)).ok());
  const std::vector<ProbeSample> kept = InFile();
  EXPECT_LT(kept.size(), 600u * 8 / 2 + 130 * 8);
  int went_back = 0;
  for (size_t i = 1; i < kept.size(); ++i) {
    if (kept[i].t1_local_ns < kept[i - 1].t1_local_ns) ++went_back;
  }
  EXPECT_EQ(went_back, 1);
}

// A disk that is full for a while, here: half a record behind the last whole one.
TEST_F(SampleLogTest, WhatAFailedWriteLeftIsOverwritten) {
  SampleLog log(path_, "a", "b");
  ASSERT_TRUE(log.Append(Burst(0)).ok());
  const auto before = ReadFile(path_);
  ASSERT_TRUE(WriteFileAtomically(path_, *before + std::string(kSampleBytes / 2, 'x')).ok());
  ASSERT_TRUE(log.Append(Burst(1)).ok());
  EXPECT_EQ(InFile().size(), 16u);
}

TEST_F(SampleLogTest, AFileThatIsRemovedOrCutBeginsAnewAndIsTold) {
  SampleLog log(path_, "a", "b");
  for (int64_t second = 0; second < 200; ++second) ASSERT_TRUE(log.Append(Burst(second)).ok());
  fs::remove(path_);
  EXPECT_EQ(log.Append(Burst(200)).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(InFile().size(), 8u);
  fs::resize_file(path_, 100);
  EXPECT_EQ(log.Append(Burst(201)).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(InFile().size(), 8u);
  for (int64_t second = 202; second < 500; ++second) ASSERT_TRUE(log.Append(Burst(second)).ok());
  EXPECT_LT(InFile().size(), 200u * 8);
}

// Damage in the middle: what could not be thinned is left as it is, and told once.
TEST_F(SampleLogTest, WhatCannotBeReadBackIsLeftAsItIs) {
  SampleLog log(path_, "a", "b");
  for (int64_t second = 0; second < 100; ++second) ASSERT_TRUE(log.Append(Burst(second)).ok());
  std::string bytes = ReadFile(path_).value();
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(path_, std::ios::binary) << bytes;
  int failed = 0;
  for (int64_t second = 100; second < 160; ++second) {
    failed += log.Append(Burst(second)).ok() ? 0 : 1;
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(fs::file_size(path_), bytes.size() + 60 * 8 * kSampleBytes);
}

TEST_F(SampleLogTest, FailuresAreToldAndNothingStops) {
  SampleLog nowhere(directory_ / "no" / "such", "a", "b");
  EXPECT_FALSE(nowhere.Append(Burst(0)).ok());
  EXPECT_TRUE(SampleLog("", "a", "b").Append(Burst(0)).ok());
  SampleLog log(path_, "a", "b");
  ASSERT_TRUE(log.Append(Burst(0)).ok());
  fs::remove_all(directory_);
  EXPECT_FALSE(log.Append(Burst(1)).ok());
}

}  // namespace
}  // namespace syncline::clocks
