// SPDX-License-Identifier: Apache-2.0
#include "export/report/primitives_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/report/json_values.h"

namespace syncline::report {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

analysis::Report Recorded() {
  analysis::Report report;
  report.nodes.resize(1);
  report.nodes[0].name = "node-1";
  analysis::PrimitiveReport& primitives = report.primitives;
  const analysis::PrimitiveDescription convolution{.kind = "convolution",
                                                   .implementation = "jit:avx512_core",
                                                   .propagation = "forward_training",
                                                   .types = "f32",
                                                   .layouts = "src abcd, dst aBcd16b",
                                                   .shapes = "mb16_ic3oc64"};
  const analysis::PrimitiveDescription reorder{.kind = "reorder",
                                               .implementation = "jit:uni",
                                               .types = "f32",
                                               .layouts = "abcd → aBcd16b",
                                               .shapes = "16x3x8x8"};
  primitives.processes = {{.node = 0,
                           .name = "node-1 · rank 0",
                           .calls = 1500,
                           .total_ns = 100'000'000,
                           .reorder_ns = 25'000'000,
                           .by_set_ns = {{"", 25'000'000}, {"avx512_core", 75'000'000}},
                           .helper_parts = 7,
                           .made = 12,
                           .make_ns = 3'000'000}};
  primitives.totals = {{"aten::conv2d", convolution, 500, 74'900'000},
                       {"aten::conv2d", reorder, 990, 25'000'000},
                       {"aten::conv2d", {.kind = "rare"}, 10, 100'000}};
  primitives.reorders = {{"aten::conv2d", reorder, "", "aten::conv2d", 990, 25'000'000}};
  return report;
}

std::string InFull(const analysis::Report& report) {
  Page page(report, 200, false);
  PrimitivesInFull(&page);
  return page.Take();
}

TEST(PrimitivesText, UnderTheirTasks) {
  const std::string text = InFull(Recorded());
  EXPECT_THAT(text, ContainsRegex("node-1 · rank 0 +1 500 +100 ms +25.0 % +12 +3.00 ms +"
                                  "avx512_core 75.0 %, none named 25.0 %"));
  EXPECT_THAT(text, ContainsRegex("aten::conv2d +1 500 +100 ms +66.7 µs +100.0 %"));
  EXPECT_THAT(text, ContainsRegex("  convolution, forward_training +500 +74.9 ms +150 µs +74.9 %\n"
                                  "      jit:avx512_core, f32, mb16_ic3oc64, src abcd, dst "));
  EXPECT_THAT(text, ContainsRegex("  others +10 +100 µs +10.0 µs +0.1 %"));
  EXPECT_THAT(text, ContainsRegex("abcd → aBcd16b, 16x3x8x8 +990 +25.0 ms +25.3 µs +25.0 %\n"
                                  "      in aten::conv2d; ran before aten::conv2d\n"));
  EXPECT_THAT(text, HasSubstr("7 primitives of threads that have no other tasks"));
  EXPECT_THAT(text, Not(HasSubstr("without a description")));
  EXPECT_THAT(text, Not(HasSubstr("brief primitives")));
}

TEST(PrimitivesText, SaysWhatItDoesNotKnow) {
  analysis::Report report = Recorded();
  report.detail = "low";
  report.primitives.processes[0].not_described = 1400;
  const std::string text = InFull(report);
  EXPECT_THAT(text, HasSubstr("1 400 of 1 500 calls"));
  EXPECT_THAT(text, HasSubstr("Recorded with --detail low"));
}

TEST(PrimitivesText, NamesReferenceImplementations) {
  analysis::Report report = Recorded();
  report.primitives.processes[0].reference_ns = 40'000'000;
  EXPECT_THAT(InFull(report), HasSubstr("! node-1 · rank 0: 40.0 ms (40.0 %) in reference"));
  Page page(report, 200, false);
  PrimitivesInShort(&page);
  EXPECT_THAT(page.Take(), HasSubstr("40.0 % in reference implementations"));
}

TEST(PrimitivesText, NamesWhoseImplementationsDiffer) {
  analysis::Report report = Recorded();
  analysis::ImplementationDifference difference;
  difference.task = "aten::conv2d";
  difference.what = {.kind = "convolution", .types = "f32", .shapes = "mb16_ic3oc64"};
  difference.sides = {{{"jit:avx2"}, {"rank 1"}}, {{"jit:avx512_core"}, {"rank 0", "rank 2"}}};
  report.primitives.differences = {difference};
  EXPECT_THAT(InFull(report), HasSubstr("convolution in aten::conv2d (f32 mb16_ic3oc64) is: "
                                        "jit:avx2 in rank 1; jit:avx512_core in rank 0, rank 2"));
}

TEST(PrimitivesText, InOneLine) {
  const analysis::Report report = Recorded();
  Page page(report, 200, false);
  PrimitivesInShort(&page);
  EXPECT_THAT(page.Take(), HasSubstr("1 500 primitives, 100 ms, 25.0 % of it in reorders"));
}

TEST(PrimitivesText, InJson) {
  Json json;
  PrimitivesInJson(Recorded(), &json);
  const Json& primitives = json["primitives"];
  EXPECT_EQ(primitives["processes"][0]["instruction_sets"][1]["instruction_set"], "avx512_core");
  EXPECT_EQ(primitives["totals"][0]["implementation"], "jit:avx512_core");
  EXPECT_EQ(primitives["reorders"][0]["after"], "aten::conv2d");
  EXPECT_TRUE(primitives["differences"].empty());
}

}  // namespace
}  // namespace syncline::report
