// SPDX-License-Identifier: Apache-2.0
#include "export/report/scheduling_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

namespace syncline::report {
namespace {

using analysis::CpuTaker;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMs = 1'000'000;

analysis::ThreadScheduling Thread(int32_t tid, int64_t running_ms, int64_t ready_ms) {
  analysis::ThreadScheduling thread;
  thread.tid = tid;
  thread.name = "worker";
  thread.times.running_ns = running_ms * kMs;
  thread.times.ready_ns = ready_ms * kMs;
  thread.times.asleep_ns = (1000 - running_ms - ready_ms) * kMs;
  thread.times.unknown_ns = 1000 * kMs;
  thread.turns = 250;
  return thread;
}

// A window of 2 s, of which every thread was watched for one.
analysis::Report Scheduled() {
  analysis::Report report;
  report.nodes.resize(1);
  report.nodes[0].name = "node-1";
  analysis::ProcessScheduling rank;
  rank.name = "node-1 · rank 3 · python";
  rank.part = "rank";
  rank.rank = 3;
  rank.pid = 26;
  rank.threads = {Thread(26, 600, 300)};
  rank.threads[0].name = "python";
  rank.threads[0].longest_ready_ns = 12 * kMs;
  rank.threads[0].takers = {{.pid = 90, .name = "w", .process_name = "stress-ng", .ns = 250 * kMs},
                            {.kind = CpuTaker::Kind::kNobody, .ns = 20 * kMs}};
  for (int32_t i = 0; i < 7; ++i) rank.threads.push_back(Thread(30 + i, 10, 1));
  for (int32_t i = 0; i < 5; ++i) rank.threads.push_back(Thread(50 + i, 0, 0));
  rank.threads.back().times.stopped_ns = rank.threads.back().times.asleep_ns;
  rank.threads.back().times.asleep_ns = 0;
  for (const auto& thread : rank.threads) rank.times += thread.times;
  rank.turns = 3250;
  rank.preemptions = 17;
  rank.migrations = 1;
  rank.takers = rank.threads[0].takers;
  rank.takers.push_back({.kind = CpuTaker::Kind::kRecorded, .process = 1, .ns = 5 * kMs});
  rank.takers.push_back({.kind = CpuTaker::Kind::kOwnThreads, .ns = 4 * kMs});
  analysis::ProcessScheduling loader = rank;
  loader.name = "node-1 · loader worker 0 of rank 3";
  loader.part = "loader worker";
  loader.threads = {Thread(99, 10, 2)};
  loader.times = loader.threads[0].times;
  loader.takers = {{.kind = CpuTaker::Kind::kRecorded, .process = 0, .ns = 2 * kMs}};
  report.scheduling = {{.node = 0,
                        .window_ns = 2000 * kMs,
                        .complete = true,
                        .cost_ns = 9 * kMs,
                        .processes = {rank, loader}}};
  return report;
}

std::string InFull(const analysis::Report& report) {
  Page page(report, 400, false);
  SchedulingInFull(&page);
  return std::regex_replace(page.Take(), std::regex(" +"), " ");
}

TEST(SchedulingText, ProcessesWithTheirThreads) {
  const std::string text = InFull(Scheduled());
  EXPECT_THAT(text, HasSubstr("node-1: 14 threads of 2 processes, in 2.000 s; the agent took 9.00 "
                              "ms of processor time for it."));
  EXPECT_THAT(
      text,
      HasSubstr(
          "rank 3 · python (pid 26): 13 threads, added up: running 670 ms, ready 307 ms, "
          "stopped 1.000 s, not known or not there 13.000 s; 3 250 turns, 17 preemptions, 1 change "
          "of CPU. While "
          "ready, the CPU had: 250 ms w of stress-ng (pid 90), 20.0 ms no one, "
          "5.00 ms node-1 · loader worker 0 of rank 3 (pid 26), 32.0 ms others, or not known."));
  EXPECT_THAT(text, HasSubstr("python (26) 60.0 % 30.0 % 0.0 % 10.0 % 250 12.0 ms 250 ms w of "
                              "stress-ng (pid 90)"))
      << "of the time of which it is known";
  EXPECT_THAT(text, HasSubstr("worker (34) 1.0 % 0.1 % 0.0 % 98.9 % 250 0 ns -"));
  EXPECT_THAT(text, Not(HasSubstr("worker (35)")));
  EXPECT_THAT(text, HasSubstr("2 more threads: running 20.0 ms, ready 2.00 ms; 5 threads did not "
                              "run"));
  EXPECT_THAT(text, HasSubstr("the CPU had: 2.00 ms rank 3 (pid 26)"));
  EXPECT_THAT(text, Not(AnyOf(HasSubstr("nothing is known"), HasSubstr("ends early"))));
}

TEST(SchedulingText, WhatIsNotKnownIsSaid) {
  analysis::Report report = Scheduled();
  report.scheduling[0].processes[0].threads.back().times = {.unknown_ns = 2000 * kMs};
  EXPECT_THAT(InFull(report), HasSubstr("4 threads did not run; nothing is known of 1 thread"));
  report.scheduling[0].lost_ns = 12 * kMs;
  report.scheduling[0].lost_events = 1234;
  report.scheduling[0].complete = false;
  report.scheduling[0].notes = {"some threads are not watched"};
  EXPECT_THAT(InFull(report),
              AllOf(HasSubstr("of 12.0 ms nothing is known of any thread: the kernel had no room "
                              "for 1 234 events"),
                    HasSubstr("node-1: the trace of its scheduler ends early"),
                    HasSubstr("node-1: some threads are not watched")));
  report.scheduling[0].processes.clear();
  EXPECT_THAT(InFull(report), HasSubstr("No thread was watched."));
}

TEST(SchedulingText, InShortTheRanksAndWhoTookMost) {
  const analysis::Report report = Scheduled();
  Page page(report, 240, false);
  SchedulingInShort(&page);
  const std::string text = page.Take();
  EXPECT_THAT(text, HasSubstr("ready, of the time running or ready: 31.4 % (node-1 · rank 3); "));
  EXPECT_THAT(text, HasSubstr("there had the CPU most: 250 ms w of stress-ng (pid 90)"));
  EXPECT_THAT(text, Not(HasSubstr("loader")));
}

TEST(SchedulingText, InShortNothingWhereNobodyHadToWaitLong) {
  analysis::Report report = Scheduled();
  report.scheduling[0].processes[0].times.ready_ns = kMs;
  Page page(report, 240, false);
  SchedulingInShort(&page);
  EXPECT_EQ(page.Take(), "");
}

TEST(SchedulingText, JsonHasEveryThread) {
  nlohmann::ordered_json json;
  SchedulingInJson(Scheduled(), &json);
  const auto& node = json["scheduling"][0];
  EXPECT_EQ(node["node"], "node-1");
  EXPECT_EQ(node["cost_ns"], 9 * kMs);
  const auto& rank = node["processes"][0];
  EXPECT_EQ(rank["rank"], 3);
  EXPECT_EQ(rank["ready_ns"], 307 * kMs);
  EXPECT_EQ(rank["unnamed_ns"], 28 * kMs);
  EXPECT_EQ(rank["threads"].size(), 13U);
  EXPECT_EQ(rank["threads"][0]["longest_ready_ns"], 12 * kMs);
  EXPECT_EQ(rank["threads"][0]["unknown_ns"], 1000 * kMs);
  const auto& had = rank["had_cpu"];
  EXPECT_EQ(had[0]["kind"], "other");
  EXPECT_EQ(had[0]["name"], "w");
  EXPECT_EQ(had[0]["process"], "stress-ng");
  EXPECT_EQ(had[0]["pid"], 90);
  EXPECT_EQ(had[1]["name"], "no one");
  EXPECT_TRUE(had[1]["pid"].is_null());
  EXPECT_EQ(had[2]["kind"], "recorded");
  EXPECT_EQ(had[2]["name"], "node-1 · loader worker 0 of rank 3");
  EXPECT_EQ(had[3]["name"], "its own threads");
}

TEST(SchedulingText, ARecordingWithoutHasNoSection) {
  EXPECT_FALSE(HasScheduling(analysis::Report()));
  EXPECT_TRUE(HasScheduling(Scheduled()));
}

}  // namespace
}  // namespace syncline::report
