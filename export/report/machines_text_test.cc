// SPDX-License-Identifier: Apache-2.0
#include "export/report/machines_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "export/report/testing/fleet.h"
#include "export/report/testing/screen.h"
#include "export/report/text_report.h"

namespace syncline::report {
namespace {

using ::testing::AnyOf;
using testing::Fleet;
using ::testing::HasSubstr;
using testing::ItemOf;
using testing::Job;
using testing::kScreenLines;
using testing::kWindowNs;
using testing::LinesOf;
using ::testing::Not;

TEST(OneScreenText, WaitsForACpuAndWhoElseRan) {
  analysis::Report report = Fleet(64, Job::kPyTorch);
  EXPECT_THAT(TextReport(report, {}), Not(AnyOf(HasSubstr("CPU wait"), HasSubstr("Other load"))));
  analysis::MachineReport& machine = report.machines[40];
  machine.processes[0].usage.waiting_ns = kWindowNs / 10;
  machine.processes[0].usage.throttled_ns = kWindowNs / 20;
  machine.others = {{evidence::Relation::kOther, "stress", 4711, kWindowNs / 100 * 98},
                    {evidence::Relation::kSyncline, "lttng-consumerd", 12, kWindowNs / 50}};
  const std::string text = TextReport(report, {});
  EXPECT_LE(LinesOf(text), kScreenLines) << text;
  EXPECT_EQ(ItemOf(text, "CPU wait"),
            "CPU wait main threads, of their time: median 1.0 %, worst 15.0 % (node-40 · rank 40), "
            "63 others 1.0 %; of that throttled by a quota, most: 5.0 % (node-40 · rank 40)");
  EXPECT_EQ(ItemOf(text, "Other load"), "Other load node-40: stress (pid 4711) 0.98 CPUs");
  machine.processes[0].usage.throttled_ns = 0;
  EXPECT_THAT(ItemOf(TextReport(report, {}), "CPU wait"), Not(HasSubstr("quota")));
}

TEST(SectionsByName, ALoaderWorkerThatWaitsForStorageIsSaid) {
  analysis::Report report = Fleet(2, Job::kPyTorch);
  report.machines[1].processes[1].usage.threads_running_ns = kWindowNs / 1000;
  report.machines[1].processes[1].usage.blocked_ns = kWindowNs / 100 * 77;
  EXPECT_THAT(TextReport(report, {.width = 120, .sections = {"machines"}}),
              HasSubstr("on node-1: loader (recorded, blocked 77.0 %) 0.00 CPUs"));
}

TEST(OneScreenText, WhoWaitsForStorage) {
  analysis::Report report = Fleet(64, Job::kPyTorch);
  report.machines[40].processes[0].usage.blocked_ns = kWindowNs / 100;
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("Blocked")));
  report.machines[40].processes[0].usage.blocked_ns = kWindowNs / 5;
  const std::string text = TextReport(report, {});
  EXPECT_LE(LinesOf(text), kScreenLines) << text;
  EXPECT_EQ(ItemOf(text, "Blocked"),
            "Blocked main threads in the kernel, mostly for storage, of their time: median 0.0 %, "
            "worst 20.0 % (node-40 · rank 40), 63 others 0.0 %");
}

TEST(OneScreenText, WhoGetsMemoryAnewAllTheTime) {
  analysis::Report report = Fleet(64, Job::kPyTorch);
  analysis::ProcessUsage& usage = report.machines[40].processes[0].usage;
  usage.minor_faults = kWindowNs / 100'000;
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("Page faults"))) << "cost unknown";
  usage.page_ns = 2'000;
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("Page faults"))) << "2 %";
  usage.page_ns = 5'000;
  const std::string text = TextReport(report, {});
  EXPECT_LE(LinesOf(text), kScreenLines) << text;
  EXPECT_EQ(
      ItemOf(text, "Page faults"),
      "Page faults main threads, without storage, of their time, as pages cost: median 0.0 %, "
      "worst 5.0 % (node-40 · rank 40), 63 others 0.0 %");
}

TEST(OneScreenText, WhatAHypervisorTakes) {
  analysis::Report report = Fleet(64, Job::kPyTorch);
  analysis::ProcessUsage& usage = report.machines[40].processes[0].usage;
  usage.cpus_busy_ns = 990'000'000;
  usage.cpus_stolen_ns = 10'000'000;
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("Steal time"))) << "1 %";
  usage.cpus_stolen_ns = 110'000'000;
  const std::string text = TextReport(report, {});
  EXPECT_LE(LinesOf(text), kScreenLines) << text;
  EXPECT_EQ(ItemOf(text, "Steal time"),
            "Steal time taken by a hypervisor, of the time in which their CPUs had something to "
            "do: median 0.0 %, worst 10.0 % (node-40 · rank 40), 63 others 0.0 %");
}

// A data loader's worker on its rank's CPU is recorded, and is what the rank waits for.
TEST(OneScreenText, RecordedProcessesBesideTheRanksAreOtherLoad) {
  analysis::Report report = Fleet(2, Job::kPyTorch);
  analysis::MachineReport& machine = report.machines[1];
  machine.processes[1].usage.threads_running_ns = kWindowNs / 100 * 39;
  machine.others = {{evidence::Relation::kOther, "stress", 4711, kWindowNs / 5}};
  EXPECT_EQ(ItemOf(TextReport(report, {}), "Other load"),
            "Other load node-1: loader (recorded) 0.39 CPUs, stress (pid 4711) 0.20 CPUs");
  EXPECT_THAT(TextReport(report, {.width = 120, .sections = {"machines"}}),
              HasSubstr("Other processes, on node-1: loader (recorded) 0.39 CPUs, stress"));
}

TEST(SectionsByName, WhatTheMachinesDid) {
  analysis::Report report = Fleet(3, Job::kPyTorch);
  report.machines[2].processes[0].usage.throttled_ns = kWindowNs / 5;
  report.machines[2].processes[0].usage.blocked_ns = kWindowNs / 100 * 7;
  report.machines[2].processes[0].usage.read_bytes = kWindowNs / 80;
  report.machines[2].processes[0].usage.cpus_busy_ns = kWindowNs / 100 * 76;
  report.machines[2].processes[0].usage.cpus_stolen_ns = kWindowNs / 100 * 24;
  report.machines[2].processes[0].usage.clock_khz = 1'200'000;
  report.machines[2].processes[0].usage.minor_faults = kWindowNs / 100'000;
  report.machines[2].processes[0].usage.full_group = {"/job\nx", 1, 300'000'000, 120,
                                                      2'000'000'000};
  report.machines[2].processes[1].usage.full_group = {"/job\nx", 1, 300'000'000, 119,
                                                      2'000'000'000};
  report.machines[1].processes[0].usage.full_group = {"/b", 2, -1, 121, 2'000'000'000};
  report.machines[1].processes[0].usage.sampled_ns = kWindowNs / 2;
  report.machines[1].processes[0].usage.running_ns = kWindowNs / 2;
  report.machines[1].processes[0].usage.waiting_ns = 0;
  report.machines[0].others = {
      {evidence::Relation::kSyncline, "lttng-consumerd", 12, kWindowNs / 50},
      {evidence::Relation::kOther, "sshd", 13, kWindowNs / 1000}};
  const std::string text = TextReport(report, {.width = 120, .sections = {"machines"}});
  const auto row = [&](const std::string& name) {
    const size_t begin = text.find("  " + name);
    return std::regex_replace(text.substr(begin, text.find('\n', begin) - begin),
                              std::regex("\\s+"), " ");
  };
  EXPECT_EQ(row("node-2 ·"),
            " node-2 · rank 2 60.0 % 1.0 % 20.0 % 19.0 % 7.0 % 24.0 % 1.20 12.5 10 000 1.25 0.02");
  EXPECT_EQ(row("node-1 ·"), " node-1 · rank 1 100.0 % 0.0 % 0.0 % 0.0 % - - - - - 2.50 0.04");
  EXPECT_LT(text.find("rank 2"), text.find("rank 0")) << "who was kept from its CPU comes first";
  EXPECT_THAT(text, Not(HasSubstr("loader")));
  EXPECT_THAT(text, HasSubstr("a part of the window only: 50.0 % (node-1 · rank 1)."));
  const std::string flat = std::regex_replace(text, std::regex("\\s+"), " ");
  EXPECT_THAT(flat, HasSubstr("paged out), on node-1: /b 121 times in 2.0 s Memory limit reached"));
  EXPECT_THAT(flat, HasSubstr("paged out), on node-2: /job?x (300.0 MB) 120 times in 2.0 s"));
  EXPECT_THAT(text, HasSubstr("node-0: lttng-consumerd (pid 12, of Syncline) 0.02 CPUs\n"));
}

}  // namespace
}  // namespace syncline::report
