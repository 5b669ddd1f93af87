// SPDX-License-Identifier: Apache-2.0
#include "export/why/cut_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/why/cut_json.h"

namespace syncline::report {
namespace {

using analysis::why::CutAnswer;
using analysis::why::CutRefusal;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMs = 1'000'000;

// 20 ms: 6 and 7 in two partitions, 5 in tensors, 2 between steps.
CutAnswer Answered() {
  CutAnswer answer;
  answer.steps = 80;
  answer.other_steps = 2;
  answer.step = {20 * kMs, 19 * kMs, 21 * kMs};
  answer.partitions = {
      {.task = "/job:master/replica:0/task:0", .node = "a", .path = {6 * kMs, 5 * kMs, 7 * kMs}},
      {.task = "/job:worker/replica:0/task:1",
       .node = "b\x1b[31m",
       .path = {7 * kMs, 6 * kMs, 8 * kMs},
       .saved = {3 * kMs, 2 * kMs, 4 * kMs},
       .operators_ns = 6 * kMs,
       .busy_ns = 9 * kMs}};
  answer.tensors = {5 * kMs, 4 * kMs, 6 * kMs};
  answer.tensors_saved = {4 * kMs, 3 * kMs, 5 * kMs};
  answer.directions = {{0, 1, {4 * kMs, 3 * kMs, 5 * kMs}}};
  answer.between = {2 * kMs, 1 * kMs, 3 * kMs};
  answer.overlap_ns = kMs / 2;
  answer.edges = {{.edge = {"edge_1_x", 0, 1},
                   .steps = 80,
                   .path = {5 * kMs, 4 * kMs, 6 * kMs},
                   .sending_ns = 0,
                   .asked_ns = 3 * kMs,
                   .clock_ns = 2'000,
                   .bytes = 4096}};
  answer.operators = {{"MatMul", 1, 80, {6 * kMs, 5 * kMs, 7 * kMs}}};
  return answer;
}

std::string TextOf(const CutAnswer& answer) { return CutWhyText(answer, {400, false}); }

TEST(CutText, SaysWhatAStepIsMadeOf) {
  const std::string text = TextOf(Answered());
  EXPECT_THAT(text, HasSubstr("STEP    20.0 ms [19.0, 21.0] from the begin of one step"));
  EXPECT_THAT(text, HasSubstr("work of the partitions 13.0 ms (65.0 %), tensors between them 5.0 "
                              "ms (25.0 %), between steps 2.0 ms (10.0 %)"));
  EXPECT_THAT(text, HasSubstr("edge_1_x"));
  EXPECT_THAT(text, HasSubstr("3.0 ms of edge_1_x begin when worker:1 asks for it"));
  EXPECT_THAT(text, HasSubstr("2 steps with other operators"));
  EXPECT_LT(text.find("worker:1 (b?[31m)"), text.find("master:0 (a)")) << "most on the path first";
}

TEST(CutText, SavingsAreThoseOfTheReplay) {
  EXPECT_THAT(TextOf(Answered()),
              AllOf(HasSubstr("SAVES   4.0 ms [3.0, 5.0] (20.0 %) if no tensor took any time, nor"),
                    HasSubstr("4.0 ms [3.0, 5.0] (20.0 %) if those from master:0 to worker:1"),
                    HasSubstr("3.0 ms [2.0, 4.0] (15.0 %) if all work of worker:1"),
                    HasSubstr("at most 11.0 ms (55.0 %) if the partitions worked on several")));
  CutAnswer beside = Answered();
  beside.overlap_ns = 5 * kMs;  // they work at the same time already
  EXPECT_THAT(TextOf(beside), Not(HasSubstr("worked on several")));
}

// Then the tensor may be late because its sender is busy: nobody is told to cut elsewhere.
TEST(CutText, ATensorOfABusySenderIsNotCalledTheNetworks) {
  CutAnswer busy = Answered();
  busy.edges[0].sender_busy_ns = 4 * kMs;
  busy.partitions[0].sending_busy_ns = 4 * kMs;
  const std::string text = TextOf(busy);
  EXPECT_THAT(text, AllOf(HasSubstr("in 4.0 ms of the tensors' time their senders worked"),
                          HasSubstr("master:0 worked in 4.0 ms of it: try more threads"),
                          Not(HasSubstr("cut the graph")), Not(HasSubstr("a request and an"))));
  EXPECT_THAT(TextOf(Answered()), Not(HasSubstr("their senders worked")));
  busy.partitions[0].sending_busy_ns = 8 * kMs;
  EXPECT_THAT(TextOf(busy), HasSubstr("and up to 4.0 ms more that tensors may have waited for its "
                                      "threads, if all work of master:0 took half"));
}

TEST(CutText, SaysHowWellTheClocksAreKnown) {
  CutAnswer answer = Answered();
  EXPECT_THAT(TextOf(answer), HasSubstr("of the nodes are apart is not known"));
  answer.clock_ns = 1'250;
  EXPECT_THAT(TextOf(answer), HasSubstr("are compared to ± 1.2 µs"));
  answer.clock_ns = 0;
  EXPECT_THAT(TextOf(answer), HasSubstr("all of it is of one clock"));
}

TEST(CutText, NamesThatBeginAlikeStayApart) {
  CutAnswer answer = Answered();
  answer.operators = {{std::string(100, 'a') + "/x", 1, 80, {6 * kMs, 5 * kMs, 7 * kMs}},
                      {std::string(100, 'a') + "/y", 1, 80, {5 * kMs, 4 * kMs, 6 * kMs}}};
  const std::string text = CutWhyText(answer, {80, false});
  EXPECT_THAT(text, AllOf(HasSubstr("/x "), HasSubstr("/y ")));
}

TEST(CutText, SaysWhatToDoAboutWhatIsMuch) {
  EXPECT_THAT(TextOf(Answered()), AllOf(HasSubstr("NEXT    tensors: most on the path"),
                                        Not(HasSubstr("between steps: 2.0"))));
  CutAnswer idle = Answered();
  idle.between.est_ns = 8 * kMs;
  EXPECT_THAT(TextOf(idle), HasSubstr("between steps: 8.0 ms are the program"));
}

TEST(CutText, ARefusalIsOneParagraph) {
  CutAnswer answer;
  answer.refusal = CutRefusal::kStepsOverlap;
  answer.refusal_text = "steps overlap";
  EXPECT_EQ(TextOf(answer), "REFUSED steps overlap\n");
  const auto json = nlohmann::json::parse(CutWhyJson(answer, {"run"}));
  EXPECT_EQ(json["status"], "refused");
  EXPECT_EQ(json["reason"], "steps_overlap");
  EXPECT_TRUE(json["client"].is_null());
  EXPECT_TRUE(json["steps"]["mean_ns"].is_null());
}

TEST(CutText, JsonHasTheSame) {
  const auto json = nlohmann::json::parse(CutWhyJson(Answered(), {"run"}));
  EXPECT_EQ(json["kind"], "cut");
  EXPECT_EQ(json["status"], "answered");
  EXPECT_EQ(json["client"], "/job:master/replica:0/task:0");
  EXPECT_EQ(json["steps"]["mean_ns"]["lo"], 19 * kMs);
  const auto& path = json["path"];
  EXPECT_EQ(path["partitions"][1]["saved_by_half_the_work_ns"]["est"], 3 * kMs);
  EXPECT_EQ(path["tensors"][0]["to"], "/job:worker/replica:0/task:1");
  EXPECT_EQ(path["tensors"][0]["clock_bound_ns"], 2'000);
  EXPECT_EQ(path["directions"][0]["saved_without_ns"]["est"], 4 * kMs);
  EXPECT_EQ(path["operators"][0]["name"], "MatMul");
  CutAnswer lost = Answered();
  lost.incomplete = true;
  EXPECT_EQ(nlohmann::json::parse(CutWhyJson(lost, {}))["status"], "incomplete");
}

}  // namespace
}  // namespace syncline::report
