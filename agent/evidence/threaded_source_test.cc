// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/threaded_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "agent/probe/clock.h"

namespace syncline::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Counts {
  std::atomic<int> made{0};
  std::atomic<int> worked{0};
  std::atomic<int> ended{0};
  bool begin_fails = false;
};

class CountingRun : public EvidenceRun {
 public:
  explicit CountingRun(Counts* counts) : counts_(counts) { ++counts_->made; }
  absl::Status Begin(const EvidenceWindow&) override {
    return counts_->begin_fails ? absl::InternalError("no room") : absl::OkStatus();
  }
  void Work(const std::stop_token& stop) override {
    ++counts_->worked;
    while (Wait(INT64_MAX / 2, stop)) {
    }
    ++counts_->ended;
  }
  void Fail(const absl::Status& status) override { said_ = std::string(status.message()); }
  std::vector<v1::Complaint> TakeComplaints() override {
    if (said_.empty()) return {};
    return Warnings({said_}, "free some");
  }

 private:
  Counts* const counts_;
  std::string said_;
};

class CountingSource : public ThreadedSource {
 public:
  CountingSource(Counts* counts, Log* log) : ThreadedSource("counting", log), counts_(counts) {}

 private:
  std::unique_ptr<EvidenceRun> MakeRun(const std::vector<uint32_t>&) override {
    return std::make_unique<CountingRun>(counts_);
  }
  Counts* const counts_;
};

class Threaded : public ::testing::Test {
 protected:
  SystemClock clock_;
  Log log_{STDERR_FILENO, &clock_};
  Counts counts_;
  CountingSource source_{&counts_, &log_};
};

TEST_F(Threaded, WorksFromBeginUntilEnd) {
  source_.Find({});
  source_.Begin({.recording_id = "a"});
  source_.Begin({.recording_id = "a"});
  source_.Find({});  // of a recording that goes on: nothing
  source_.End();
  EXPECT_THAT(source_.Collect(), IsEmpty());
  EXPECT_EQ(counts_.made, 1);
  EXPECT_EQ(counts_.worked, 1);
  EXPECT_EQ(counts_.ended, 1);
  EXPECT_THAT(source_.Collect(), IsEmpty());
}

TEST_F(Threaded, ARecordingThatWasGivenUpDoesNotHinderTheNextOne) {
  source_.Find({});
  source_.Begin({.recording_id = "a"});
  source_.End();  // and nobody collects
  source_.Find({});
  source_.Begin({.recording_id = "b"});
  source_.End();
  EXPECT_THAT(source_.Collect(), IsEmpty());
  EXPECT_EQ(counts_.worked, 2);
  EXPECT_EQ(counts_.ended, 2);
}

TEST_F(Threaded, WhatFailsToBeginIsAComplaint) {
  counts_.begin_fails = true;
  source_.Find({});
  source_.Begin({.recording_id = "a"});
  source_.End();
  const auto complaints = source_.Collect();
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_EQ(complaints[0].what(), "no room");
  EXPECT_EQ(counts_.worked, 0);
  counts_.begin_fails = false;
  source_.Find({});
  source_.Begin({.recording_id = "a"});
  source_.End();
  EXPECT_THAT(source_.Collect(), IsEmpty());
  EXPECT_EQ(counts_.worked, 1);
}

TEST_F(Threaded, WithoutFindNothingBegins) {
  source_.Begin({.recording_id = "a"});
  source_.End();
  EXPECT_THAT(source_.Collect(), IsEmpty());
  EXPECT_EQ(counts_.made, 0);
}

}  // namespace
}  // namespace syncline::agent
