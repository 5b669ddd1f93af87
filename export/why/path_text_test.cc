// SPDX-License-Identifier: Apache-2.0
// The words and the JSON of the critical path, from answers made by hand.
#include "export/why/path_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/why/testing/answers.h"
#include "export/why/why_json.h"
#include "export/why/why_text.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::CriticalPath;
using analysis::why::Part;
using analysis::why::PartTable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kTenth;
using ::testing::Not;
using testing::Tenths;
using testing::ThrottledAnswer;
using Json = nlohmann::ordered_json;

// Of two ranks: 85.0 ms of rank 1, of these 55.0 throttled; 5.0 of rank 0; collectives 6.0.
Answer WithPath() {
  Answer answer = ThrottledAnswer();
  CriticalPath path;
  path.step = Tenths(960, 940, 980);
  path.ranks = {Tenths(50, 30, 70), Tenths(850, 820, 880)};
  path.parts.resize(2);
  path.parts[0][static_cast<size_t>(Part::kCompute)] = 50 * kTenth;
  path.parts[1][static_cast<size_t>(Part::kThrottled)] = 550 * kTenth;
  path.parts[1][static_cast<size_t>(Part::kCompute)] = 290 * kTenth;
  path.parts[1][static_cast<size_t>(Part::kHostCode)] = 10 * kTenth;
  path.collectives = Tenths(60, 50, 70);
  path.kinds = {{"allreduce", 50 * kTenth}, {"broadcast", 10 * kTenth}};
  path.least_wait_ns = 500 * kTenth;
  path.uneven = Tenths(100, 90, 110);
  path.crossings = 208;  // two a step
  path.proven = 200;
  answer.path = path;
  return answer;
}

TEST(PathText, SaysWhoseWorkAndWhichCollectives) {
  EXPECT_THAT(
      PathSentences(WithPath()),
      ElementsAre("what a step of 96.0 ms waits for, one after the other: own work of rank 1 85.0 "
                  "ms [82.0, 88.0] (throttled 55.0, compute 29.0); of rank 0 5.0 ms [3.0, 7.0] "
                  "(compute 5.0); collectives 6.0 ms [5.0, 7.0] (allreduce, broadcast)",
                  "faster collectives would save at most 6.0 ms (6 %), as long as each rank's own "
                  "work stays as it is"));
  EXPECT_THAT(WhyText(WithPath(), {80}), HasSubstr("\nPATH    what a step of 96.0 ms waits for,"));
}

TEST(PathText, WithoutAPathThereIsNothing) {
  EXPECT_TRUE(PathSentences(ThrottledAnswer()).empty());
  EXPECT_THAT(WhyText(ThrottledAnswer(), {80}), Not(HasSubstr("PATH")));
}

// What the clocks may have moved from collectives to own work could be saved, too.
TEST(PathText, TheClocksErrorIsPartOfWhatCouldBeSaved) {
  Answer answer = WithPath();
  answer.clock_bound_ns = 10 * kTenth;
  EXPECT_THAT(PathSentences(answer)[1], HasSubstr("at most 10.0 ms (10 %)"));
  answer.clock_bound_ns = 10'000 * kTenth;
  EXPECT_THAT(PathSentences(answer)[1], HasSubstr("at most 50.0 ms (52 %)"));
  answer.clock_bound_ns.reset();
  EXPECT_THAT(PathSentences(answer)[1], HasSubstr("error of the clocks not known"));
}

TEST(PathText, WhatWasNotFollowedIsSaid) {
  Answer answer = WithPath();
  answer.path->not_followed_ns = 30 * kTenth;
  answer.path->kinds[1].followed = false;
  EXPECT_THAT(PathSentences(answer)[0],
              HasSubstr("collectives 6.0 ms [5.0, 7.0] (allreduce), of which 3.0 ms in broadcast: "
                        "for whom ranks wait there is not looked at"));
}

// A step is no shorter than the own work of any rank.
TEST(PathText, NoMoreIsSavedThanEveryRankWaits) {
  Answer answer = WithPath();
  answer.path->least_wait_ns = 20 * kTenth;
  EXPECT_EQ(PathSentences(answer)[1],
            "faster collectives would save at most 2.0 ms (2 %), as "
            "long as each rank's own work stays as it is");
}

TEST(PathText, SaysWhyThereIsNone) {
  Answer answer = ThrottledAnswer();
  answer.path_unknown = "it rains";
  EXPECT_THAT(PathSentences(answer), ElementsAre("not known: it rains"));
  EXPECT_EQ(Json::parse(WhyJson(answer, "run"))["critical_path_unknown"], "it rains");
}

TEST(PathText, UnevenWorkIsSaidWhereNobodyIsNamed) {
  Answer answer = WithPath();
  answer.findings.clear();
  ASSERT_EQ(PathSentences(answer).size(), 3);
  EXPECT_EQ(PathSentences(answer)[2],
            "spread evenly over the ranks at every moment, the same own work would save 10.0 ms "
            "[9.0, 11.0] (10 %)");
  answer.path->uneven.reset();
  EXPECT_EQ(PathSentences(answer).size(), 2);
  answer.path->uneven = Tenths(100, -1, 210);
  EXPECT_EQ(PathSentences(answer).size(), 2);
}

TEST(PathText, SmallCollectivesAndWhatToDo) {
  Answer answer = WithPath();
  EXPECT_EQ(Json::parse(WhyJson(answer, "run"))["critical_path"]["small_collectives"], nullptr);
  answer.path->small = analysis::why::SmallCollectives{
      98.2, 102, 32768, 2 * kTenth, Tenths(210, 200, 220), Tenths(192, 182, 202)};
  EXPECT_EQ(PathSentences(answer).back(),
            "98 of the 102 collectives on it carry at most 32.8 kB, and take about 0.20 ms each "
            "whatever they carry: one of each kind for all of them would take 19.2 ms [18.2, 20.2] "
            "less of a step (20 %)");
  EXPECT_THAT(WhyText(answer, {80}), HasSubstr("join small collectives"));
  answer.path->small->count = 102;
  EXPECT_THAT(PathSentences(answer).back(), HasSubstr("all 102 collectives on it carry"));
  answer.path->small->largest_bytes = 4;
  EXPECT_THAT(PathSentences(answer).back(), HasSubstr("carry at most 4 bytes, and"));
  answer.path->small->largest_bytes = 0;
  EXPECT_THAT(PathSentences(answer).back(), HasSubstr("carry nothing, and"));
  answer.path->small->largest_bytes = 32768;
  const Json json = Json::parse(WhyJson(answer, "run"))["critical_path"]["small_collectives"];
  EXPECT_EQ(json["largest_bytes"], 32768);
  EXPECT_EQ(json["saved_ns"]["lo"], 182 * kTenth);
}

TEST(PathText, OfManyRanksThoseWithMostAreNamed) {
  Answer answer = WithPath();
  answer.ranks.resize(10, answer.ranks[0]);
  for (int32_t rank = 0; rank < 10; ++rank) answer.ranks[static_cast<size_t>(rank)].rank = rank;
  answer.path->ranks.assign(10, Tenths(90, 80, 100));
  answer.path->parts.assign(10, PartTable{});
  EXPECT_THAT(PathSentences(answer)[0],
              HasSubstr("of rank 3 9.0 ms [8.0, 10.0]; of 6 other ranks 54.0 ms; collectives"));
}

TEST(PathJson, AddsUpToTheStep) {
  const Json json = Json::parse(WhyJson(WithPath(), "run"));
  const Json& path = json["critical_path"];
  int64_t sum_ns = path["collectives_ns"]["est"];
  for (const Json& rank : path["ranks"]) {
    sum_ns += rank["own_work_ns"]["est"].get<int64_t>();
    int64_t parts_ns = 0;
    for (const auto& [name, part] : rank["parts"].items()) parts_ns += part.get<int64_t>();
    EXPECT_EQ(parts_ns, rank["own_work_ns"]["est"]);
  }
  EXPECT_EQ(sum_ns, path["step_ns"]["est"]);
  EXPECT_EQ(path["ranks"][1]["rank"], 1);
  EXPECT_EQ(path["collectives"][0],
            Json({{"name", "allreduce"}, {"ns", 50 * kTenth}, {"followed", true}}));
  EXPECT_EQ(path["least_wait_ns"], 500 * kTenth);
  EXPECT_EQ(path["uneven_ns"]["lo"], 90 * kTenth);
  EXPECT_EQ(path["crossings"], 208);
  EXPECT_EQ(path["proven"], 200);
  EXPECT_TRUE(Json::parse(WhyJson(ThrottledAnswer(), "run"))["critical_path"].is_null());
  Answer unsampled = WithPath();
  unsampled.ranks[0].taken_away_known = false;
  const Json ranks = Json::parse(WhyJson(unsampled, "run"))["critical_path"]["ranks"];
  EXPECT_TRUE(ranks[0]["parts"]["throttled_ns"].is_null());
  EXPECT_TRUE(ranks[1]["parts"]["throttled_ns"].is_number());
}

}  // namespace
}  // namespace syncline::report
