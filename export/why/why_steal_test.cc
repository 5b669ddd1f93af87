// SPDX-License-Identifier: Apache-2.0
// What is said of time that a hypervisor takes, from answers made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/why/model.h"
#include "export/why/testing/answers.h"
#include "export/why/why_json.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::MoreStealTime;
using analysis::why::Part;
using analysis::why::ProcessorTime;
using analysis::why::StealTime;
using analysis::why::Verdict;
using testing::AnswerWith;
using testing::CauseOf;
using testing::FlatText;
using ::testing::HasSubstr;
using testing::LateRank;
using ::testing::Not;
using testing::RankOf;
using testing::Tenths;
using testing::TwoRanks;

constexpr char kMove[] = "to a less busy host, or to an instance with processors of its own";
constexpr int64_t kMs = 1'000'000;

Answer Nobody() {
  Answer answer = TwoRanks();
  answer.verdict = Verdict::kNobody;
  answer.closest = LateRank();
  answer.closest->late = false;
  return answer;
}

Answer Late() {
  Answer answer = AnswerWith({});
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.ranks[1].steal = StealTime{0.231, 26 * kMs};
  answer.findings[0].steal = MoreStealTime{{0.231, 26 * kMs}, 0.002, 25 * kMs};
  return answer;
}

TEST(WhySteal, OfALateRankItIsASign) {
  Answer answer = Late();
  std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("CAUSE   unknown: nothing"));
  EXPECT_THAT(text, HasSubstr("may be a part of it: a hypervisor took 23.1 % of the time in which "
                              "the CPUs that its process may use had something to do, of the other "
                              "rank's 0.2 %; if its training thread lost as much, that is some "
                              "25.0 ms a step more\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    move node "));
  EXPECT_EQ(text.find(kMove), text.rfind(kMove)) << "once is enough";
  EXPECT_THAT(text, Not(HasSubstr("STEAL")));
  answer.findings[0].steal->more_ns = 15 * kMs;
  EXPECT_THAT(FlatText(answer), HasSubstr("NEXT    compare hardware")) << "not most of it";
  answer.ranks.push_back(answer.ranks[0]);
  text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("of the others' (median) 0.2 %; if"));
}

TEST(WhySteal, WithWhatACauseLeavesToo) {
  Answer answer = AnswerWith({CauseOf(Part::kInput, Tenths(200, 180, 220))});
  answer.findings[0].steal = MoreStealTime{{0.1, 6 * kMs}, 0, 6 * kMs};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("not explained: 11.3 ms of the 31.3 ms"));
  EXPECT_THAT(text, HasSubstr("may be a part of it: a hypervisor took 10.0 %"));
}

TEST(WhySteal, ThatOfAllRanksIsSaid) {
  Answer answer = Nobody();
  answer.ranks[0].steal = StealTime{0.045, 4'400'000};
  answer.ranks[1].steal = StealTime{0.009, 800'000};
  std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("STEAL   a hypervisor ran something else for a part of the time in "
                              "which the CPUs that ranks may use had something to do: rank 0 on "));
  EXPECT_THAT(text, HasSubstr(" 4.5 %, some 4.4 ms a step; rank 1 on "));
  EXPECT_THAT(text, HasSubstr(" 0.9 %, some 0.8 ms a step, if training threads lost as much"));
  EXPECT_THAT(text, HasSubstr(kMove));
  answer.ranks.push_back(RankOf(2, "c", answer.ranks[0].mean));
  answer.ranks[2].steal = StealTime{0.02, 2 * kMs};
  EXPECT_THAT(FlatText(answer), HasSubstr("some 4.4 ms a step, the most; rank 2 on c 2.0 %, some "
                                          "2.0 ms a step, in the middle"));
}

// Nobody waits for it.
TEST(WhySteal, WhoIsNotWaitedForIsNotMoved) {
  Answer answer = AnswerWith({CauseOf(Part::kInput, Tenths(313, 300, 320))});
  answer.ranks[0].steal = StealTime{0.2, 15 * kMs};
  answer.ranks[1].steal = StealTime{0, 0};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("STEAL"));
  EXPECT_THAT(text, Not(HasSubstr(kMove)));
  answer.ranks[1].steal = StealTime{0.3, 20 * kMs};
  EXPECT_THAT(FlatText(answer), HasSubstr(kMove));
}

// Where samples of its state say that it sleeps all the same.
TEST(WhySteal, WhoSleepsIsNotMoved) {
  Answer answer = Late();
  answer.ranks[0].processor = ProcessorTime{60 * kMs, kMs, 0, 0};
  answer.findings[0].processor = ProcessorTime{60 * kMs, kMs, 25 * kMs, 0};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("may be a part of it: a hypervisor took 23.1 %"));
  EXPECT_THAT(text, HasSubstr("NEXT    find out what rank 1"));
  EXPECT_THAT(text, Not(HasSubstr(kMove)));
}

TEST(WhySteal, LittleIsNotSaid) {
  Answer answer = Nobody();
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("STEAL"))) << "not measured";
  answer.ranks[0].steal = StealTime{0.028, 2'800'000};  // 2.9 % of the step
  answer.ranks[1].steal = StealTime{0, 0};
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("STEAL")));
  EXPECT_THAT(FlatText(answer), Not(HasSubstr(kMove)));
}

// Of own work: who had no CPU because of a hypervisor did not sleep.
TEST(WhySteal, BesideProcessorTime) {
  Answer answer = Late();
  answer.findings[0].processor = ProcessorTime{60 * kMs, kMs, 2 * kMs, 26 * kMs};
  answer.ranks[0].processor = ProcessorTime{60 * kMs, kMs, 3 * kMs, 0};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text,
              HasSubstr("1.0 ms in a run queue, perhaps 26.0 ms taken by a hypervisor; asleep "
                        "in its own work 2.0 ms or more, if so"));
  EXPECT_THAT(text, HasSubstr("1.0 ms in a run queue; asleep in its own work 3.0 ms or more"));
}

TEST(WhySteal, JsonHasIt) {
  const nlohmann::json json = nlohmann::json::parse(WhyJson(Late(), "run"));
  const nlohmann::json& more = json["verdict"]["ranks"][0]["steal"];
  EXPECT_EQ(more["share"], 0.231);
  EXPECT_EQ(more["others_share"], 0.002);
  EXPECT_EQ(more["step_ns"], 26 * kMs);
  EXPECT_EQ(more["more_ns"], 25 * kMs);
  EXPECT_TRUE(json["ranks"][0]["steal"].is_null());
  EXPECT_EQ(json["ranks"][1]["steal"]["step_ns"], 26 * kMs);
}

}  // namespace
}  // namespace syncline::report
