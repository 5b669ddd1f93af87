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
using analysis::why::Cause;
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

constexpr char kKeep[] = " keep memory that it frees, unless it maps files";

Answer Nobody() {
  Answer answer = TwoRanks();
  answer.verdict = Verdict::kNobody;
  answer.closest = LateRank();
  answer.closest->late = false;
  return answer;
}

TEST(WhyMemory, ARankIsNamedForIt) {
  Cause cause = CauseOf(Part::kCompute, Tenths(250, 240, 260));
  cause.page_faults = MorePageFaults{{20'123, 1'300}, 650};
  Answer answer = AnswerWith({cause});
  answer.ranks[1].page_faults = cause.page_faults->own;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text,
              HasSubstr("CAUSE   it has more page faults that need no storage: they take 25.0 ms "
                        "[24.0, 26.0] of the 31.3 ms\n"));
  EXPECT_THAT(text,
              HasSubstr("20 123 a step in its training thread, 650 in that of the other rank; "
                        "at 1.3 µs each, as a page was measured to cost on its node: memory "
                        "that the program gave back comes anew from the kernel, or files are "
                        "mapped"));
  EXPECT_THAT(text, HasSubstr(std::string("NEXT    let rank 1 on node beta") + kKeep));
  EXPECT_THAT(text, Not(HasSubstr("MEMORY"))) << "once is enough";
}

// What is to be done is said also where they are the smaller part.
TEST(WhyMemory, OfASmallerPartItIsSaidToo) {
  Cause cause = CauseOf(Part::kCompute, Tenths(60, 50, 70));
  cause.page_faults = MorePageFaults{{6'000, 1'000}, 0};
  Answer answer = AnswerWith({cause});
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.ranks[1].page_faults = cause.page_faults->own;
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("for a part: it has more page faults that need no storage"));
  EXPECT_THAT(text, HasSubstr(std::string("let the program") + kKeep));
}

TEST(WhyMemory, ThatOfAllRanksIsSaid) {
  Answer answer = Nobody();
  answer.ranks[0].page_faults = PageFaults{4'000, 1'100};
  answer.ranks[1].page_faults = PageFaults{700, 1'200};
  std::string text = FlatText(answer);
  EXPECT_THAT(
      text,
      HasSubstr(
          "MEMORY  page faults that need no storage (memory comes anew from "
          "the kernel, or files are mapped), by what a page was measured to "
          "cost on the nodes: some 4.4 ms of a step of rank 0 (4 000, at 1.1 µs each), 0.8 ms of a "
          "step of rank 1 (700, at 1.2 µs each)\n"));
  EXPECT_THAT(text, HasSubstr(std::string("NEXT    let the program") + kKeep));
  answer.ranks.push_back(RankOf(2, "c", answer.ranks[0].mean));
  answer.ranks[2].page_faults = PageFaults{2'000, 1'000};
  text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("at 1.1 µs each), which has the most; 2.0 ms of a step of rank 2"));
  EXPECT_THAT(text, HasSubstr("at 1.0 µs each) in the middle"));
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
  Cause cause = CauseOf(Part::kCompute, Tenths(250, 240, 260));
  cause.page_faults = MorePageFaults{{20'123, 1'300}, 650};
  Answer answer = AnswerWith({cause});
  answer.ranks[1].page_faults = cause.page_faults->own;
  const nlohmann::json json = nlohmann::json::parse(WhyJson(answer, "run"));
  const nlohmann::json& named = json["verdict"]["ranks"][0]["causes"][0];
  EXPECT_EQ(named["cause"], "page_faults");
  EXPECT_EQ(named["page_faults"]["per_step"], 20'123);
  EXPECT_EQ(named["page_faults"]["page_ns"], 1'300);
  EXPECT_EQ(named["page_faults"]["others_per_step"], 650);
  EXPECT_TRUE(json["ranks"][0]["page_faults"].is_null());
  EXPECT_EQ(json["ranks"][1]["page_faults"]["per_step"], 20'123);
}

}  // namespace
}  // namespace syncline::report
