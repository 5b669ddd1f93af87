// SPDX-License-Identifier: Apache-2.0
#include "export/flame/flame_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syncline::flame {
namespace {

using analysis::SampledFrame;

analysis::SampledStacks Stacks() {
  return {
      .frames = {{.kind = SampledFrame::Kind::kTask, .name = "step #", .file = "torch"},
                 {.kind = SampledFrame::Kind::kFunction,
                  .name = "copy(a; b\n)",
                  .file = "/src/copy.c",
                  .line = 3},
                 {.kind = SampledFrame::Kind::kKernel, .name = "futex_wait", .file = "[kernel]"},
                 {.kind = SampledFrame::Kind::kFunction, .name = "caf\xe9"}},
      .threads = {{.process = "a · rank 0", .thread = "idle", .period_ns = 10, .samples = {{3}}},
                  {.process = "a · rank 0",
                   .thread = "main",
                   .period_ns = 10,
                   .samples = {{0, 1}, {0, 1, 2}, {0, 1}}}}};
}

TEST(FoldedTextTest, ALineForEachStack) {
  EXPECT_EQ(FoldedText(Stacks()),
            "a · rank 0;idle;caf\xef\xbf\xbd 1\n"
            "a · rank 0;main;step # [task];copy(a: b ) 2\n"
            "a · rank 0;main;step # [task];copy(a: b );futex_wait_[k] 1\n");
}

TEST(SpeedscopeJsonTest, AProfileForEachThreadTheBusiestFirst) {
  const auto json = nlohmann::json::parse(SpeedscopeJson(Stacks()));
  ASSERT_EQ(json["shared"]["frames"].size(), 4u);
  EXPECT_EQ(json["shared"]["frames"][1],
            (nlohmann::json{{"name", "copy(a; b\n)"}, {"file", "/src/copy.c"}, {"line", 3}}));
  ASSERT_EQ(json["profiles"].size(), 2u);
  const auto& busiest = json["profiles"][0];
  EXPECT_EQ(busiest["name"], "a · rank 0 · main");
  EXPECT_EQ(busiest["type"], "sampled");
  EXPECT_EQ(busiest["samples"], (nlohmann::json{{0, 1}, {0, 1, 2}, {0, 1}}));
  EXPECT_EQ(busiest["weights"], (nlohmann::json{10, 10, 10}));
  EXPECT_EQ(busiest["endValue"], 30);
}

TEST(FlameFilesTest, NoSamplesAreNoLines) {
  EXPECT_EQ(FoldedText({}), "");
  const auto json = nlohmann::json::parse(SpeedscopeJson({}));
  EXPECT_TRUE(json["profiles"].empty() && json["profiles"].is_array());
}

}  // namespace
}  // namespace syncline::flame
