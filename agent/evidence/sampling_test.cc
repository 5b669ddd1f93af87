// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/sampling.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "agent/evidence/evidence_recorder.h"
#include "agent/evidence/fake_node.h"
#include "agent/evidence/page_cost.h"
#include "agent/host/log.h"
#include "common/files.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

class SamplingTest : public FakeNode {
 protected:
  EvidenceOptions Options() {
    EvidenceOptions options;
    options.sampler.proc = proc_;
    options.thread_cpu_ns = [this] { return cpu_ns_ += cost_ns_; };
    options.page_ns = [] { return 700; };
    return options;
  }
  evidence::Evidence Written() {
    const auto text = ReadFile(root_ / "r1" / "evidence" / evidence::kFileName);
    EXPECT_TRUE(text.ok());
    auto parsed = evidence::ParseEvidence(text.ok() ? *text : "");
    EXPECT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->damaged_lines, 0U);
    return *std::move(parsed);
  }
  int64_t cost_ns_ = 10'000;  // of a round
  int64_t cpu_ns_ = 0;
};

TEST(SampleRate, FallsBeforeItTakesOnePercent) {
  SampleRate rate;
  EXPECT_FALSE(rate.Measured(7'000'000, 1'000'000'000));
  EXPECT_TRUE(rate.Measured(8'000'000, 1'000'000'000));
  EXPECT_EQ(rate.period_ns(), 2 * SampleRate::kUsualNs);
  EXPECT_FALSE(rate.Measured(4'000'000, 1'000'000'000)) << "20 a second might take 8 ms";
  EXPECT_FALSE(rate.Measured(3'000'000, 1'000'000'000)) << "6 ms: no room for a busier second";
  EXPECT_TRUE(rate.Measured(2'000'000, 1'000'000'000));
  EXPECT_EQ(rate.period_ns(), SampleRate::kUsualNs);
  EXPECT_EQ(rate.slowest_ns(), 2 * SampleRate::kUsualNs);
  EXPECT_FALSE(rate.Measured(0, 1'000'000'000));
  for (int i = 0; i < 20; ++i) rate.Measured(500'000'000, 1'000'000'000);
  EXPECT_EQ(rate.period_ns(), SampleRate::kSlowestNs);
  EXPECT_EQ(SampleRate::SearchPauseNs(1'000'000), 2'000'000'000);
  EXPECT_EQ(SampleRate::SearchPauseNs(100'000'000), 40'000'000'000);
}

TEST_F(SamplingTest, EverythingIsReadBeforeBeginReturnsAndAtTheEnd) {
  Sampling sampling(Directories(), &clock_, Options());
  sampling.Find();
  ASSERT_TRUE(sampling.Begin(root_ / "r1").ok());
  EXPECT_EQ(Written().thread_samples.size(), 1U);
  EXPECT_FALSE(Written().ended);
  SetTask(1234, 100, 20);
  sampling.End();
  EXPECT_TRUE(Written().ended);
  EXPECT_EQ(Written().thread_samples.back().on_cpu_ns, 100);
  EXPECT_TRUE(Written().gaps.empty());
  EXPECT_EQ(Written().page_ns, 700);
  EXPECT_TRUE(sampling.TakeComplaints().empty());
}

TEST(PageCost, IsMeasured) {
  const int64_t page_ns = MeasurePageNs();
  EXPECT_GT(page_ns, 0);
  EXPECT_LT(page_ns, 1'000'000) << "its own processor time";
}

TEST_F(SamplingTest, WhenItStoodStillTheGapIsSaid) {
  Sampling sampling(Directories(), &clock_, Options());
  ASSERT_TRUE(sampling.Begin(root_ / "r1").ok());
  for (int i = 0; i < 5; ++i) clock_.SleepNs(sampling.Round());
  EXPECT_TRUE(Written().gaps.empty());
  const int64_t last_ns = Written().thread_samples.back().until_ns;
  clock_.SleepNs(3'000'000'000);
  sampling.Round();
  ASSERT_EQ(Written().gaps.size(), 1U);
  EXPECT_LE(Written().gaps[0].begin_ns, last_ns);
  EXPECT_GE(Written().gaps[0].end_ns, last_ns + 3'000'000'000);
}

// A job whose steps are as long as the period is not looked at in one place of its steps alone.
TEST_F(SamplingTest, ItIsNotInStepWithTheProgram) {
  Sampling sampling(Directories(), &clock_, Options());
  ASSERT_TRUE(sampling.Begin(root_ / "r1").ok());
  std::vector<int> places(5);
  int64_t all_ns = 0;
  constexpr int kRounds = 500;
  for (int i = 0; i < kRounds; ++i) {
    const int64_t pause_ns = sampling.Round();
    clock_.SleepNs(pause_ns);
    all_ns += pause_ns;
    ++places[static_cast<size_t>(clock_.MonotonicNs() % SampleRate::kUsualNs * 5 /
                                 SampleRate::kUsualNs)];
  }
  EXPECT_TRUE(Written().gaps.empty());
  EXPECT_NEAR(static_cast<double>(all_ns) / kRounds, SampleRate::kUsualNs, 5e6);
  for (const int found : places) EXPECT_GT(found, kRounds / 5 / 2);
}

TEST_F(SamplingTest, WhatWouldTakeTooMuchIsDoneLessOftenAndSaid) {
  Sampling sampling(Directories(), &clock_, Options());
  ASSERT_TRUE(sampling.Begin(root_ / "r1").ok());
  cost_ns_ = 450'000;  // 20 times a second: 0.9 %; a quarter of 1 % is for searches
  for (int i = 0; i < 100; ++i) clock_.SleepNs(sampling.Round());
  const evidence::Evidence evidence = Written();
  ASSERT_EQ(evidence.rates.size(), 2U);
  EXPECT_EQ(evidence.rates[0].period_ns, 50'000'000);
  EXPECT_EQ(evidence.rates[1].period_ns, 100'000'000);
  EXPECT_NE(evidence.rates[1].reason, "");
  EXPECT_TRUE(evidence.gaps.empty());
  cost_ns_ = 10'000;
  for (int i = 0; i < 30; ++i) clock_.SleepNs(sampling.Round());
  ASSERT_EQ(Written().rates.size(), 3U);
  EXPECT_EQ(Written().rates[2].period_ns, 50'000'000);
  EXPECT_EQ(Written().rates[2].reason, "");
  const auto complaints = sampling.TakeComplaints();
  ASSERT_EQ(complaints.size(), 1U);
  EXPECT_NE(complaints[0].find("every 100 ms"), std::string::npos) << complaints[0];
}

TEST_F(SamplingTest, AtItsLimitTheFileEndsAndSaysSo) {
  EvidenceOptions options = Options();
  options.bytes_max = 4096;
  Sampling sampling(Directories(), &clock_, options);
  ASSERT_TRUE(sampling.Begin(root_ / "r1").ok());
  for (int i = 0; i < 200; ++i) clock_.SleepNs(sampling.Round());
  sampling.End();
  EXPECT_FALSE(Written().ended);
  ASSERT_FALSE(Written().notes.empty());
  EXPECT_NE(Written().notes.back().find("limit"), std::string::npos);
  EXPECT_LT(fs::file_size(root_ / "r1" / "evidence" / evidence::kFileName), 4096U + 200);
  EXPECT_EQ(sampling.TakeComplaints().size(), 1U);
}

// The whole source, with its thread, on a real disk: what it writes is whole.
TEST_F(SamplingTest, ARecordingHasItsSamplesFromBeginToEnd) {
  SystemClock clock;
  Log log(-1, &clock);
  EvidenceOptions options;
  options.sampler.proc = proc_;
  EvidenceRecorder recorder(Directories(), &clock, &log, options);
  recorder.Find({});
  recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
  recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
  recorder.End();
  EXPECT_TRUE(recorder.Collect().empty());
  const auto text = ReadFile(root_ / "r1/evidence" / evidence::kFileName);
  ASSERT_TRUE(text.ok());
  const auto evidence = evidence::ParseEvidence(*text);
  ASSERT_TRUE(evidence.ok());
  EXPECT_TRUE(evidence->ended);
  EXPECT_EQ(evidence->damaged_lines, 0);
  EXPECT_GE(evidence->thread_samples.size(), 1);
  EXPECT_EQ(evidence->rates.front().period_ns, SampleRate::kUsualNs);
}

TEST_F(SamplingTest, ADirectoryThatCannotBeMadeIsAComplaint) {
  SystemClock clock;
  Log log(-1, &clock);
  EvidenceRecorder recorder([] { return std::vector<std::pair<uint32_t, fs::path>>(); }, &clock,
                            &log, {});
  Put(root_ / "r2/evidence", "a file");
  recorder.Begin({.recording_id = "r2", .directory = root_ / "r2"});
  recorder.End();
  EXPECT_EQ(recorder.Collect().size(), 1);
}

}  // namespace
}  // namespace syncline::agent
