// SPDX-License-Identifier: Apache-2.0
#include "export/report/hot_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syncline::report {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

analysis::Report Sampled() {
  analysis::Report report;
  report.nodes.resize(1);
  report.nodes[0].name = "node-1";
  analysis::HotNode node{.node = 0,
                         .period_ns = 10'101'010,
                         .kernel = false,
                         .complete = true,
                         .threads = 2,
                         .samples = 400,
                         .lost = 3,
                         .on_cpu_ns = 4'040'000'000,
                         .cost_ns = 9'000'000};
  report.hot.nodes = {node};
  analysis::HotTask conv{.domain = "dnnl", .name = "convolution", .samples = 300};
  conv.functions = {
      {.function = "void at::f<int (*)(char), long>(c10::Tensor const&, long)::{lambda(int)#1}",
       .library = "libtorch_cpu.so",
       .samples = 200,
       .kernel_samples = 100,
       .kernel_function = "clear_page",
       .lines = {{"/src/f.cc", 12, 150}}},
      {.function = "", .library = "[generated code]", .samples = 97},
      {.function = "rare", .library = "libc.so.6", .samples = 3}};
  analysis::HotTask helpers{
      .where = analysis::HotTask::Where::kWithoutTasks, .samples = 100, .waiting_samples = 100};
  helpers.functions = {
      {.function = "", .library = "libgomp.so.1", .samples = 100, .waiting = true}};
  report.hot.tasks = {conv, helpers};
  helpers.where = analysis::HotTask::Where::kTask;
  helpers.name = "relu";
  report.hot.helpers = {helpers};
  report.hot.samples = 400;
  return report;
}

std::string InFull(const analysis::Report& report) {
  Page page(report, 200, false);
  HotCodeInFull(&page);
  return page.Take();
}

TEST(HotCodeText, TasksWithTheirFunctions) {
  const std::string text = InFull(Sampled());
  EXPECT_THAT(text, HasSubstr("400 samples of 2 threads"));
  EXPECT_THAT(text, HasSubstr("3 samples lost"));
  EXPECT_THAT(text, HasSubstr("CAP_PERFMON"));
  EXPECT_THAT(text, HasSubstr("convolution (dnnl)"));
  EXPECT_THAT(text, HasSubstr("75.0 ± 4.2 %"));
  EXPECT_THAT(text, HasSubstr("void at::f<…>(…)::{lambda(…)#1}"));
  EXPECT_THAT(text, HasSubstr("in the kernel 50.0 %: clear_page, f.cc:12"));
  EXPECT_THAT(text, HasSubstr("other functions")) << "less than a fiftieth";
  EXPECT_THAT(text, HasSubstr("threads without recorded tasks"));
  EXPECT_THAT(text, HasSubstr("100.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("rare")));
}

TEST(HotCodeText, HelpersByWhatWasOpenMeanwhile) {
  analysis::Report report = Sampled();
  const std::string text = InFull(report);
  EXPECT_THAT(text, ContainsRegex("relu  *25.0 ± 4.2 %  *100.0 %  libgomp.so.1  \\(no symbol\\)"));
  report.hot.helpers[0].where = analysis::HotTask::Where::kOutside;
  EXPECT_THAT(InFull(report), Not(HasSubstr("meanwhile"))) << "nothing is known of any";
}

TEST(HotCodeText, WhatTheNodeSaysIsSaid) {
  analysis::Report report = Sampled();
  report.hot.nodes[0].complete = false;
  report.hot.nodes[0].notes = {"some threads are not sampled"};
  const std::string text = InFull(report);
  EXPECT_THAT(text, HasSubstr("node-1: some threads are not sampled"));
  EXPECT_THAT(text, HasSubstr("end early"));
}

TEST(HotCodeText, JsonHasTheWholeNamesAndTheIntervals) {
  nlohmann::ordered_json json;
  HotCodeInJson(Sampled(), &json);
  const auto& task = json["hot"]["tasks"][0];
  EXPECT_EQ(task["where"], "task");
  EXPECT_EQ(task["share"]["est"], 0.75);
  EXPECT_GT(task["share"]["lo"], 0.70);
  EXPECT_THAT(task["functions"][0]["function"].get<std::string>(), HasSubstr("c10::Tensor"));
  EXPECT_EQ(task["functions"][0]["lines"][0]["line"], 12);
  EXPECT_EQ(json["hot"]["tasks"][1]["where"], "thread_without_tasks");
  EXPECT_EQ(json["hot"]["helpers"][0]["name"], "relu");
  EXPECT_EQ(json["hot"]["nodes"][0]["lost"], 3);
}

analysis::Report WithFaults() {
  analysis::Report report = Sampled();
  report.hot.nodes[0].kernel = true;
  report.hot.tasks[0].fault_samples = 150;
  report.hot.tasks[0].release_samples = 30;
  analysis::SoftwareNode node{.node = 0,
                              .kernel = true,
                              .watched_ns = 250'000'000,
                              .all_ns = 1'000'000'000,
                              .cost_ns = 20'200'000,
                              .lost = 4,
                              .table_ns = 240'000'000,
                              .kernels = {51'200, 1, 10, 20, 0}};
  analysis::SoftwareTask task{.domain = "dnnl", .name = "convolution", .calls = 200};
  task.kinds = {
      {{51'200, 1'400, 0}, {1, 0, 0}, {10, 0, 5'000'000}, {20, 0, 30'000'000}, {5, 0, 0}}};
  report.hot.software.nodes = {node};
  report.hot.software.tasks = {task, {.name = "idle", .calls = 3}};
  return report;
}

TEST(HotCodeText, FaultsAndSwitchesOfEachTask) {
  const std::string text = InFull(WithFaults());
  EXPECT_THAT(text, HasSubstr("51 200 minor and 1 major page faults"));
  EXPECT_THAT(text, HasSubstr("watching cost the threads some 20.2 ms of processor time (0.5 %)"));
  EXPECT_THAT(text, HasSubstr("it was ended after 250 ms, because it cost too much"));
  EXPECT_THAT(text, HasSubstr("the table is of the first 240 ms of the window"));
  EXPECT_THAT(text, HasSubstr("no room for 4 records"));
  EXPECT_THAT(text,
              ContainsRegex("convolution \\(dnnl\\) +200 +51 200 ± 1 400 +256 +50.0 ± 5.6 %"));
  EXPECT_THAT(text, ContainsRegex("20 +30.0 ms +5"));
  EXPECT_THAT(text, HasSubstr("convolution (dnnl): page faults take 50.0 ± 5.6 % of its processor "
                              "time; giving memory back to the system takes 10.0 ± 3.4 %."));
  EXPECT_THAT(text, Not(HasSubstr("idle"))) << "it had none";
}

TEST(HotCodeText, WhereTheKernelIsNotSeenNoPartOfTheTimeIsSaid) {
  analysis::Report report = WithFaults();
  report.hot.nodes[0].kernel = false;
  report.hot.software.nodes[0].kernel = false;
  const std::string text = InFull(report);
  EXPECT_THAT(text, HasSubstr("in that count and not in the table"));
  EXPECT_THAT(text, Not(HasSubstr("page faults take")));
  EXPECT_THAT(InFull(Sampled()), Not(HasSubstr("faults"))) << "of an older recording";
}

TEST(HotCodeText, JsonHasFaultsAndSwitches) {
  nlohmann::ordered_json json;
  HotCodeInJson(WithFaults(), &json);
  const auto& software = json["hot"]["software"];
  EXPECT_EQ(software["nodes"][0]["kernel_counts"]["minor_faults"], 51'200);
  EXPECT_EQ(software["nodes"][0]["watched_ns"], 250'000'000);
  EXPECT_EQ(software["nodes"][0]["table_ns"], 240'000'000);
  const auto& task = software["tasks"][0];
  EXPECT_EQ(task["calls"], 200);
  EXPECT_EQ(task["minor_faults"]["half_width"], 1'400);
  EXPECT_EQ(task["preempted_ns"], 30'000'000);
  EXPECT_EQ(task["fault_samples"], 150);
}

TEST(HotCodeText, ARecordingWithoutSamplesHasNoSection) {
  EXPECT_FALSE(HasHotCode(analysis::Report()));
  EXPECT_TRUE(HasHotCode(Sampled()));
}

}  // namespace
}  // namespace syncline::report
