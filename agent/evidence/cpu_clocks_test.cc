// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/cpu_clocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "agent/evidence/fake_node.h"
#include "agent/evidence/sampler.h"

namespace syncline::agent {
namespace {

using CpuClocksTest = FakeNode;

TEST_F(CpuClocksTest, WhatTheHardwareCountedComesBeforeWhatWasAskedOfIt) {
  Put(root_ / "cpu0/cpufreq/scaling_cur_freq", "2600000\n");
  Put(root_ / "cpu1/cpufreq/scaling_cur_freq", "2600000\n");
  Put(root_ / "cpu1/cpufreq/cpuinfo_avg_freq", "1200000\n");
  Put(root_ / "cpu2/cpufreq/scaling_cur_freq", "2400000\n");
  Put(root_ / "cpu2/cpufreq/cpuinfo_avg_freq", "");
  CpuClocks clocks(root_);
  EXPECT_EQ(clocks.KhzOf(0), 2'600'000);
  EXPECT_EQ(clocks.KhzOf(1), 1'200'000);
  EXPECT_EQ(clocks.KhzOf(2), 2'400'000);
  Put(root_ / "cpu1/cpufreq/cpuinfo_avg_freq", "1300000\n");
  EXPECT_EQ(clocks.KhzOf(1), 1'300'000);
}

TEST_F(CpuClocksTest, WhatIsNoClockIsNone) {
  Put(root_ / "cpu0/cpufreq/scaling_cur_freq", "<unknown>\n");
  Put(root_ / "cpu1/cpufreq/scaling_cur_freq", "0\n");
  Put(root_ / "cpu2/cpufreq/scaling_cur_freq", "99999999999999999999\n");
  CpuClocks clocks(root_);
  for (const int cpu : {-1, 0, 1, 2, 3}) EXPECT_EQ(clocks.KhzOf(cpu), -1) << cpu;
  Put(root_ / "cpu0/cpufreq/scaling_cur_freq", "2600000\n");
  EXPECT_EQ(clocks.KhzOf(0), 2'600'000);
}

// Of the first thread, where it is found running, and less often than its state.
TEST_F(CpuClocksTest, IsSampledOfACpuThatIsUsed) {
  Put(root_ / "cpu3/cpufreq/scaling_cur_freq", "2600000\n");
  SetTask(1235, 0, 0);
  Sampler sampler = Make();
  sampler.Search();
  for (const char state : {'S', 'R', 'R', 'S'}) {
    SetState(1234, "x", state, 0);
    sampler.Round();
  }
  std::vector<int64_t> clocks;
  const evidence::Evidence evidence = Parsed(&sampler);
  for (const evidence::ThreadSample& sample : evidence.thread_samples) {
    if (evidence.threads[sample.thread].tid == 1234) {
      clocks.push_back(sample.clock_khz);
    } else {
      EXPECT_EQ(sample.clock_khz, -1);
    }
  }
  EXPECT_EQ(clocks, (std::vector<int64_t>{-1, 2'600'000, -1, -1}));
}

}  // namespace
}  // namespace syncline::agent
