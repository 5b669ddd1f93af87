// SPDX-License-Identifier: Apache-2.0
// What is said of processors' clocks, from answers made by hand.
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
using analysis::why::CpuClock;
using analysis::why::SlowerClock;
using analysis::why::Verdict;
using testing::AnswerWith;
using testing::FlatText;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RankOf;

constexpr int64_t kMs = 1'000'000;

Answer Late() {
  Answer answer = AnswerWith({});
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.ranks[1].clock = CpuClock{1'200'000, 34};
  answer.findings[0].clock = SlowerClock{{1'200'000, 34}, 2'600'000, 25 * kMs};
  return answer;
}

TEST(WhyClock, OfALateRankItIsASign) {
  Answer answer = Late();
  std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("CAUSE   unknown: nothing"));
  EXPECT_THAT(
      text, HasSubstr("may be a part of it: while its training thread ran, the kernel had "
                      "the clock of its CPU at 1.20 GHz (median of 34 readings), the other rank's "
                      "at 2.60 GHz; if its work takes as many cycles as there, that is "
                      "some 25.0 ms a step more\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    find out what keeps the clock of node "));
  answer.ranks.push_back(RankOf(2, "node-2", {}));
  EXPECT_THAT(FlatText(answer), HasSubstr("readings), those of the others (median) at 2.60 GHz;"));
}

TEST(WhyClock, OfLittleNothingIsToBeDone) {
  Answer answer = Late();
  answer.findings[0].clock->more_ns = answer.findings[0].unexplained_ns() / 3;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("the clock of its CPU at 1.20 GHz"));
  EXPECT_THAT(text, Not(HasSubstr("keeps the clock of")));
}

TEST(WhyClock, IsInTheJson) {
  const Answer answer = Late();
  const nlohmann::json json = nlohmann::json::parse(WhyJson(answer, "run"));
  const nlohmann::json& clock = json["verdict"]["ranks"][0]["clock"];
  EXPECT_EQ(clock["khz"], 1'200'000);
  EXPECT_EQ(clock["readings"], 34);
  EXPECT_EQ(clock["others_khz"], 2'600'000);
  EXPECT_EQ(clock["more_ns"], 25 * kMs);
  EXPECT_TRUE(json["ranks"][0]["clock"].is_null());
  EXPECT_EQ(json["ranks"][1]["clock"]["khz"], 1'200'000);
}

}  // namespace
}  // namespace syncline::report
