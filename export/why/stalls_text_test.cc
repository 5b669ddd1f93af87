// SPDX-License-Identifier: Apache-2.0
#include "export/why/stalls_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/why/testing/answers.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::RankFinding;
using analysis::why::StallGroup;
using analysis::why::StoodIn;
using testing::FlatText;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Tenths;
using testing::TwoRanks;

// Two ranks of which none is late; rank 1 makes four stalls.
Answer Stalled() {
  Answer answer = TwoRanks();
  RankFinding& closest = answer.closest.emplace();
  closest.index = 1;
  closest.lead = Tenths(190, -20, 400);
  answer.undecided = true;
  answer.stalls = testing::StallsOf(1);
  return answer;
}

TEST(StallsText, WhoMakesThemAndWhere) {
  Answer answer = Stalled();
  StallGroup& group = answer.stalls->groups[0];
  group.every_steps = 25;
  group.in_rhythm = 4;
  group.stood = StoodIn{"save (train.py:9)", "", 19, 20};
  group.stood->others_host = 90;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("STALLS  4 of 108 steps take twice as long as the median step (96.2 "
                              "ms) or longer: together 2.015 s more, 17 % of the time of all these "
                              "steps"));
  EXPECT_THAT(text, HasSubstr("all 4 take 590.0 to 610.0 ms, one every 25 steps: the own work of "
                              "rank 1 (node beta, pid 4711) takes 503.0 ms longer than usual, that "
                              "of the other at most 1.2 ms; most of it in host code (+450.0 ms), "
                              "compute (+53.0 ms)"));
  EXPECT_THAT(text, HasSubstr("of 20 samples of its Python stack in these steps 19 are in save "
                              "(train.py:9); of the 90 in usual steps none"));
  EXPECT_THAT(text, HasSubstr("NEXT    look at save (train.py:9) on rank 1 (node beta, pid 4711), "
                              "for which all wait: run it less often"));
  group.in_rhythm = 3;
  EXPECT_THAT(FlatText(answer), HasSubstr("3 of them one every 25 steps"));
}

TEST(StallsText, WithoutAPlaceItSaysHowToFindIt) {
  const std::string text = FlatText(Stalled());
  EXPECT_THAT(text, Not(HasSubstr("Python stack")));
  EXPECT_THAT(text, HasSubstr("NEXT    find out what rank 1 (node beta, pid 4711) does in these "
                              "steps"));
}

TEST(StallsText, NobodyIsNamedForWhatAllDoOrForCollectives) {
  Answer answer = Stalled();
  StallGroup& group = answer.stalls->groups[0];
  group.kind = StallGroup::Kind::kEverybody;
  group.ranks = {0, 1};
  EXPECT_THAT(FlatText(answer), HasSubstr("the own work of the ranks takes 503.0 ms longer than "
                                          "usual; most of it in host code"));
  group.kind = StallGroup::Kind::kCollectives;
  group.ranks.clear();
  EXPECT_THAT(FlatText(answer), HasSubstr("no rank's own work is much longer; the time is in "
                                          "collectives"));
  group.kind = StallGroup::Kind::kUntold;
  EXPECT_THAT(FlatText(answer), HasSubstr("whose own work takes longer there is not clear"));
}

TEST(StallsText, SmallGroupsAreOnlyCounted) {
  Answer answer = Stalled();
  answer.stalls->stalls = 6;
  StallGroup& other = answer.stalls->groups.emplace_back();
  other.stalls = 2;
  other.total_longer_ns = answer.stalls->longer_ns / 20;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("4 of the 6 take 590.0"));
  EXPECT_THAT(text, HasSubstr("what is known of the other 2: --json"));
}

TEST(StallsText, ALeadIsAlsoSaidWithoutThem) {
  Answer answer = testing::AnswerWith({});
  answer.stalls = testing::StallsOf(1);
  answer.stalls->judged = {3, 30, 60, 90};
  answer.findings[0].quiet_lead = Tenths(4, 1, 7);
  const std::string text = FlatText(answer);
  EXPECT_THAT(
      text,
      HasSubstr(
          "in a step of 96.2 ms; without the 4 stalls among these steps by 0.4 ms [0.1, 0.7]"));
  EXPECT_THAT(text,
              HasSubstr("CAUSE   most of its lead comes from few steps that take far longer"));
  EXPECT_THAT(text, Not(HasSubstr("a slower core")));
  answer.findings[0].quiet_lead = Tenths(300, 280, 320);
  EXPECT_THAT(FlatText(answer), HasSubstr("CAUSE   unknown")) << "the stalls add little to it";
}

}  // namespace
}  // namespace syncline::report
