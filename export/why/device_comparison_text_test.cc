// SPDX-License-Identifier: Apache-2.0
#include "export/why/device_comparison_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/why/device_comparison_json.h"
#include "export/why/testing/changes.h"

namespace syncline::report {
namespace {

using analysis::why::DevicePart;
using analysis::why::Mismatch;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMs = 1'000'000;

ComparedDevices Compared() {
  ComparedDevices compared;
  compared.now = "tonight";
  compared.before = {"monday"};
  auto& comparison = compared.comparison;
  comparison.before = {"llm", 5'000 * kMs, 250, "2 kernels of collectives", 2, false, 0};
  comparison.now = {"llm", 5'000 * kMs, 160, "2 kernels of collectives", 2, false, 0};
  comparison.befores = {comparison.before};
  comparison.has_collectives = true;
  comparison.step = ChangeOf(20, 31);
  comparison.parts[static_cast<size_t>(DevicePart::kComputing)] = ChangeOf(14, 24);
  comparison.ranks = {{0, ChangeOf(15, 15), {}}, {1, ChangeOf(15, 26), {}}};
  comparison.kernels = {{{"gemm", "[8, 1, 1] x [128, 1, 1]"}, ChangeOf(8, 16), 10, 10},
                        {{"relu\x1b[31m", ""}, ChangeOf(0, 1), 0, 2},
                        {{"softmax", ""}, ChangeOf(2, 0), 2, 0},
                        {{"copy", ""}, ChangeOf(1, 2), 4, 8.5},
                        {{"same", ""}, ChangeOf(3, 3), 4, 4}};
  return compared;
}

std::string TextOf(const ComparedDevices& compared) {
  return ComparisonText(compared, {300, false});
}

TEST(DeviceComparisonText, SaysWhatChanged) {
  const std::string text = TextOf(Compared());
  EXPECT_THAT(text, HasSubstr("tonight: 5.0 s, 2 ranks, 160 steps of one class (2 kernels of "
                              "collectives)\n"));
  EXPECT_THAT(text, HasSubstr("longer: 31.0 ms now, 20.0 ms before"));
  EXPECT_THAT(text, HasSubstr("which rank changed, its own work says"));
  EXPECT_THAT(text, AllOf(HasSubstr("  computing"), HasSubstr("  waiting for a launch"),
                          HasSubstr("  rank 1: own work"), Not(HasSubstr("rank 0: own work"))));
  EXPECT_THAT(text, AllOf(HasSubstr("1: gemm [8, 1, 1] x [128, 1, 1]: runs as often, and longer"),
                          HasSubstr("relu?[31m: ran in no judged step before"),
                          HasSubstr("softmax: runs in no judged step now"),
                          HasSubstr("copy: runs 8.5 times a step and rank, 4 before"),
                          Not(HasSubstr("same:"))));
}

// A kernel runs 21 times instead of 20, and each as long as before.
TEST(DeviceComparisonText, OneMoreKernelIsNotALongerOne) {
  ComparedDevices compared = Compared();
  compared.comparison.kernels = {{{"gemm", ""}, ChangeOf(20, 21), 20, 21}};
  EXPECT_THAT(TextOf(compared), HasSubstr("gemm: runs 21 times a step and rank, 20 before"));
}

TEST(DeviceComparisonText, OfOneRankNobodyIsSaidToWait) {
  ComparedDevices compared = Compared();
  compared.comparison.ranks.pop_back();
  EXPECT_THAT(TextOf(compared), Not(HasSubstr("which rank changed")));
}

TEST(DeviceComparisonText, OwnWorkThatIsNotKnownIsLeftOut) {
  ComparedDevices compared = Compared();
  compared.comparison.own_work_known = false;
  EXPECT_THAT(TextOf(compared), Not(HasSubstr("rank 1: own work")));
  EXPECT_EQ(nlohmann::json::parse(ComparisonJson(compared))["ranks"][1]["own_work"], nullptr);
}

TEST(DeviceComparisonText, OwnWorkStandsFirstAndWhatIsLeftOutIsSaid) {
  ComparedDevices compared = Compared();
  compared.comparison.now.left_out = 3;
  auto& parts = compared.comparison.ranks[0].parts;
  parts[static_cast<size_t>(DevicePart::kCommunication)] = ChangeOf(1, 20);  // more than own work
  const std::string text = TextOf(compared);
  EXPECT_LT(text.find("rank 1: own work"), text.find("rank 0: exposed communication"));
  EXPECT_THAT(text, HasSubstr("; 3 steps left out\n"));
}

TEST(DeviceComparisonText, JsonHasAllOfIt) {
  const auto json = nlohmann::json::parse(ComparisonJson(Compared()));
  EXPECT_EQ(json["kind"], "devices");
  EXPECT_EQ(json["status"], "compared");
  EXPECT_EQ(json["now"]["ranks"], 2);
  EXPECT_EQ(json["parts"]["computing"]["change_ns"]["est"], 10 * kMs);
  EXPECT_EQ(json["ranks"][1]["own_work"]["change_ns"]["est"], 11 * kMs);
  EXPECT_EQ(json["kernels"][0]["kernel"], "gemm");
  EXPECT_EQ(json["kernels"][3]["calls_now_per_step"], 8.5);
}

TEST(DeviceComparisonText, ARefusalIsOneParagraph) {
  ComparedDevices compared = Compared();
  compared.comparison.mismatch = Mismatch::kTooFewSteps;
  compared.comparison.mismatch_text = "not comparable: 3 steps";
  EXPECT_EQ(TextOf(compared), "REFUSED not comparable: 3 steps\n");
  const auto json = nlohmann::json::parse(ComparisonJson(compared));
  EXPECT_EQ(json["reason"], "too_few_steps");
  EXPECT_EQ(json["parts"], nullptr);
}

}  // namespace
}  // namespace syncline::report
