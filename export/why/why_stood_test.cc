// SPDX-License-Identifier: Apache-2.0
// What is said of where ranks stood in host code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analysis/why/model.h"
#include "export/why/testing/answers.h"
#include "export/why/why_json.h"
#include "export/why/why_text.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Part;
using analysis::why::ProcessorTime;
using analysis::why::StoodIn;
using analysis::why::Verdict;
using testing::AnswerWith;
using testing::CauseOf;
using testing::FlatText;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RankOf;
using testing::Tenths;

constexpr int64_t kMs = 1'000'000;

StoodIn Stood() {
  StoodIn stood;
  stood.place = "CB.step (jobs/a.py:3)";
  stood.within = "wait (python3.11/threading.py)";
  stood.samples = 56;
  stood.host_samples = 76;
  stood.others = 2;
  stood.others_host = 20;
  return stood;
}

// Late, and nothing that was measured shows why.
Answer Unknown(std::optional<StoodIn> stood) {
  Answer answer = AnswerWith({});
  answer.verdict = Verdict::kLateCauseUnknown;
  answer.findings[0].stood = std::move(stood);
  return answer;
}

nlohmann::json JsonOf(const Answer& answer) {
  return nlohmann::json::parse(WhyJson(answer, "/rec", ""));
}

TEST(WhyStood, IsSaidOfALateRankWithoutACause) {
  const std::string text = FlatText(Unknown(Stood()));
  EXPECT_THAT(text,
              HasSubstr("CAUSE   unknown\n        of 76 samples of its Python stack in host code "
                        "56 are in CB.step (jobs/a.py:3), there mostly in wait "
                        "(python3.11/threading.py); of the 20 of the other rank 2\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    look at CB.step (jobs/a.py:3), in what it calls (wait "
                              "(python3.11/threading.py)): rank 1 on node beta spends more time "
                              "there than the others"));
}

TEST(WhyStood, IsNotSaidWhereItIsNotKnown) {
  const std::string text = FlatText(Unknown(std::nullopt));
  EXPECT_THAT(text, HasSubstr("nothing that was measured explains it"));
  EXPECT_THAT(text, Not(HasSubstr("Python stack")));
  EXPECT_THAT(text, Not(HasSubstr("look at")));
  EXPECT_TRUE(JsonOf(Unknown(std::nullopt))["verdict"]["ranks"][0]["python"].is_null());
}

TEST(WhyStood, OfManyRanksTheMedianIsSaid) {
  StoodIn stood = Stood();
  stood.within.clear();
  stood.others = 0;
  Answer answer = Unknown(stood);
  answer.ranks.push_back(answer.ranks[0]);
  EXPECT_THAT(FlatText(answer), HasSubstr("56 are in CB.step (jobs/a.py:3); of the 20 of the other "
                                          "rank in the middle none\n"));
}

TEST(WhyStood, SamplesThatDoNotTellAreSaid) {
  StoodIn stood = Stood();
  stood.kept_samples = 9;
  EXPECT_THAT(FlatText(Unknown(stood)), HasSubstr("; 9 cannot tell where: Python, or C code that "
                                                  "keeps the interpreter's lock, ran\n"));
  stood.place = stood.within = "";
  const std::string text = FlatText(Unknown(stood));
  EXPECT_THAT(text, HasSubstr("56 of 76 samples of its Python stack in host code find Python "
                              "running, or C code that keeps the interpreter's lock; in which "
                              "function, they cannot tell; of the 20 of the other rank 2\n"));
  EXPECT_THAT(text, HasSubstr("NEXT    find out what Python code rank 1 on node beta runs"));
  EXPECT_TRUE(JsonOf(Unknown(stood))["verdict"]["ranks"][0]["python"]["place"].is_null());
  Answer blocked = Unknown(stood);
  blocked.findings[0].not_causes = {{Part::kBlocked, 8 * kMs}};
  EXPECT_THAT(FlatText(blocked), HasSubstr("NEXT    record again with `--scheduling`"));
}

// The rank that sleeps does not keep the lock itself.
TEST(WhyStood, ARankThatIsHeldUpByAnotherThreadOfItsProcess) {
  StoodIn stood = Stood();
  stood.kept_samples = 30;
  stood.kept_more = true;
  Answer answer = Unknown(stood);
  answer.findings[0].processor = ProcessorTime{5 * kMs, 0, 40 * kMs};
  answer.ranks[0].processor = ProcessorTime{5 * kMs, 0, 0};
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("in 30 of 76 samples in host code the interpreter's lock was kept, "
                              "although the rank sleeps: another Python thread of its process "
                              "seems to hold it up\n"));
  EXPECT_THAT(text, Not(HasSubstr("CB.step")));
  EXPECT_THAT(text, HasSubstr("NEXT    see which threads of rank 1 on node beta run Python"));
}

TEST(WhyStood, IsSaidOfWhatCausesLeave) {
  Answer answer = AnswerWith({CauseOf(Part::kInput, Tenths(198, 190, 205))});
  answer.findings[0].stood = Stood();
  EXPECT_THAT(FlatText(answer), HasSubstr("not explained: 11.5 ms of the 31.3 ms"));
  EXPECT_THAT(FlatText(answer), HasSubstr("of 76 samples of its Python stack in host code 56 are"));
  EXPECT_THAT(FlatText(answer), HasSubstr("\n        look at CB.step (jobs/a.py:3)"));
}

TEST(WhyStood, OfEverybody) {
  Answer answer = AnswerWith({});
  answer.findings.clear();
  answer.verdict = Verdict::kEverybody;
  answer.everybody = {Part::kHostCode};
  EXPECT_THAT(FlatText(answer), HasSubstr("sample their stacks"));
  answer.everybody_stood = Stood();
  const std::string text = FlatText(answer);
  EXPECT_THAT(text, HasSubstr("of 76 samples of the ranks' Python stacks in host code 56 are in "
                              "CB.step (jobs/a.py:3), there mostly in wait"));
  EXPECT_THAT(text, HasSubstr("NEXT    look at CB.step (jobs/a.py:3), where all ranks spend time"));
  answer.everybody_stood->within = "_engine_run_backward (torch/autograd/graph.py)";
  EXPECT_THAT(FlatText(answer), HasSubstr("NEXT    most of host code is PyTorch's own, called by "
                                          "CB.step (jobs/a.py:3): fewer and larger operators"));
  EXPECT_EQ(JsonOf(answer)["verdict"]["everybody_python"]["samples"], 56);
}

TEST(WhyStood, AsJson) {
  const nlohmann::json json = JsonOf(Unknown(Stood()))["verdict"]["ranks"][0]["python"];
  EXPECT_EQ(json, nlohmann::json({{"place", "CB.step (jobs/a.py:3)"},
                                  {"within", "wait (python3.11/threading.py)"},
                                  {"samples", 56},
                                  {"host_samples", 76},
                                  {"kept_samples", 0},
                                  {"kept_more", false},
                                  {"others_samples", 2},
                                  {"others_host_samples", 20}}));
}

TEST(WhyStood, NamesOfTheJobsDoNotReachTheTerminalAsTheyAre) {
  StoodIn stood = Stood();
  stood.place = "f\x1b[31m (a.py:3)";
  EXPECT_THAT(FlatText(Unknown(stood)), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace syncline::report
