// SPDX-License-Identifier: Apache-2.0
#include "export/why/cut_comparison_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/why/cut_comparison_json.h"
#include "export/why/testing/changes.h"

namespace syncline::report {
namespace {

using analysis::why::CutRefusal;
using analysis::why::LimitResult;
using analysis::why::Mismatch;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMs = 1'000'000;
constexpr char kMaster[] = "/job:master/replica:0/task:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0";

ComparedCuts Compared() {
  ComparedCuts compared;
  compared.now = "tonight";
  compared.before = {"monday"};
  auto& comparison = compared.comparison;
  comparison.before = {.window_ns = 5'000 * kMs, .steps = 250, .ranks = 2};
  comparison.now = {.window_ns = 5'000 * kMs, .steps = 160, .ranks = 2};
  comparison.befores = {comparison.before};
  comparison.step = ChangeOf(20, 31);
  comparison.work = ChangeOf(14, 24);
  comparison.partitions = {{kMaster, ChangeOf(8, 18)}, {kWorker, ChangeOf(6, 6)}};
  comparison.clock_ns = 40'000;
  comparison.tensors = ChangeOf(4, 5);
  comparison.between = ChangeOf(2, 2);
  comparison.directions = {{kMaster, kWorker, ChangeOf(2, 2)}, {kWorker, kMaster, ChangeOf(2, 3)}};
  comparison.operators = {{{kMaster, "sleepy\x1b[31m"}, 0, 1, "", ChangeOf(0, 10)},
                          {{kWorker, "MatMul"}, 1, 0, "", ChangeOf(3, 0)},
                          {{kMaster, "MatMul"}, 0, 1, kWorker, ChangeOf(0, 3)},
                          {{kWorker, "Add"}, 1, 2.5, "", ChangeOf(0, 1)},
                          {{kWorker, "Sub"}, 1, 1, "", ChangeOf(1, 1)}};
  comparison.tensor_changes = {{{"edge_1_y", kWorker, kMaster}, true, true, ChangeOf(2, 3)}};
  return compared;
}

std::string TextOf(const ComparedCuts& compared) { return ComparisonText(compared, {300, false}); }

TEST(CutComparisonText, SaysWhatChanged) {
  const std::string text = TextOf(Compared());
  EXPECT_THAT(text, HasSubstr("tonight: 5.0 s, 2 partitions, 160 steps of one class\n"));
  EXPECT_THAT(text, HasSubstr("longer: 31.0 ms now, 20.0 ms before, a change of +11.0 ms "
                              "[10.5, 11.5], +55.0 % [+52.5, +57.5]"));
  for (const char* row :
       {"work of the partitions", "    master:0", "tensors between them",
        "    worker:0 to master:0", "between steps", "edge_1_y: from worker:0 to master:0"}) {
    EXPECT_THAT(text, HasSubstr(row));
  }
  EXPECT_THAT(text, HasSubstr("may have moved the tensors' time of a step, and what lies between "
                              "steps, by ± 0.040 ms"));
}

TEST(CutComparisonText, SaysWhereAnOperatorRan) {
  const std::string text = TextOf(Compared());
  EXPECT_THAT(text, AllOf(HasSubstr("sleepy?[31m of master:0: ran in no judged step before"),
                          HasSubstr("MatMul of worker:0: runs in no judged step now"),
                          HasSubstr("MatMul of master:0: ran on worker:0 before"),
                          HasSubstr("Add of worker:0: runs 2.50 times a step, 1 before")));
  EXPECT_THAT(text, Not(HasSubstr("Sub")));  // it did not change
}

TEST(CutComparisonText, WithoutAKnownClockOnlyTheStepIsThere) {
  ComparedCuts compared = Compared();
  auto& comparison = compared.comparison;
  comparison.clock_ns.reset();
  comparison.work.reset();
  comparison.tensors.reset();
  comparison.between.reset();
  comparison.partitions.clear();
  comparison.directions.clear();
  comparison.operators.clear();
  comparison.tensor_changes.clear();
  const std::string text = TextOf(compared);
  EXPECT_THAT(text, AllOf(HasSubstr("only the step is compared"), HasSubstr("  step"),
                          Not(HasSubstr("work of the partitions"))));
  const auto json = nlohmann::json::parse(ComparisonJson(compared));
  EXPECT_EQ(json["clock_bound_ns"], nullptr);
  EXPECT_EQ(json["path"]["work"], nullptr);
  EXPECT_EQ(json["step"]["change_ns"]["est"], 11 * kMs);
}

TEST(CutComparisonText, JsonHasAllOfIt) {
  ComparedCuts compared = Compared();
  compared.limits = {{{.text = "step > +5%", .ppm = 50'000},
                      LimitResult::State::kAbove,
                      "",
                      compared.comparison.step}};
  const auto json = nlohmann::json::parse(ComparisonJson(compared));
  EXPECT_EQ(json["format"], "syncline-comparison");
  EXPECT_EQ(json["kind"], "cut");
  EXPECT_EQ(json["status"], "compared");
  EXPECT_EQ(json["limits"][0]["state"], "above");
  EXPECT_EQ(json["now"]["partitions"], 2);
  EXPECT_EQ(json["path"]["partitions"][0]["task"], kMaster);
  EXPECT_EQ(json["path"]["directions"][1]["path"]["change_ns"]["est"], kMs);
  EXPECT_EQ(json["path"]["operators"][2]["moved_from"], kWorker);
  EXPECT_EQ(json["path"]["tensor_changes"][0]["tensor"], "edge_1_y");
}

TEST(CutComparisonText, ARefusalIsOneParagraph) {
  ComparedCuts compared = Compared();
  compared.comparison.mismatch = Mismatch::kNowRefused;
  compared.comparison.refusal = CutRefusal::kTooFewSteps;
  compared.comparison.mismatch_text = "the recording now: 3 whole steps";
  EXPECT_EQ(TextOf(compared), "REFUSED the recording now: 3 whole steps\n");
  const auto json = nlohmann::json::parse(ComparisonJson(compared));
  EXPECT_EQ(json["status"], "refused");
  EXPECT_EQ(json["reason"], "now_refused");
  EXPECT_EQ(json["refusal"], "too_few_steps");
  EXPECT_EQ(json["path"], nullptr);
}

}  // namespace
}  // namespace syncline::report
