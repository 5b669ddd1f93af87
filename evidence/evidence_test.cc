// SPDX-License-Identifier: Apache-2.0
#include "evidence/evidence.h"

#include <gtest/gtest.h>

#include "evidence/write.h"

namespace syncline::evidence {
namespace {

std::string Sample() {
  std::string text;
  AppendHead(&text);
  Append(Group{1, "/job/rank 1"}, &text);
  Append(Group{1, "/job"}, &text);
  Append(Process{Relation::kRecorded, 4711, 1, 12345, 4026531836, 26, 1000, "python3 %", {0, 1}},
         &text);
  Append(Thread{0, 4711, 26, "pt main"}, &text);
  Append(Rate{100, 50'000'000, ""}, &text);
  Append(ThreadSample{0, 1000, 1010, 5, 6, -1}, &text);
  Append(ThreadSample{0, 1100, 1110, 7, 8, 3, 'D', 12}, &text);
  Append(ThreadSample{0, 1200, 1210, 7, 8, 3, 'R', 12, 3400}, &text);
  Append(ThreadSample{0, 1300, 1310, 8, 8, -1, 'R', 12, 3400, 2'600'000}, &text);
  Append(GroupSample{0, 1001, 1011, 10, 2, 70, 70'000'000, 100'000'000}, &text);
  Append(ProcessSample{0, 1002, 1012, 10'000'000, 3}, &text);
  AppendRecorded(ProcessSample{0, 1003, 1013, 20'000'000}, &text);
  AppendRecorded(ProcessSample{0, 1503, 1513, 30'000'000, -1, 9}, &text);
  AppendRecorded(ProcessSample{0, 2003, 2013, 40'000'000, -1, 9, 4096}, &text);
  AppendRecorded(ProcessSample{0, 2503, 2513, 50'000'000, -1, 0, 0}, &text);
  AppendAllowed(0, 5, "0-3,8", &text);
  Append(StealSample{0, 2600, 2610, 70'000'000, 30'000'000}, &text);
  Append(Gap{2000, 3000}, &text);
  AppendGroups(0, {1}, &text);
  AppendMemoryGroup(Group{2, "/job"}, &text);
  AppendMemoryGroups(0, {0}, &text);
  Append(MemorySample{0, 3001, 3011, 17, 300'000'000}, &text);
  Append(MemorySample{0, 3501, 3511, 18}, &text);
  AppendPageCost(1300, &text);
  AppendNote("cannot read x\ny", &text);
  AppendEnd(&text);
  return text;
}

TEST(Evidence, WhatIsWrittenReadsBack) {
  const auto read = ParseEvidence(Sample());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->damaged_lines, 0);
  EXPECT_TRUE(read->ended);
  ASSERT_EQ(read->processes.size(), 1);
  EXPECT_EQ(read->processes[0].name, "python3 %");
  EXPECT_EQ(read->processes[0].groups, std::vector<uint32_t>{1});
  EXPECT_EQ(read->groups[0].path, "/job/rank 1");
  EXPECT_EQ(read->threads[0].own_tid, 26);
  EXPECT_EQ(read->threads[0].name, "pt main");
  EXPECT_EQ(read->thread_samples[0].run_queue_ns, 6);
  EXPECT_EQ(read->thread_samples[0].cpu, -1);
  EXPECT_EQ(read->thread_samples[0].state, 0) << "not of all, and not in older lines";
  EXPECT_EQ(read->thread_samples[0].major_faults, -1);
  EXPECT_EQ(read->thread_samples[2].clock_khz, -1);
  EXPECT_EQ(read->thread_samples[3].clock_khz, 2'600'000);
  EXPECT_EQ(read->thread_samples[1].cpu, 3);
  EXPECT_EQ(read->thread_samples[1].state, 'D');
  EXPECT_EQ(read->thread_samples[1].major_faults, 12);
  EXPECT_EQ(read->thread_samples[1].minor_faults, -1);
  EXPECT_EQ(read->thread_samples[2].minor_faults, 3400);
  EXPECT_EQ(read->page_ns, 1300);
  EXPECT_EQ(read->group_samples[0].quota_ns, 70'000'000);
  ASSERT_EQ(read->memory_groups.size(), 1);
  EXPECT_EQ(read->memory_groups[0].path, "/job");
  EXPECT_EQ(read->memory_groups[0].version, 2);
  EXPECT_EQ(read->processes[0].memory_groups, std::vector<uint32_t>{0});
  ASSERT_EQ(read->memory_samples.size(), 2);
  EXPECT_EQ(read->memory_samples[0].full, 17);
  EXPECT_EQ(read->memory_samples[0].limit_bytes, 300'000'000);
  EXPECT_EQ(read->memory_samples[1].limit_bytes, -1);
  EXPECT_EQ(read->process_samples[0].cpu_ns, 10'000'000);
  EXPECT_EQ(read->recorded_samples[0].cpu_ns, 20'000'000);
  EXPECT_EQ(read->recorded_samples[0].cpu, -1);
  EXPECT_EQ(read->recorded_samples[0].threads, 0) << "older lines do not say it";
  EXPECT_EQ(read->recorded_samples[1].threads, 9);
  EXPECT_EQ(read->recorded_samples[1].read_bytes, -1) << "older lines do not say it";
  EXPECT_EQ(read->recorded_samples[2].threads, 9);
  EXPECT_EQ(read->recorded_samples[2].read_bytes, 4096);
  EXPECT_EQ(read->recorded_samples[3].threads, 0);
  EXPECT_EQ(read->recorded_samples[3].read_bytes, 0);
  EXPECT_EQ(read->processes[0].allowed_count, 5);
  EXPECT_EQ(read->processes[0].allowed_cpus, "0-3,8");
  ASSERT_EQ(read->steal_samples.size(), 1);
  EXPECT_EQ(read->steal_samples[0].until_ns, 2610);
  EXPECT_EQ(read->steal_samples[0].busy_ns, 70'000'000);
  EXPECT_EQ(read->steal_samples[0].stolen_ns, 30'000'000);
  EXPECT_EQ(read->gaps[0].end_ns, 3000);
  EXPECT_EQ(read->rates[0].period_ns, 50'000'000);
  EXPECT_EQ(read->notes[0], "cannot read x\ny");
}

TEST(Evidence, ACutAnywhereKeepsWhatIsBeforeIt) {
  const std::string text = Sample();
  for (size_t size = sizeof(kHead); size < text.size(); ++size) {
    const auto read = ParseEvidence(text.substr(0, size));
    ASSERT_TRUE(read.ok()) << size;
    EXPECT_EQ(read->damaged_lines, 0) << size;
    EXPECT_FALSE(read->ended) << size;
  }
}

TEST(Evidence, ADamagedLineIsLeftOutAndCounted) {
  const std::string text = Sample() +
                           "t 7 1 2 3 4 5\n"                     // no such thread
                           "t 0 1 99999999999999999999 3 4 5\n"  // too large
                           "t 0 9 8 3 4 5\n"                     // ends before it begins
                           "t 0 1 2 -3 4 5\n"
                           "t 0 1 2 3 4\n"
                           "t 0 1 2 3 4 5 6\n"
                           "t 0 1 2 3 4 5 6 7\n"
                           "t 0 1 2 3 4 5 D\n"
                           "t 0 1 2 3 4 5 DD 7\n"
                           "t 0 1 2 3 4 5 D -1\n"
                           "t 0 1 2 3 4 5 D 7 -1\n"
                           "t 0 1 2 3 4 5 R 7 8 0\n"
                           "t 0 1 2 3 4 5 R 7 8 9 10\n"
                           "K -1\n"
                           "K 1000001\n"
                           "K 5 x\n"
                           "t 0 1 2 3 4 5  7\n"
                           "u 1 1 2 3\n"  // no such process
                           "u 0 1 2 3 4 5 6\n"
                           "u 0 1 2 3 4 -2\n"
                           "u 0 1 2 3 4 x\n"
                           "u 0 1 2 3 -4\n"
                           "s 1 1 2 3 4\n"  // no such process
                           "s 0 1 2 3\n"
                           "s 0 1 2 3 -4\n"
                           "s 0 1 2 3 4 5\n"
                           "A 0 4 0-3 x\n"
                           "A 1 4 =0-3\n"
                           "x\n\n"
                           "G 1 noquote\n"
                           "P 9 1 1 1 1 1 1 =x\n";
  const auto read = ParseEvidence(text);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->damaged_lines, 32);
  EXPECT_EQ(read->thread_samples.size(), 4);
  EXPECT_EQ(read->page_ns, 1300);
  EXPECT_EQ(read->recorded_samples.size(), 4);
  EXPECT_EQ(read->processes.size(), 2);  // it keeps its number
}

TEST(Evidence, AnotherVersionIsRefused) {
  EXPECT_FALSE(ParseEvidence("").ok());
  EXPECT_FALSE(ParseEvidence("syncline-evidence 2\nE\n").ok());
}

// Any byte of a whole text may be anything: nothing but its line is lost, and nothing crashes.
TEST(Evidence, AnyDamageIsSurvived) {
  const std::string text = Sample();
  for (size_t i = sizeof(kHead); i < text.size(); ++i) {
    for (const char c : {'\0', '9', ' ', '\n', '-', '%', '\xff'}) {
      std::string damaged = text;
      damaged[i] = c;
      const auto read = ParseEvidence(damaged);
      ASSERT_TRUE(read.ok());
      for (const ThreadSample& one : read->thread_samples) {
        EXPECT_LT(one.thread, read->threads.size());
        EXPECT_EQ(one.state != 0, one.major_faults >= 0);
      }
      for (const Thread& one : read->threads) EXPECT_LT(one.process, read->processes.size());
    }
  }
}

}  // namespace
}  // namespace syncline::evidence
