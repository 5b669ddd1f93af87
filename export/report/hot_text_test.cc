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

TEST(HotCodeText, ARecordingWithoutSamplesHasNoSection) {
  EXPECT_FALSE(HasHotCode(analysis::Report()));
  EXPECT_TRUE(HasHotCode(Sampled()));
}

}  // namespace
}  // namespace syncline::report
