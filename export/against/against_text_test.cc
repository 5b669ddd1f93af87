// SPDX-License-Identifier: Apache-2.0
// The words of a comparison of reports, from one made by hand.
#include "export/against/against_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/text_width.h"
#include "export/against/against_json.h"
#include "export/why/testing/changes.h"

namespace syncline::report {
namespace {

using analysis::against::Comparison;
using analysis::against::Condition;
using analysis::against::Mismatch;
using analysis::against::Per;
using analysis::against::RowChange;
using analysis::against::RowKind;
using analysis::against::StepChange;
using State = RowChange::State;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

RowChange Row(RowKind kind, const std::string& name, int64_t before_ms, int64_t now_ms) {
  RowChange row;
  row.name = {kind, kind == RowKind::kCollective ? "default_pg" : "torch", name};
  row.time = ChangeOf(before_ms, now_ms);
  row.calls_before = 2;
  row.calls_now = 2;
  row.state = before_ms == now_ms ? State::kSame
              : before_ms == 0    ? State::kAppeared
                                  : State::kChanged;
  row.where = {1, 2, 1, (now_ms - before_ms) * 2'000'000};
  return row;
}

ComparedReports Compared() {
  ComparedReports compared;
  compared.now = "today";
  compared.before = {"last-week"};
  Comparison& comparison = compared.comparison;
  comparison.now = {.id = "a",
                    .detail = "full",
                    .counted_ns = 5'000'000'000,
                    .nodes = 2,
                    .processes = 2,
                    .ranks = 2,
                    .steps = 240};
  comparison.befores = {comparison.now};
  comparison.per = Per::kStep;
  comparison.step_name = "train_step";
  comparison.members = {{0, "rank 0"}, {1, "rank 1"}};
  StepChange& step = comparison.steps.emplace_back();
  step.name = "train_step";
  step.steps_before = step.steps_now = 240;
  step.median_before_ns = 19'000'000;
  step.median_now_ns = 29'000'000;
  step.length = ChangeOf(20, 30);
  step.has_interval = true;
  comparison.rows = {
      Row(RowKind::kTask, "aten::sort", 0, 9), Row(RowKind::kCollective, "allreduce", 4, 8),
      Row(RowKind::kTask, "aten::conv2d", 5, 5), Row(RowKind::kTask, "aten::t", 0, 0)};
  comparison.rows[0].calls_before = 0;
  RowChange& small = comparison.rows.back();
  small.time.change.lo_ns = INT64_MIN;
  small.time.change.hi_ns = INT64_MAX;
  comparison.tested = 3;
  return compared;
}

TEST(AgainstText, IsATableOfWhatChanged) {
  const std::string text = AgainstText(Compared(), {});
  EXPECT_THAT(text, HasSubstr("NOW     today: 5.000 s, 2 nodes, 2 ranks, 240 steps\n"
                              "BEFORE  last-week: 5.000 s, 2 nodes, 2 ranks, 240 steps\n"
                              "TIMES   ms a step (train_step, from its begin to the next one's), "
                              "mean over ranks; of "));
  EXPECT_THAT(text, ContainsRegex("  train_step +19.00 +29.00 +20.00 +30.00 +\\+10.00 +"
                                  "\\[9.50, 10.50\\] +\\+50.0\n"));
  EXPECT_THAT(text, ContainsRegex("Operators and tasks +before +now"));
  EXPECT_THAT(text, ContainsRegex("  aten::sort +0.000 +9.000 +\\+9.000 +\\[8.500, 9.500\\] +"
                                  "\\+45.0 +none → 2 +rank 1\n"));
  EXPECT_THAT(text, ContainsRegex("  allreduce +4.000 +8.000"));
  EXPECT_THAT(text, Not(HasSubstr("conv2d")));
  EXPECT_THAT(text,
              HasSubstr("2 of 4 names changed certainly and by at least 1.0 % of the step and "));
  EXPECT_THAT(text, Not(HasSubstr("DIFFERS")));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), 100u) << line;
}

TEST(AgainstText, InFullHasAllRowsAndMarksThoseThatChanged) {
  const std::string text = AgainstText(Compared(), {.full = true});
  EXPECT_THAT(text, ContainsRegex("\\* aten::sort"));
  EXPECT_THAT(text, ContainsRegex("  aten::conv2d +5.000 +5.000 +0.000 +\\[-0.500, 0.500\\]"));
  EXPECT_THAT(text, ContainsRegex("  aten::t +0.000 +0.000 +0.000 +-"));
}

TEST(AgainstText, SaysWhenNothingChanged) {
  ComparedReports compared = Compared();
  for (RowChange& row : compared.comparison.rows) row.state = State::kSame;
  const std::string text = AgainstText(compared, {});
  EXPECT_THAT(text, HasSubstr("TRUST   no operator, kernel or collective certainly changed"));
  EXPECT_THAT(text, Not(HasSubstr("Operators and tasks")));
  EXPECT_THAT(text, HasSubstr("3 others were tested"));
}

TEST(AgainstText, IsOneScreenWhateverChanged) {
  ComparedReports compared = Compared();
  for (int i = 0; i < 500; ++i) {
    compared.comparison.rows.push_back(
        Row(i % 2 == 0 ? RowKind::kTask : RowKind::kDevice, "one " + std::to_string(i), 1, 3));
  }
  compared.comparison.tested += 500;
  const std::string text = AgainstText(compared, {});
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60) << text;
  EXPECT_THAT(text, HasSubstr("and 231 more: --full has them all"));
}

TEST(AgainstText, SaysWhatDiffersAndThatMachinesWereBusier) {
  ComparedReports compared = Compared();
  compared.comparison.notes = {"other nodes: 2 now, 1 before"};
  compared.comparison.conditions = {{Condition::Kind::kWaiting, 20'000, 180'000},
                                    {Condition::Kind::kThrottled, 0, 1000}};
  const std::string text = AgainstText(compared, {});
  EXPECT_THAT(text, AllOf(HasSubstr("DIFFERS other nodes: 2 now, 1 before\n"),
                          HasSubstr("waited for a CPU for 18.0 % of the time now, 2.0 % before"),
                          ContainsRegex("take longer\\s+now"), Not(HasSubstr("throttled"))));
}

TEST(AgainstText, HasWhatRanksSendIfThatChanged) {
  ComparedReports compared = Compared();
  compared.comparison.edges = {
      {{"rank 0", "rank 1", 2'000'000, 0, 120}, {"rank 0", "rank 1", 4'000'000, 0.013, 900}, true},
      {{"rank 1", "rank 0", 2'000'000, -1, -1}, {"rank 1", "rank 0", 2'000'100, 0, 80}, false}};
  EXPECT_THAT(AgainstText(compared, {}),
              AllOf(ContainsRegex("  rank 0 to rank 1 +2000.0 +4000.0 +\\+100.0 +0.0 % +1.3 % +"
                                  "0.120 +0.900\n"),
                    Not(HasSubstr("rank 1 to rank 0"))));
  EXPECT_THAT(AgainstText(compared, {.full = true}), HasSubstr("rank 1 to rank 0"));
}

TEST(AgainstText, NamesCannotSteerTheTerminal) {
  ComparedReports compared = Compared();
  compared.comparison.rows[0].name.name = "sort\x1b[31m";
  EXPECT_THAT(AgainstText(compared, {}), Not(HasSubstr("\x1b")));
}

TEST(AgainstText, RefusesInOneLine) {
  ComparedReports compared = Compared();
  compared.comparison = {};
  compared.comparison.mismatch = Mismatch::kOtherRanks;
  compared.comparison.mismatch_text = "not comparable: 1 rank now, 2 ranks before";
  compared.comparison.befores.resize(1);
  EXPECT_EQ(AgainstText(compared, {}), "REFUSED not comparable: 1 rank now, 2 ranks before\n");
  const Json json = Json::parse(AgainstJson(compared));
  EXPECT_EQ(json["status"], "refused");
  EXPECT_EQ(json["reason"], "other_ranks");
}

TEST(AgainstJson, HasEveryNumberOfTheText) {
  const Json json = Json::parse(AgainstJson(Compared()));
  EXPECT_EQ(json["status"], "compared");
  EXPECT_EQ(json["per"], "step");
  EXPECT_EQ(json["limits"]["tested"], 3);
  ASSERT_EQ(json["rows"].size(), 4u);
  const Json& sort = json["rows"][0];
  EXPECT_EQ(sort["state"], "appeared");
  EXPECT_EQ(sort["change"]["change_ns"]["lo"], 8'500'000);
  EXPECT_EQ(sort["where"]["most_on"]["rank"], 1);
  EXPECT_TRUE(json["rows"][3]["change"].is_null());
  EXPECT_EQ(json["steps"][0]["median_now_ns"], 29'000'000);
}

}  // namespace
}  // namespace syncline::report
