// SPDX-License-Identifier: Apache-2.0
// What is said of memory that the kernel hands out anew, from answers made by hand.
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
using analysis::why::MorePageFaults;
using analysis::why::PageFaults;
using analysis::why::Part;
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

constexpr char kKeep[] = "let the program keep memory that it frees, unless it maps files";
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
  answer.ranks[1].page_faults = PageFaults{20'123, 1'300};
  answer.findings[0].page_faults = MorePageFaults{{20'123, 1'300}, 650, 25 * kMs};
  return answer;
}

TEST(WhyMemory, OfALateRankItIsASign) {
  Answer answer = Late();
  std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("CAUSE   unknown: nothing"));
  EXPECT_THAT(text,
              HasSubstr("may be a part of it: 20 123 page faults a step in its training thread "
                        "that need no storage, 650 in that of the other rank; if they are "
                        "memory that comes anew from the kernel, they take some 25.0 ms a "
                        "step more\n"));
  EXPECT_THAT(text, HasSubstr(std::string("NEXT    ") + kKeep));
  EXPECT_EQ(text.find(kKeep), text.rfind(kKeep)) << "once is enough";
  EXPECT_THAT(text, Not(HasSubstr("MEMORY")));
  answer.findings[0].page_faults->more_ns = 15 * kMs;
  EXPECT_THAT(FlatText(answer), HasSubstr("NEXT    compare hardware")) << "not most of it";
  answer.ranks.push_back(answer.ranks[0]);
  text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("650 in those of the others (median); if"));
}

TEST(WhyMemory, WithWhatACauseLeavesToo) {
  Answer answer = AnswerWith({CauseOf(Part::kInput, Tenths(200, 180, 220))});
  answer.findings[0].page_faults = MorePageFaults{{6'000, 1'000}, 0, 6 * kMs};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("not explained: 11.3 ms of the 31.3 ms"));
  EXPECT_THAT(text, HasSubstr("may be a part of it: 6 000 page faults a step"));
}

TEST(WhyMemory, ThatOfAllRanksIsSaid) {
  Answer answer = Nobody();
  answer.ranks[0].page_faults = PageFaults{4'000, 1'100};
  answer.ranks[1].page_faults = PageFaults{700, 1'200};
  std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("MEMORY  page faults that need no storage, if they are memory that "
                              "comes anew from the kernel, by what that was measured to cost on "
                              "the nodes: rank 0 4 000 a step, some 4.4 ms at 1.1 µs each; rank 1 "
                              "700 a step, some 0.8 ms at 1.2 µs each. Mapped files"));
  EXPECT_THAT(text, HasSubstr(kKeep));
  answer.ranks.push_back(RankOf(2, "c", answer.ranks[0].mean));
  answer.ranks[2].page_faults = PageFaults{2'000, 1'000};
  text = FlatText(answer);
  EXPECT_THAT(text,
              HasSubstr("at 1.1 µs each, the most; rank 2 2 000 a step, some 2.0 ms at 1.0 µs "
                        "each, in the middle. "));
}

TEST(WhyMemory, LittleIsNotSaid) {
  Answer answer = Nobody();
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("MEMORY"))) << "not counted";
  answer.ranks[0].page_faults = PageFaults{2'800, 1'000};  // 2.9 % of the step
  answer.ranks[1].page_faults = PageFaults{700, 1'000};
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("MEMORY")));
  EXPECT_THAT(FlatText(answer), Not(HasSubstr("MALLOC_")));
}

TEST(WhyMemory, JsonHasIt) {
  const nlohmann::json json = nlohmann::json::parse(WhyJson(Late(), "run"));
  const nlohmann::json& more = json["verdict"]["ranks"][0]["page_faults"];
  EXPECT_EQ(more["per_step"], 20'123);
  EXPECT_EQ(more["page_ns"], 1'300);
  EXPECT_EQ(more["others_per_step"], 650);
  EXPECT_EQ(more["more_ns"], 25 * kMs);
  EXPECT_TRUE(json["ranks"][0]["page_faults"].is_null());
  EXPECT_EQ(json["ranks"][1]["page_faults"]["per_step"], 20'123);
}

}  // namespace
}  // namespace syncline::report
