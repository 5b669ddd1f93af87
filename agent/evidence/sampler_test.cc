// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/evidence/fake_node.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

using SamplerTest = FakeNode;

TEST_F(SamplerTest, ReadsThreadsAndEachGroupWithItsQuota) {
  Sampler sampler = Make();
  sampler.Search();
  SetTask(1234, 100, 20);
  sampler.Round();
  SetTask(1234, 200, 5'000'020);
  PutGroup("job/rank1", 3, 4'000'000, 70000);
  sampler.Round();
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.processes.size(), 1);
  EXPECT_EQ(evidence.processes[0].own_pid, 1234);
  EXPECT_EQ(evidence.processes[0].groups, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(evidence.groups[0].path, "/job/rank1");
  EXPECT_EQ(evidence.groups[1].path, "/job");
  ASSERT_EQ(evidence.thread_samples.size(), 2);
  EXPECT_EQ(evidence.thread_samples[1].run_queue_ns, 5'000'020);
  EXPECT_EQ(evidence.thread_samples[0].cpu, -1) << "it has not waited";
  EXPECT_EQ(evidence.thread_samples[1].cpu, 3);
  EXPECT_GE(evidence.thread_samples[1].at_ns, evidence.thread_samples[0].until_ns);
  ASSERT_EQ(evidence.group_samples.size(), 4);
  const evidence::GroupSample* last = nullptr;
  for (const auto& sample : evidence.group_samples) {
    if (sample.group == 0) last = &sample;
    if (sample.group == 1) {
      EXPECT_EQ(sample.quota_ns, -1);
    }
  }
  EXPECT_EQ(last->throttled_ns, 4'000'000);
  EXPECT_EQ(last->quota_ns, 70'000'000);
  EXPECT_EQ(last->period_ns, 100'000'000);
}

TEST_F(SamplerTest, OfTheFirstThreadAlsoItsStateIsRead) {
  SetTask(1235, 0, 0);  // it has written events
  SetState(1234, "pt ) D 1 (", 'S', 4);
  SetState(1235, "x", 'D', 9);
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  SetState(1234, "pt ) S 1 (", 'D', 5, 70);
  sampler.Round();
  Put(proc_ / "1234/task/1234/stat", "1234 (pt");
  sampler.Round();
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.threads.size(), 2);
  std::string states;
  std::vector<int64_t> faults;
  std::vector<int64_t> minor_faults;
  for (const evidence::ThreadSample& sample : evidence.thread_samples) {
    EXPECT_EQ(sample.cpu, -1) << "it has not waited";
    if (evidence.threads[sample.thread].tid == 1234) {
      states.push_back(sample.state == 0 ? '-' : sample.state);
      faults.push_back(sample.major_faults);
      minor_faults.push_back(sample.minor_faults);
    } else {
      EXPECT_EQ(sample.state, 0);
      EXPECT_EQ(sample.major_faults, -1);
    }
  }
  EXPECT_EQ(states, "SD-");
  EXPECT_EQ(faults, (std::vector<int64_t>{4, 5, -1}));
  EXPECT_EQ(minor_faults, (std::vector<int64_t>{0, 70, -1}));
}

// The state is read between the readings of two threads, and in the bracket of neither.
TEST_F(SamplerTest, TheBracketOfAReadingHoldsNothingElse) {
  SetTask(1235, 0, 0);
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.thread_samples.size(), 2);
  for (const evidence::ThreadSample& sample : evidence.thread_samples) {
    EXPECT_EQ(sample.until_ns - sample.at_ns, 100) << "one look at the clock";
  }
  EXPECT_EQ(evidence.thread_samples[1].at_ns, evidence.thread_samples[0].until_ns + 100)
      << "what was read between";
}

TEST_F(SamplerTest, AThreadThatEndsIsDroppedAndABusyOneFound) {
  SetTask(1300, 0, 0);
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  EXPECT_EQ(Parsed(&sampler).threads.size(), 1) << "nothing shows yet that 1300 is busy";
  SetTask(1300, 500'000'000, 0);
  sampler.Search();
  sampler.Round();
  const evidence::Evidence found = Parsed(&sampler);
  ASSERT_EQ(found.threads.size(), 2);
  EXPECT_EQ(found.threads[1].tid, 1300);
  Put(proc_ / "1234/task/1300/schedstat", "");  // as the kernel answers of one that is gone
  sampler.Round();
  EXPECT_NE(sampler.TakeText(), "");
  sampler.Round();
  const std::string text = sampler.TakeText();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2) << text;  // a thread, two groups
}

TEST_F(SamplerTest, TheBusiestOthersAreFoundByTheSecondSearch) {
  for (int pid = 10; pid < 40; ++pid) PutOther(pid, 1000);
  Sampler sampler = Make({.others_max = 3});
  sampler.Search();
  EXPECT_EQ(Parsed(&sampler).processes.size(), 1);
  PutOther(20, 1100);
  PutOther(21, 1300);
  PutOther(22, 1200);
  PutOther(23, 1050);
  sampler.Search();
  sampler.Round();
  const evidence::Evidence evidence = Parsed(&sampler);
  std::vector<int32_t> pids;
  for (const auto& process : evidence.processes) pids.push_back(process.pid);
  EXPECT_EQ(pids, (std::vector<int32_t>{1234, 21, 22, 20}));
  EXPECT_EQ(evidence.process_samples.size(), 3);
}

// /proc/PID/stat of the recorded process.
std::string WholeStat(int64_t ticks) {
  std::string stat = "1234 (python (x)) S";
  for (int field = 4; field <= 41; ++field) {
    stat += " " + std::to_string(field == 14 ? ticks : field == 20 ? 7 : field == 22 ? 5678 : 0);
  }
  return stat + "\n";
}

TEST_F(SamplerTest, ReadsRecordedProcessesAsAWholeTwiceASecond) {
  const auto put_ticks = [&](int64_t ticks) { Put(proc_ / "1234/stat", WholeStat(ticks)); };
  put_ticks(70);
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  put_ticks(100);
  for (int round = 0; round < 9; ++round) {
    clock_.SleepNs(50'000'000);
    sampler.Round();
  }
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.recorded_samples.size(), 2);
  EXPECT_EQ(evidence.recorded_samples[0].cpu_ns, 700'000'000);
  EXPECT_EQ(evidence.recorded_samples[1].cpu_ns, 1'000'000'000);
  EXPECT_EQ(evidence.recorded_samples[1].threads, 7);
  EXPECT_GE(evidence.recorded_samples[1].at_ns,
            evidence.recorded_samples[0].until_ns + 450'000'000);
  EXPECT_TRUE(evidence.process_samples.empty()) << "these are of processes that are not recorded";
}

TEST_F(SamplerTest, WhatWasReadFromStorageIsSaidWhereItMayBeKnown) {
  Put(proc_ / "1234/stat", WholeStat(70));
  Sampler sampler = Make();
  const auto last_bytes = [&] {
    clock_.SleepNs(500'000'000);
    sampler.Round();
    return Parsed(&sampler).recorded_samples.back().read_bytes;
  };
  sampler.Search();
  EXPECT_EQ(last_bytes(), -1) << "it may not be opened";
  Put(proc_ / "1234/io", "rchar: 9\nread_bytes: 8192\nwrite_bytes: 7\n");
  sampler.Search();
  EXPECT_EQ(last_bytes(), 8192);
  Put(proc_ / "1234/io", "");  // as of one that has become somebody else
  EXPECT_EQ(last_bytes(), -1);
  Put(proc_ / "1234/io", "read_bytes: 8193\n");
  EXPECT_EQ(last_bytes(), 8193);
  EXPECT_EQ(Parsed(&sampler).recorded_samples.back().threads, 7);
  EXPECT_TRUE(sampler.TakeComplaints().empty());
}

TEST_F(SamplerTest, WhichCpusAProcessMayUseIsSaidAgainWhenItChanges) {
  const std::string status = *ReadFile(proc_ / "1234/status");
  Put(proc_ / "1234/status", status + "Cpus_allowed_list:\t0-3,8\n");
  Sampler sampler = Make();
  sampler.Search();
  sampler.Search();
  EXPECT_EQ(Parsed(&sampler).processes[0].allowed_count, 5);
  const std::string before = text_;
  Put(proc_ / "1234/status", status + "Cpus_allowed_list:\t2\n");
  sampler.Search();
  const evidence::Evidence evidence = Parsed(&sampler);
  EXPECT_EQ(evidence.processes[0].allowed_count, 1);
  EXPECT_EQ(evidence.processes[0].allowed_cpus, "2");
  EXPECT_EQ(text_, before + "A 0 1 =2\n");
}

// OpenMP may bind each thread, the first one too, to a CPU of its own.
TEST_F(SamplerTest, WhichCpusAProcessMayUseAreThoseOfAllItsThreadsThatAreOnline) {
  Put(proc_ / "1234/status", *ReadFile(proc_ / "1234/status") + "Cpus_allowed_list:\t0\n");
  SetTask(1300, 0, 0);
  Put(proc_ / "1234/task/1300/status", "Cpus_allowed_list:\t2\n");
  SetTask(1301, 0, 0);
  Put(proc_ / "1234/task/1301/status", "Cpus_allowed_list:\t1,6-9\n");
  Put(root_ / "online", "0-7\n");
  Sampler sampler = Make();
  sampler.Search();
  const evidence::Evidence evidence = Parsed(&sampler);
  EXPECT_EQ(evidence.processes[0].allowed_count, 5);
  EXPECT_EQ(evidence.processes[0].allowed_cpus, "0-2,6-7");
}

std::string CpuLine(int cpu, int64_t user, int64_t idle, int64_t stolen) {
  return "cpu" + std::to_string(cpu) + " " + std::to_string(user) + " 1 2 " + std::to_string(idle) +
         " 900 3 4 " + std::to_string(stolen) + " 50 60\n";
}

TEST_F(SamplerTest, StealTimeIsThatOfTheCpusThatAProcessMayUse) {
  const std::string status = *ReadFile(proc_ / "1234/status");
  Put(proc_ / "1234/status", status + "Cpus_allowed_list:\t0-1\n");
  const std::string all = "cpu  9999 9 9 9 9 9 9 9 9 9\n";
  Put(proc_ / "stat", all + CpuLine(0, 100, 100, 10) + CpuLine(1, 100, 100, 20) +
                          CpuLine(2, 100, 100, 30) + "intr 1 2 3\n");
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  Put(proc_ / "stat", all + CpuLine(0, 130, 120, 15) + CpuLine(1, 110, 140, 27) +
                          CpuLine(2, 150, 100, 130) + "intr 1 2 3\n");
  sampler.Round();
  clock_.SleepNs(500'000'000);
  sampler.Round();
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.steal_samples.size(), 2) << "twice a second";
  EXPECT_EQ(evidence.steal_samples[0].stolen_ns, 0) << "since it was found";
  EXPECT_EQ(evidence.steal_samples[1].busy_ns, 400'000'000);
  EXPECT_EQ(evidence.steal_samples[1].stolen_ns, 120'000'000);
  EXPECT_LT(evidence.steal_samples[0].at_ns, evidence.steal_samples[0].until_ns);
  Put(proc_ / "1234/status", status + "Cpus_allowed_list:\t2\n");
  sampler.Search();
  Put(proc_ / "stat", all + CpuLine(0, 930, 120, 915) + CpuLine(2, 151, 100, 132));
  clock_.SleepNs(500'000'000);
  sampler.Round();
  const evidence::Evidence moved = Parsed(&sampler);
  ASSERT_EQ(moved.steal_samples.size(), 3);
  EXPECT_EQ(moved.steal_samples[2].busy_ns, 410'000'000);
  EXPECT_EQ(moved.steal_samples[2].stolen_ns, 140'000'000) << "it only grows";
}

// As after a virtual machine was moved to another host.
TEST_F(SamplerTest, StealTimeThatJumpsIsNone) {
  Put(proc_ / "1234/status", *ReadFile(proc_ / "1234/status") + "Cpus_allowed_list:\t0\n");
  Put(proc_ / "stat", "");
  Sampler sampler = Make();
  for (const int64_t stolen : {100, 90'000, 90'010, 5, 15}) {
    Put(proc_ / "stat", CpuLine(0, 100, 100, stolen));
    sampler.Search();
    sampler.Round();
    clock_.SleepNs(500'000'000);
  }
  const evidence::Evidence evidence = Parsed(&sampler);
  std::vector<int64_t> stolen_ms;
  for (const auto& sample : evidence.steal_samples) {
    stolen_ms.push_back(sample.stolen_ns / 1'000'000);
  }
  EXPECT_EQ(stolen_ms, (std::vector<int64_t>{0, 0, 100, 100, 200}));
}

// The kernel counts a theft when the CPU runs again.
TEST_F(SamplerTest, StealTimeOfALongTheftCounts) {
  Put(proc_ / "1234/status", *ReadFile(proc_ / "1234/status") + "Cpus_allowed_list:\t0\n");
  Put(proc_ / "stat", "");
  Sampler sampler = Make();
  for (const int64_t stolen : {100, 100, 100, 230, 430}) {
    Put(proc_ / "stat", CpuLine(0, 100, 100, stolen));
    sampler.Search();
    sampler.Round();
    clock_.SleepNs(500'000'000);
  }
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.steal_samples.size(), 5);
  EXPECT_EQ(evidence.steal_samples[3].stolen_ns, 1'300'000'000);
  EXPECT_EQ(evidence.steal_samples[4].stolen_ns, 1'300'000'000) << "2 s in 0.5 s";
}

TEST_F(SamplerTest, StealTimeIsKnownAfterYears) {
  Put(proc_ / "1234/status", *ReadFile(proc_ / "1234/status") + "Cpus_allowed_list:\t0\n");
  constexpr int64_t kTenYears = int64_t{10} * 365 * 86'400 * 100;  // ticks
  Put(proc_ / "stat", CpuLine(0, kTenYears, kTenYears, kTenYears));
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  clock_.SleepNs(500'000'000);
  Put(proc_ / "stat", CpuLine(0, kTenYears + 5, kTenYears, kTenYears + 7));
  sampler.Round();
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.steal_samples.size(), 2);
  EXPECT_EQ(evidence.steal_samples[1].busy_ns, 50'000'000);
  EXPECT_EQ(evidence.steal_samples[1].stolen_ns, 70'000'000);
}

TEST_F(SamplerTest, WithoutStealTimeThereIsNoLineOfIt) {
  Put(proc_ / "1234/status", *ReadFile(proc_ / "1234/status") + "Cpus_allowed_list:\t0\n");
  for (const char* const stat : {"", "cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7\n", "nonsense\n",
                                 "cpu0 1 2 3 4 -5 6 7 8\n", "cpux 1 2 3 4 5 6 7 8\n"}) {
    Put(proc_ / "stat", stat);
    Sampler sampler = Make();
    sampler.Search();
    sampler.Round();
    EXPECT_TRUE(Parsed(&sampler).steal_samples.empty()) << stat;
    text_.clear();
  }
}

TEST_F(SamplerTest, AThreadOfGlooIsSampledAtOnce) {
  SetTask(1300, 7, 8);
  SetTask(1301, 7, 8);
  Put(proc_ / "1234/task/1301/comm", "gloo_tcp_loop\n");
  Sampler sampler = Make();
  sampler.Search();
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.threads.size(), 2) << "it writes no events";
  EXPECT_EQ(evidence.threads[1].name, "gloo_tcp_loop");
}

TEST_F(SamplerTest, AProcessMovedToAnotherGroupIsFollowed) {
  Sampler sampler = Make();
  sampler.Search();
  PutGroup("other", 0, 0, 50000);
  Put(proc_ / "1234/cgroup", "4:cpu,cpuacct:/other\n");
  sampler.Search();
  const evidence::Evidence evidence = Parsed(&sampler);
  EXPECT_EQ(evidence.groups.back().path, "/other");
  EXPECT_EQ(evidence.processes[0].groups, (std::vector<uint32_t>{2}));
}

// Of v1 and v2, and of two controllers of v1 at different places.
TEST_F(SamplerTest, HowOftenTheMemoryOfAGroupWasFullIsReadTwiceASecond) {
  const fs::path v1 = root_ / "mem/job";
  const fs::path v2 = root_ / "unified/job";
  Put(proc_ / "self/mountinfo", "37 25 0:32 / " + (root_ / "mem").string() +
                                    " rw - cgroup cgroup rw,memory\n33 25 0:28 / " +
                                    (root_ / "unified").string() + " rw - cgroup2 cgroup2 rw\n");
  Put(proc_ / "1234/cgroup", "4:cpu,cpuacct:/job/rank1\n3:memory:/job\n0::/job\n");
  Put(v1 / "memory.failcnt", "7\n");
  Put(v1 / "memory.limit_in_bytes", "9223372036854771712\n");
  Put(v2 / "memory.events.local", "low 0\nhigh 1\nmax 2\n");
  Put(v2 / "memory.max", "max\n");
  Put(v2 / "memory.high", "300000000\n");
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  Put(v1 / "memory.failcnt", "9\n");
  Put(v1 / "memory.limit_in_bytes", "1000\n");
  clock_.SleepNs(100'000'000);
  sampler.Round();  // too early
  clock_.SleepNs(400'000'000);
  sampler.Round();
  evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.memory_groups.size(), 2);
  EXPECT_EQ(evidence.memory_groups[0].path, "/job");
  EXPECT_EQ(evidence.memory_groups[0].version + evidence.memory_groups[1].version, 3);
  EXPECT_EQ(evidence.processes[0].memory_groups, (std::vector<uint32_t>{0, 1}));
  ASSERT_EQ(evidence.memory_samples.size(), 4);
  std::array<std::vector<evidence::MemorySample>, 3> samples;  // by version
  for (const evidence::MemorySample& one : evidence.memory_samples) {
    samples[static_cast<size_t>(evidence.memory_groups[one.group].version)].push_back(one);
  }
  EXPECT_EQ(samples[1].front().full, 7);
  EXPECT_EQ(samples[1].front().limit_bytes, -1);
  EXPECT_EQ(samples[1].back().full, 9);
  EXPECT_EQ(samples[1].back().limit_bytes, 1000);
  EXPECT_EQ(samples[2].back().full, 3);
  EXPECT_EQ(samples[2].back().limit_bytes, 300'000'000);

  Put(v1 / "memory.failcnt", "");  // as when it is removed
  clock_.SleepNs(500'000'000);
  sampler.Round();
  EXPECT_EQ(Parsed(&sampler).memory_samples.size(), 5);
}

TEST_F(SamplerTest, NothingAtAllIsNoTrouble) {
  fs::remove_all(proc_);
  Sampler sampler = Make();
  sampler.Search();
  sampler.Round();
  EXPECT_TRUE(sampler.empty());
}

TEST_F(SamplerTest, AThreadThatWroteEventsIsSampledAtOnce) {
  SetTask(1235, 7, 8);
  SetTask(1300, 7, 8);
  Sampler sampler = Make();
  sampler.Search();
  const evidence::Evidence evidence = Parsed(&sampler);
  ASSERT_EQ(evidence.threads.size(), 2);
  EXPECT_EQ(evidence.threads[1].tid, 1235);
  EXPECT_EQ(evidence.threads[1].own_tid, 1235);
}

TEST_F(SamplerTest, ABusyThreadGivesWayToOneThatIsClearlyBusier) {
  for (const int tid : {1301, 1302, 1303}) SetTask(tid, 0, 0);
  Sampler sampler = Make({.busiest_threads = 1});
  sampler.Search();
  const auto last_tid = [&] { return Parsed(&sampler).threads.back().tid; };
  const auto samples_of_round = [&] {
    const size_t before = Parsed(&sampler).thread_samples.size();
    sampler.Round();
    return Parsed(&sampler).thread_samples.size() - before;
  };
  SetTask(1301, 90'000'000, 0);
  SetTask(1302, 50'000'000, 0);
  sampler.Search();
  EXPECT_EQ(last_tid(), 1301);
  EXPECT_EQ(samples_of_round(), 2) << "the first thread and the chosen one";
  SetTask(1301, 150'000'000, 0);
  SetTask(1302, 150'000'000, 0);
  EXPECT_EQ(samples_of_round(), 2);
  sampler.Search();
  EXPECT_EQ(last_tid(), 1301) << "100 ms are not clearly more than 60";
  SetTask(1301, 160'000'000, 0);
  SetTask(1303, 80'000'000, 0);
  EXPECT_EQ(samples_of_round(), 2);
  sampler.Search();
  EXPECT_EQ(last_tid(), 1303);
  EXPECT_EQ(samples_of_round(), 2);
}

TEST_F(SamplerTest, AGroupThatIsNotShownIsSaid) {
  Put(proc_ / "1234/cgroup", "4:cpu,cpuacct:/../../job/rank1\n");
  Sampler sampler = Make();
  sampler.Search();
  sampler.Search();
  const evidence::Evidence evidence = Parsed(&sampler);
  EXPECT_TRUE(evidence.groups.empty());
  ASSERT_EQ(evidence.notes.size(), 2) << "/proc/1 is hidden, too";
  EXPECT_NE(evidence.notes[0].find("\"/../../job/rank1\" (v1)"), std::string::npos);
  EXPECT_NE(evidence.notes[1].find("hidepid"), std::string::npos);
}

}  // namespace
}  // namespace syncline::agent
