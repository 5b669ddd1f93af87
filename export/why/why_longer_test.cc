// SPDX-License-Identifier: Apache-2.0
// What is said of operators in which a late rank is longer, from answers made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "analysis/why/model.h"
#include "export/why/testing/answers.h"
#include "export/why/why_json.h"

namespace syncline::report {
namespace {

using analysis::why::AllLonger;
using analysis::why::Answer;
using analysis::why::LongerWork;
using analysis::why::Part;
using analysis::why::StoodIn;
using analysis::why::Verdict;
using testing::AnswerWith;
using testing::CauseOf;
using testing::FlatText;
using ::testing::HasSubstr;
using testing::kTenth;
using ::testing::Not;
using testing::Tenths;
using testing::ThrottledAnswer;

// Rank 1 is late by 31.3 ms, nobody knows why, and this is where.
Answer LateIn(LongerWork longer) {
  Answer answer = ThrottledAnswer();
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.findings[0].causes.clear();
  answer.findings[0].longer = std::move(longer);
  return answer;
}

LongerWork Some() {
  LongerWork longer;
  longer.longer_ns = 200 * kTenth;
  longer.operators = {
      {"aten::mul", Tenths(121, 115, 127), 142 * kTenth, 21 * kTenth, 80},
      {"aten::add_", Tenths(40, 30, 50), 50 * kTenth, 10 * kTenth, 2},
      {"a", Tenths(35, 30, 40), 45 * kTenth, 10 * kTenth, 1},
      {"b", Tenths(34, 30, 40), 44 * kTenth, 10 * kTenth, 1},
  };
  return longer;
}

LongerWork All() {
  LongerWork longer;
  longer.longer_ns = 200 * kTenth;
  longer.all = AllLonger{14, 13, 1.18, 1.22, 1.26};
  return longer;
}

TEST(WhyLonger, OperatorsAreNamed) {
  Answer answer = LateIn(Some());
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("of operators that run as often on the other rank: aten::mul 12.1 ms "
                              "a step longer [11.5, 12.7] (14.2 ms in 80.0 calls, on the other "
                              "rank 2.1); aten::add_ 4.0 ms a step longer [3.0, 5.0] (5.0 ms "
                              "in 2.0 calls, on the other rank 1.0); a 3.5 ms"));
  EXPECT_THAT(text, HasSubstr("; and 1 operator more\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "NEXT    look at aten::mul on rank 1 on node beta: what it works on (sizes, denormal"));
  EXPECT_THAT(text, HasSubstr("It accuses nobody\n")) << "where it is, not why";
  EXPECT_THAT(text, Not(HasSubstr("slower core")));
}

TEST(WhyLonger, OfManyRanksItIsTheMedian) {
  Answer answer = LateIn(Some());
  answer.ranks.push_back(answer.ranks[0]);
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("of operators that run as often on the others: aten::mul"));
  EXPECT_THAT(text, HasSubstr("(14.2 ms in 80.0 calls, the others' median 2.1)"));
}

TEST(WhyLonger, ThatAllTakeLongerIsSaid) {
  Answer answer = LateIn(All());
  answer.findings[0].shapes_known = true;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("nearly all operators take longer there, by a similar factor: of the "
                              "14 that take 1 % of computing or more, 13 certainly do; for half "
                              "of the time in them the factor is 1.18 to 1.26 (1.22 in the "
                              "middle)"));
  EXPECT_THAT(text, HasSubstr("NEXT    compare the processor of node beta with those of the other "
                              "nodes (model, clock frequency"));
  EXPECT_THAT(text, HasSubstr("slower core"));
  answer.findings[0].shapes_known = false;
  const std::string unknown = FlatText(answer);
  EXPECT_THAT(unknown, HasSubstr("middle); whether they work on as much data is not known"));
  EXPECT_THAT(unknown, HasSubstr("NEXT    see whether rank 1 on node beta works on more data than "
                                 "the others; else compare the processor of node beta"));
}

TEST(WhyLonger, WhereMostOfItLiesIsWhatToLookAt) {
  Answer answer = LateIn(Some());
  answer.findings[0].stood = StoodIn{"Callback.run (train.py:7)", "", 60, 76, 0, false, 1, 70};
  EXPECT_THAT(FlatText(answer), HasSubstr("NEXT    look at aten::mul on rank 1"));
  answer.findings[0].longer->longer_ns = 100 * kTenth;
  EXPECT_THAT(FlatText(answer), HasSubstr("NEXT    look at Callback.run (train.py:7)"));
  answer.findings[0].stood.reset();
  EXPECT_THAT(FlatText(answer), HasSubstr("NEXT    compare hardware and load of node beta"));
}

// With what a cause leaves it is said, too.
TEST(WhyLonger, WhatACauseLeavesIsInOperators) {
  Answer answer = AnswerWith({CauseOf(Part::kInput, Tenths(200, 180, 220))});
  answer.findings[0].longer = Some();
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("not explained: 11.3 ms of the 31.3 ms"));
  EXPECT_THAT(text, HasSubstr("of operators that run as often on the other rank: aten::mul"));
}

TEST(WhyLonger, JsonHasIt) {
  const auto json_of = [](const Answer& answer) {
    return nlohmann::json::parse(WhyJson(answer, "run"))["verdict"]["ranks"][0]["longer_work"];
  };
  const nlohmann::json some = json_of(LateIn(Some()));
  EXPECT_EQ(some["longer_ns"], 20'000'000);
  EXPECT_TRUE(some["all"].is_null());
  EXPECT_EQ(some["operators"].size(), 4);
  EXPECT_EQ(some["operators"][0]["operator"], "aten::mul");
  EXPECT_EQ(some["operators"][0]["longer_ns"]["hi"], 12'700'000);
  EXPECT_EQ(some["operators"][0]["own_ns"], 14'200'000);
  EXPECT_EQ(some["operators"][0]["others_ns"], 2'100'000);
  EXPECT_EQ(some["operators"][0]["per_step"], 80);
  const nlohmann::json all = json_of(LateIn(All()));
  EXPECT_TRUE(all["operators"].empty());
  EXPECT_EQ(all["all"]["certain"], 13);
  EXPECT_EQ(all["all"]["middle"], 1.22);
  EXPECT_TRUE(json_of(ThrottledAnswer()).is_null());
}

}  // namespace
}  // namespace syncline::report
