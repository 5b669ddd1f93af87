// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/usage.h"

#include <gtest/gtest.h>

namespace syncline::analysis::why {
namespace {

using evidence::Evidence;
using evidence::Relation;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kPeriodNs = 50 * kMs;

// A rank (pid 7, main thread and a second one), a child of it, Syncline and somebody else: 2 s.
class Usage : public ::testing::Test {
 protected:
  Usage() {
    evidence_.processes = {{Relation::kRecorded, 107, 1, 900, 42, 7, 1000, "python", {0}},
                           {Relation::kDescendant, 120, 107, 901, 0, 0, 1000, "gcc", {}},
                           {Relation::kSyncline, 130, 1, 902, 0, 0, 0, "lttng-consumerd", {}},
                           {Relation::kOther, 140, 1, 903, 0, 0, 0, "stress", {}},
                           {Relation::kOther, 141, 1, 904, 0, 0, 0, "idle", {}}};
    evidence_.groups = {{1, "/job"}};
    evidence_.threads = {{0, 107, 7, "python"}, {0, 108, 8, "pt_gloo"}};
  }

  // In each period the main thread runs for 20 ms and is runnable for 15 more, of which the group
  // is throttled for `throttled_ns`; the other thread runs for 10 ms.
  void Sample(int64_t throttled_ns) {
    for (int64_t i = 0; i <= 40; ++i) {
      const int64_t at_ns = i * kPeriodNs;
      evidence_.thread_samples.push_back({0, at_ns, at_ns, i * 20 * kMs, i * 15 * kMs, 0});
      evidence_.thread_samples.push_back({1, at_ns, at_ns, i * 10 * kMs, i * kMs, 1});
      evidence_.group_samples.push_back(
          {0, at_ns, at_ns, i, i, i * throttled_ns, 50 * kMs, 100 * kMs});
      evidence_.process_samples.push_back({1, at_ns, at_ns, i * 2 * kMs, 0});
      evidence_.process_samples.push_back({2, at_ns, at_ns, i * kMs, 0});
      evidence_.process_samples.push_back({3, at_ns, at_ns, i * 25 * kMs, 0});
      evidence_.process_samples.push_back({4, at_ns, at_ns, 5 * kMs, 0});
    }
  }

  Evidence evidence_;
};

TEST_F(Usage, OfTheMainThreadAddsUpToItsTime) {
  Sample(10 * kMs);
  const MachineUsage usage = UsageOf(evidence_, {0, 2000 * kMs});
  EXPECT_EQ(usage.window_ns, 2000 * kMs);
  ASSERT_EQ(usage.processes.size(), 1u);
  const ProcessUsage& process = usage.processes[0];
  EXPECT_EQ(process.process, (ProcessKey{0, 42, 7, 900}));
  EXPECT_EQ(process.sampled_ns, 2000 * kMs);
  EXPECT_EQ(process.running_ns, 800 * kMs);
  EXPECT_EQ(process.throttled_ns, 400 * kMs);
  EXPECT_EQ(process.waiting_ns, 200 * kMs);
  EXPECT_EQ(process.asleep_ns(), 600 * kMs);
  EXPECT_EQ(process.threads, 2u);
  EXPECT_EQ(process.threads_running_ns, 1200 * kMs);
  EXPECT_EQ(process.threads_waiting_ns, 640 * kMs);
}

TEST_F(Usage, BlockedIsAPartOfTheSleepWhereSamplesSayIt) {
  Sample(0);
  EXPECT_FALSE(UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0).blocked_ns.has_value());
  EXPECT_FALSE(UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0).read_bytes.has_value());
  int at = 0;
  for (evidence::ThreadSample& sample : evidence_.thread_samples) {
    if (sample.thread == 0) sample.state = "RSDD"[at++ % 4];
  }
  for (int64_t i = 0; i <= 4; ++i) {
    evidence::ProcessSample sample{0, i * 500 * kMs, i * 500 * kMs, i};
    sample.read_bytes = 1000 + i * 4096;
    evidence_.recorded_samples.push_back(sample);
  }
  const ProcessUsage process = UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0);
  EXPECT_EQ(process.asleep_ns(), 600 * kMs);
  ASSERT_TRUE(process.blocked_ns.has_value());
  EXPECT_EQ(*process.blocked_ns / kMs, 400) << "20 of 30 samples of sleep";
  EXPECT_EQ(process.read_bytes, 4 * 4096);
  EXPECT_FALSE(process.full_group.has_value());
}

TEST_F(Usage, PageFaultsAreThoseOfTheMainThread) {
  Sample(0);
  EXPECT_FALSE(UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0).minor_faults.has_value());
  for (evidence::ThreadSample& sample : evidence_.thread_samples) {
    if (sample.thread == 0) sample.minor_faults = 7 + sample.at_ns / kPeriodNs * 100;
  }
  EXPECT_EQ(UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0).faults_ns(), 0) << "cost unknown";
  evidence_.page_ns = 1'500;
  const ProcessUsage process = UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0);
  EXPECT_EQ(process.minor_faults, 4'000);
  EXPECT_EQ(process.faults_ns(), 6 * kMs);
}

TEST_F(Usage, OfGroupsWhoseMemoryWasFullTheMostOftenInTheTime) {
  Sample(0);
  evidence_.memory_groups = {{2, "/job/a"}, {2, "/job"}, {2, "/"}, {2, "/other"}};
  evidence_.processes[0].memory_groups = {0, 1, 2};
  const auto add = [&](uint32_t group, int64_t at_ms, int64_t full, int64_t limit_bytes) {
    evidence_.memory_samples.push_back({group, at_ms * kMs, at_ms * kMs + 1000, full, limit_bytes});
  };
  for (const int64_t at_ms : {0, 1000, 2000, 3000}) {
    add(0, at_ms, 5, 100);                                          // it was full before
    add(1, at_ms, at_ms == 3000 ? 900 : at_ms / 100, 200 + at_ms);  // later oftener still
    add(2, at_ms, at_ms / 100, -1);
    add(3, at_ms, at_ms, 300);  // of somebody else
  }
  const auto full = UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0).full_group;
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->path, "/job");
  EXPECT_EQ(full->times, 20);
  EXPECT_EQ(full->time_ns, 2000 * kMs);
  EXPECT_EQ(full->limit_bytes, -1) << "it was changed";
  // Set to 0 in between, with the same limit.
  evidence_.memory_samples.clear();
  for (const int64_t at_ms : {0, 500, 1000, 1500}) add(1, at_ms, at_ms % 1000, 200);
  const auto reset = UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0).full_group;
  ASSERT_TRUE(reset.has_value());
  EXPECT_EQ(reset->times, 1000);
  EXPECT_EQ(reset->limit_bytes, 200);
}

TEST_F(Usage, ThrottledIsNoMoreThanItWasRunnable) {
  Sample(200 * kMs);  // four processors' worth
  const ProcessUsage process = UsageOf(evidence_, {0, 2000 * kMs}).processes.at(0);
  EXPECT_EQ(process.throttled_ns, 600 * kMs);
  EXPECT_EQ(process.waiting_ns, 0);
}

TEST_F(Usage, OfAPartOfTheTime) {
  Sample(0);
  const ProcessUsage process = UsageOf(evidence_, {500 * kMs, 1500 * kMs}).processes.at(0);
  EXPECT_EQ(process.sampled_ns, 1000 * kMs);
  EXPECT_EQ(process.running_ns, 400 * kMs);
  EXPECT_EQ(process.threads_running_ns, 600 * kMs);
  EXPECT_TRUE(UsageOf(evidence_, {5000 * kMs, 6000 * kMs}).processes.empty());
  EXPECT_TRUE(UsageOf(evidence_, {5000 * kMs, 6000 * kMs}).others.empty());
}

TEST_F(Usage, OthersAreThoseThatRanMostFirst) {
  Sample(0);
  std::vector<std::string> names;
  const MachineUsage usage = UsageOf(evidence_, {0, 2000 * kMs});
  for (const OtherUsage& other : usage.others) names.push_back(other.name);
  EXPECT_EQ(names, (std::vector<std::string>{"stress", "gcc", "lttng-consumerd"}));
  EXPECT_EQ(usage.others[0].running_ns, 1000 * kMs);
  EXPECT_EQ(usage.others[0].pid, 140);
}

TEST_F(Usage, WithoutItsMainThreadAProcessIsLeftOut) {
  Sample(0);
  evidence_.threads[0].own_tid = 0;
  EXPECT_TRUE(UsageOf(evidence_, {0, 2000 * kMs}).processes.empty());
}

}  // namespace
}  // namespace syncline::analysis::why
