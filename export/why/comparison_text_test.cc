// SPDX-License-Identifier: Apache-2.0
// The words of a comparison, from one made by hand.
#include "export/why/comparison_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "common/text_width.h"
#include "export/why/comparison_json.h"

namespace syncline::report {
namespace {

using analysis::why::Change;
using analysis::why::Comparison;
using analysis::why::LimitResult;
using analysis::why::Mismatch;
using analysis::why::OperatorChange;
using analysis::why::ParseLimit;
using analysis::why::Part;
using analysis::why::Refusal;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr int64_t kTenth = 100'000;  // of a ms
constexpr int64_t kStep = 800;       // tenths, before

// In tenths of a ms.
Change ChangeOf(int64_t before, int64_t now, int64_t half) {
  const auto ppm = [](int64_t tenths) { return tenths * 1'000'000 / kStep; };
  const int64_t est = now - before;
  return {before * kTenth,
          now * kTenth,
          {est * kTenth, (est - half) * kTenth, (est + half) * kTenth},
          ppm(est),
          ppm(est - half),
          ppm(est + half)};
}

ComparedRecordings Compared() {
  ComparedRecordings compared;
  compared.now = "tonight";
  compared.before = {"last-night"};
  Comparison& comparison = compared.comparison;
  comparison.before = {"digits", 10'000'000'000, 120, "all_reduce x3", 2, false, 0};
  comparison.now = {"digits", 10'100'000'000, 100, "all_reduce x3", 2, false, 0};
  comparison.befores = {comparison.before};
  comparison.taken_away_known = true;
  comparison.step = ChangeOf(kStep, 920, 20);
  comparison.parts[static_cast<size_t>(Part::kCompute)] = ChangeOf(600, 604, 9);
  comparison.parts[static_cast<size_t>(Part::kInput)] = ChangeOf(100, 216, 14);
  comparison.ranks = {{0, {}}, {1, {}}};
  comparison.ranks[0].parts[static_cast<size_t>(Part::kHostCode)] = ChangeOf(50, 65, 4);
  comparison.ranks[0].parts[static_cast<size_t>(Part::kCompute)] = ChangeOf(600, 640, 50);
  comparison.ranks[1].parts[static_cast<size_t>(Part::kInput)] = ChangeOf(100, 332, 20);
  OperatorChange change;
  change.name = "aten::conv2d";
  change.time = ChangeOf(200, 240, 10);
  change.calls_before = change.calls_now = 2;
  change.work = OperatorChange::Work::kSameShapes;
  change.rank = 1;
  change.rank_change_ns = 76 * kTenth;
  comparison.operators = {change};
  return compared;
}

LimitResult ResultOf(const char* text, LimitResult::State state, const Change& change) {
  return {*ParseLimit(text), state, "", change};
}

// Paragraphs on one line each.
std::string FlatText(const ComparedRecordings& compared) {
  return ComparisonText(compared, {10'000});
}

TEST(ComparisonText, SaysWhatChangedAndWhereAndWhatTheIntervalDoesNotHold) {
  ComparedRecordings compared = Compared();
  compared.limits = {ResultOf("step > +5%", LimitResult::State::kAbove, compared.comparison.step),
                     ResultOf("input > +20%", LimitResult::State::kNotAbove,
                              compared.comparison.parts[static_cast<size_t>(Part::kInput)])};
  const std::string text = FlatText(compared);
  EXPECT_THAT(
      text, AllOf(HasSubstr("NOW     tonight: 10.1 s, 2 ranks, 100 steps of one class"),
                  HasSubstr("BEFORE  last-night: 10.0 s, 2 ranks, 120 steps"),
                  HasSubstr("STEP    longer: 92.0 ms now, 80.0 ms before, a change of "
                            "+12.0 ms [10.0, 14.0], +15.0 % [+12.5, +17.5]\n"),
                  HasSubstr("FAIL-IF step > +5%: ABOVE: +15.0 % [+12.5, +17.5] of the step before"),
                  HasSubstr("        input > +20%: not above: +14.5 % ["),
                  HasSubstr("without any change: several percent were measured, 11 % at "
                            "worst")));
  EXPECT_THAT(text, ContainsRegex("  input +10\\.0 +21\\.6 +\\+11\\.6 +\\[10\\.2, 13\\.0\\] "));
  EXPECT_THAT(text, ContainsRegex("  step +80\\.0 +92\\.0 +\\+12\\.0 +\\[10\\.0, 14\\.0\\] "));
  // Certain and above 2 % of the step; neither this nor that.
  EXPECT_THAT(text, HasSubstr("  rank 1: input "));
  EXPECT_THAT(text, Not(HasSubstr("rank 0:")));
  EXPECT_THAT(text, HasSubstr("aten::conv2d: the same work, longer; most of it on rank 1 (+7.6 "
                              "ms)\n"));
}

TEST(ComparisonText, WhatIsNotCertainIsNoClaim) {
  ComparedRecordings compared = Compared();
  compared.comparison.step = ChangeOf(800, 810, 11);
  compared.comparison.operators[0].time = ChangeOf(200, 240, 41);
  EXPECT_THAT(FlatText(compared), HasSubstr("STEP    no certain change: 81.0 ms now"));
  EXPECT_THAT(FlatText(compared), Not(HasSubstr("aten::conv2d")));
  EXPECT_THAT(FlatText(compared), Not(HasSubstr("FAIL-IF")));
  compared.comparison.step = ChangeOf(800, 700, 11);
  EXPECT_THAT(FlatText(compared), HasSubstr("STEP    shorter: 70.0 ms now"));
}

// An interval on both sides of the limit is no proof that the change is smaller.
TEST(ComparisonText, ALimitWithinTheIntervalIsNotSaidToHold) {
  ComparedRecordings compared = Compared();
  compared.limits = {
      ResultOf("step > +14%", LimitResult::State::kNotAbove, compared.comparison.step),
      ResultOf("step > +17.5%", LimitResult::State::kNotAbove, compared.comparison.step)};
  EXPECT_THAT(FlatText(compared),
              AllOf(HasSubstr("step > +14%: not certainly above: +15.0 % [+12.5, +17.5] of"),
                    HasSubstr("step > +17.5%: not above: +15.0 % [+12.5, +17.5] of")));
}

TEST(ComparisonText, WorkIsTheSameOnlyWhereThatIsKnown) {
  using Work = OperatorChange::Work;
  ComparedRecordings compared = Compared();
  OperatorChange& change = compared.comparison.operators[0];
  change.work = Work::kUnknownShapes;
  EXPECT_THAT(FlatText(compared), HasSubstr("called as often, longer; its shapes are not known"));
  change.work = Work::kOtherShapes;
  EXPECT_THAT(FlatText(compared), HasSubstr("called as often, with other shapes or another"));
  change.work = Work::kMoreCalls;
  change.calls_before = 12;
  change.calls_now = 24;
  EXPECT_THAT(FlatText(compared), HasSubstr("more work: 24 instead of 12 calls a step"));
  change.calls_now = 0.25;
  EXPECT_THAT(FlatText(compared), HasSubstr("less work: 0.25 instead of 12 calls a step"));
}

TEST(ComparisonText, WhatIsMissingIsSaid) {
  ComparedRecordings compared = Compared();
  compared.comparison.taken_away_known = false;
  compared.comparison.before.steps = 40;
  compared.comparison.now.incomplete = true;
  compared.comparison.only_before = {5};
  compared.limits = {{*ParseLimit("step > +5%"), LimitResult::State::kNotJudged, "because", {}}};
  EXPECT_THAT(FlatText(compared),
              AllOf(HasSubstr("tonight: 10.1 s, 2 ranks, 100 steps of one class (all_reduce x3); "
                              "not complete"),
                    HasSubstr("that time is in the other parts of both"),
                    HasSubstr("with fewer than 60 steps the intervals are rough"),
                    HasSubstr("rank 5 is only in the recording before"),
                    HasSubstr("step > +5%: not judged: because")));
  compared.comparison.mismatch = Mismatch::kOtherWorldSize;
  compared.comparison.mismatch_text = "not comparable: 3 ranks now, 2 before";
  EXPECT_EQ(FlatText(compared), "REFUSED not comparable: 3 ranks now, 2 before\n");
}

TEST(ComparisonText, NamesOfARedactedRecordingAreNoChange) {
  ComparedRecordings compared = Compared();
  compared.comparison.now.job = "v3k6w67q";
  EXPECT_THAT(FlatText(compared), HasSubstr("the job's name was \"digits\" and is \"v3k6w67q\""));
  compared.comparison.redacted = true;
  EXPECT_THAT(FlatText(compared), AllOf(HasSubstr("names were replaced in a redacted recording"),
                                        Not(HasSubstr("the job's name"))));
  EXPECT_EQ(Json::parse(ComparisonJson(compared))["redacted"], true);
}

TEST(ComparisonText, SeveralRecordingsBeforeAreNamedAndTrustedOtherwise) {
  ComparedRecordings compared = Compared();
  EXPECT_THAT(FlatText(compared), HasSubstr("Several --against put that into the intervals"));
  EXPECT_EQ(Json::parse(ComparisonJson(compared))["drift_known"], false);
  compared.before = {"monday", "tuesday", "friday"};
  compared.comparison.befores.resize(3, compared.comparison.before);
  const std::string text = FlatText(compared);
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("monday: 10.0 s"), HasSubstr("tuesday: 10.0 s"), HasSubstr("friday: 10.0 s"),
            HasSubstr("how the 3 recordings before differ from each other"),
            HasSubstr("With so few of them the intervals are wide"), Not(HasSubstr("11 %"))));
  const Json json = Json::parse(ComparisonJson(compared));
  EXPECT_EQ(json["drift_known"], true);
  EXPECT_EQ(json["befores"].size(), 3U);
  EXPECT_EQ(json["befores"][2]["recording"], "friday");
}

TEST(ComparisonText, FitsTheTerminalWhateverNamesAreLike) {
  ComparedRecordings compared = Compared();
  const std::string name = std::string(120, 'x') + "\033[2J\n\xff";
  compared.now = compared.before[0] = name;
  compared.comparison.befores[0].step_class = compared.comparison.before.job =
      compared.comparison.now.step_class = name;
  compared.comparison.operators[0].name = name;
  for (const size_t width : {80, 100}) {
    std::istringstream lines(ComparisonText(compared, {width}));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(DisplayWidth(line), width) << line;
      EXPECT_EQ(line.find('\033'), std::string::npos);
    }
  }
}

TEST(ComparisonJson, HasEveryNumberOfTheText) {
  ComparedRecordings compared = Compared();
  compared.limits = {ResultOf("step > +5%", LimitResult::State::kAbove, compared.comparison.step)};
  const Json json = Json::parse(ComparisonJson(compared));
  EXPECT_EQ(json["format"], "syncline-comparison");
  EXPECT_EQ(json["format_version"], 1);
  EXPECT_EQ(json["status"], "compared");
  EXPECT_TRUE(json["reason"].is_null());
  EXPECT_EQ(json["now"]["recording"], "tonight");
  EXPECT_EQ(json["before"]["steps"], 120);
  EXPECT_EQ(json["step"]["change_ns"]["lo"], 100 * kTenth);
  EXPECT_EQ(json["step"]["change_ppm"]["est"], 150'000);
  EXPECT_EQ(json["step"]["certain"], true);
  EXPECT_EQ(json["parts"]["input"]["now_ns"], 216 * kTenth);
  EXPECT_EQ(json["ranks"][1]["rank"], 1);
  EXPECT_EQ(json["ranks"][1]["parts"]["input"]["change_ns"]["est"], 232 * kTenth);
  EXPECT_EQ(json["operators"][0]["work"], "same");
  EXPECT_EQ(json["limits"][0]["state"], "above");
  EXPECT_EQ(json["limits"][0]["limit_ppm"], 50'000);
}

TEST(ComparisonJson, WhatIsNotKnownIsNull) {
  ComparedRecordings compared = Compared();
  compared.comparison.taken_away_known = false;
  compared.comparison.now.incomplete = true;
  Json json = Json::parse(ComparisonJson(compared));
  EXPECT_EQ(json["status"], "incomplete");
  EXPECT_TRUE(json["parts"]["throttled"].is_null());
  EXPECT_TRUE(json["ranks"][0]["parts"]["waiting_for_cpu"].is_null());
  compared.comparison = {};
  compared.comparison.mismatch = Mismatch::kNowRefused;
  compared.comparison.refusal = Refusal::kGpuJob;
  compared.comparison.mismatch_text = "the recording now: a GPU job";
  json = Json::parse(ComparisonJson(compared));
  EXPECT_EQ(json["status"], "refused");
  EXPECT_EQ(json["reason"], "now_refused");
  EXPECT_EQ(json["refusal"], "gpu_job");
  EXPECT_EQ(json["message"], "the recording now: a GPU job");
  EXPECT_TRUE(json["step"].is_null());
}

}  // namespace
}  // namespace syncline::report
