// SPDX-License-Identifier: Apache-2.0
#include "export/report/vtune_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syncline::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

analysis::Report WithResults() {
  analysis::Report report;
  report.nodes.resize(1);
  report.nodes[0].name = "node-1";
  analysis::VtuneResult result;
  result.pid = 17;
  result.rank = 0;
  result.analysis = "hotspots";
  result.version = "VTune 2025.0";
  result.path = "nodes/node-1/vtune/17/result";
  result.bytes = 100;
  result.resumed = {3'000'000, 170'000'000};
  result.stopped = {4'000'000, 200'000'000};
  result.spans = {{"step 7", 171, {0}, {2'000'000'000}, 1'500'000'000, 4'000'000'000}};
  analysis::VtuneResult failed;
  failed.pid = 18;
  failed.analysis = "hotspots";
  failed.problem = "VTune ended with code 1: no driver";
  report.vtune = {result, failed};
  return report;
}

TEST(VtuneText, HasTheCommandsOfEachResult) {
  const analysis::Report report = WithResults();
  Page page(report, 80, false);
  VtuneInFull(&page);
  const std::string text = page.Take();
  EXPECT_THAT(text, HasSubstr("node-1 · rank 0 · pid 17: hotspots, VTune 2025.0"));
  EXPECT_THAT(text, HasSubstr("resumed between 3.00 ms and 170 ms behind the begin"));
  EXPECT_THAT(text, HasSubstr("    vtune -finalize -result-dir nodes/node-1/vtune/17/result\n"));
  EXPECT_THAT(text, HasSubstr("    vtune -report hotspots -result-dir "
                              "nodes/node-1/vtune/17/result -group-by thread,function\n"));
  EXPECT_THAT(text, HasSubstr("the longest step 7: 2.000 s of thread 171"));
  EXPECT_THAT(text, HasSubstr("-report-knob start=1.500000 -report-knob end=4.000000\n"));
  EXPECT_THAT(text, HasSubstr("node-1 · pid 18: hotspots"));
  EXPECT_THAT(text, HasSubstr("! VTune ended with code 1: no driver"));
  EXPECT_THAT(text, HasSubstr("no result was kept"));
}

TEST(VtuneText, IsInTheJson) {
  nlohmann::ordered_json json;
  VtuneInJson(WithResults(), &json);
  ASSERT_EQ(json["vtune"].size(), 2u);
  EXPECT_EQ(json["vtune"][0]["commands"].size(), 2u);
  EXPECT_THAT(json["vtune"][0]["spans"][0]["command"].get<std::string>(),
              HasSubstr("vtune -report timeline"));
  EXPECT_EQ(json["vtune"][0]["resumed"]["end_ns"], 170'000'000);
  EXPECT_TRUE(json["vtune"][1]["resumed"].is_null());
  EXPECT_TRUE(json["vtune"][1]["commands"].empty());
}

TEST(VtuneText, NoTerminalCodesInCommands) {
  analysis::Report report = WithResults();
  report.vtune[0].path = "nodes/\x1b[31m/vtune";
  Page page(report, 80, false);
  VtuneInFull(&page);
  EXPECT_THAT(page.Take(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace syncline::report
