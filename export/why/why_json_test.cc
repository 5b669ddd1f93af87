// SPDX-License-Identifier: Apache-2.0
// The JSON of the answer, from answers made by hand.
#include "export/why/why_json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/why/model.h"
#include "export/why/testing/answers.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::Part;
using analysis::why::ProcessorTime;
using analysis::why::RankSummary;
using analysis::why::Refusal;
using analysis::why::Taker;
using testing::AnswersWithNames;
using testing::AnswerWith;
using testing::CauseOf;
using testing::Tenths;
using testing::ThrottledAnswer;
using Json = nlohmann::json;

TEST(WhyJson, HasEveryNumberOfTheAnswer) {
  Answer answer = ThrottledAnswer();
  answer.findings[0].processor = ProcessorTime{1, 2, 3};
  answer.findings[0].work = {{"aten::conv2d", false, 12.5, 10}};
  Cause waiting = CauseOf(Part::kWaitingForCpu, Tenths(12, 10, 20));
  waiting.taker = Taker{Taker::Kind::kOutside, "stress-ng", 99, 5};
  answer.findings[0].causes.push_back(waiting);
  answer.findings[0].not_causes.push_back({Part::kInput, 0, false});
  answer.everybody = {Part::kInput};
  answer.notes = {"note"};
  const Json json = Json::parse(WhyJson(answer, "run-1"));

  EXPECT_EQ(json["format_version"], 1);
  EXPECT_EQ(json["status"], "answered");
  EXPECT_TRUE(json["reason"].is_null());
  EXPECT_EQ(json["recording"], "run-1");
  EXPECT_EQ(json["job"], "j1");
  EXPECT_EQ(json["window_ns"], 10'000'000'000);
  EXPECT_EQ(json["steps"]["judged"], 104);
  EXPECT_EQ(json["steps"]["class"], "all_reduce x3");
  EXPECT_EQ(json["steps"]["mean_ns"], 96'200'000);
  EXPECT_EQ(json["steps"]["classes"][0]["total_ns"], 10'000'000'000);
  const Json& verdict = json["verdict"];
  EXPECT_EQ(verdict["kind"], "cause");
  EXPECT_EQ(verdict["everybody"], Json({"input"}));
  const Json& rank = verdict["ranks"][0];
  EXPECT_EQ(rank["rank"], 1);
  EXPECT_EQ(rank["node"], "beta");
  EXPECT_EQ(rank["pid"], 4711);
  EXPECT_EQ(rank["late"], true);
  EXPECT_EQ(rank["lead_ns"], Json({{"est", 31'300'000}, {"lo", 28'900'000}, {"hi", 33'800'000}}));
  EXPECT_EQ(rank["p"], 0.0005);
  EXPECT_EQ(rank["order"], Json({{"last", 101}, {"proven", 96}, {"likely", 0}, {"steps", 104}}));
  EXPECT_EQ(rank["processor"],
            Json({{"on_cpu_ns", 1}, {"run_queue_ns", 2}, {"asleep_ns", 3}, {"stolen_ns", 0}}));
  EXPECT_EQ(rank["work"][0]["own_per_step"], 12.5);
  EXPECT_EQ(rank["cost_ns"]["est"], 30'000'000);
  EXPECT_EQ(rank["not_causes"][0]["amount_ns"], 200'000);
  EXPECT_TRUE(rank["not_causes"][3]["amount_ns"].is_null());
  const Json& cause = rank["causes"][0];
  EXPECT_EQ(cause["cause"], "throttled");
  EXPECT_EQ(cause["amount_ns"]["est"], 29'800'000);
  EXPECT_EQ(cause["own_ns"], 29'800'000);
  EXPECT_EQ(cause["cost_ns"]["hi"], 34'000'000);
  EXPECT_EQ(cause["group"], "/job/rank1");
  EXPECT_EQ(cause["quota_ns"], 70'000'000);
  EXPECT_EQ(cause["period_ns"], 100'000'000);
  EXPECT_EQ(cause["periods"], 100);
  EXPECT_EQ(cause["throttled_periods"], 88);
  EXPECT_TRUE(cause["taker"].is_null());
  EXPECT_TRUE(cause["lower_sets"].empty());
  EXPECT_TRUE(cause["threads"].is_null());
  EXPECT_TRUE(rank["causes"][1]["group"].is_null());
  EXPECT_EQ(rank["causes"][1]["taker"], Json({{"kind", "outside"},
                                              {"name", "stress-ng"},
                                              {"pid", 99},
                                              {"cpu_ns", 5},
                                              {"by", "samples"}}));
  const Json& summary = json["ranks"][1];
  EXPECT_EQ(summary["step_ns"], 96'200'000);
  EXPECT_EQ(summary["own_work_ns"], 93'800'000);
  EXPECT_EQ(summary["covered_ppm"], 999'100);
  EXPECT_EQ(summary["samples"]["period_ns"], 50'000'000);
  EXPECT_EQ(json["clock_bound_ns"], 1'200);
  EXPECT_EQ(json["lost_events"], 0);
  EXPECT_EQ(json["notes"], Json({"note"}));
}

TEST(WhyJson, ALowerInstructionSet) {
  Cause cause = CauseOf(Part::kCompute, Tenths(290, 285, 295));
  cause.lower_sets = {{"convolution", {"jit:avx2"}, {"jit:avx512_core"}}};
  const Json json = Json::parse(WhyJson(AnswerWith({cause}), "run", ""));
  const Json& said = json["verdict"]["ranks"][0]["causes"][0];
  EXPECT_EQ(said["cause"], "instruction_set");
  EXPECT_EQ(said["lower_sets"], Json({{{"primitive", "convolution"},
                                       {"own", {"jit:avx2"}},
                                       {"others", {"jit:avx512_core"}},
                                       {"all_others", true}}}));
}

TEST(WhyJson, BlockedInTheKernel) {
  Cause cause = CauseOf(Part::kBlocked, Tenths(290, 285, 295));
  analysis::why::BlockedSleep sleep;
  sleep.asleep = 120;
  sleep.blocked = 114;
  sleep.faults = 2.5;
  cause.blocked = sleep;
  Answer answer = AnswerWith({cause});
  answer.ranks[0].blocked_known = false;
  Json json = Json::parse(WhyJson(answer, "run", ""));
  Json said = json["verdict"]["ranks"][0]["causes"][0];
  EXPECT_EQ(said["cause"], "blocked");
  EXPECT_EQ(said["blocked"], Json({{"by", "samples"},
                                   {"asleep_samples", 120},
                                   {"blocked_samples", 114},
                                   {"major_faults_per_step", 2.5},
                                   {"read_bytes_per_step", nullptr}}));
  EXPECT_TRUE(said["loader_blocked"].is_null());
  EXPECT_TRUE(said["full_memory"].is_null());
  EXPECT_EQ(json["ranks"][0]["blocked_known"], false);
  EXPECT_TRUE(json["ranks"][0]["parts"]["blocked_ns"].is_null());
  EXPECT_EQ(json["ranks"][1]["parts"]["blocked_ns"], 0);

  cause.blocked->by_scheduler = true;
  cause.full_memory = {{"/job", 2, 300'000'000, 125, 1'000'000'000}, 12.5};
  said = Json::parse(WhyJson(AnswerWith({cause}), "run", ""))["verdict"]["ranks"][0]["causes"][0];
  EXPECT_EQ(said["blocked"]["by"], "scheduler");
  EXPECT_EQ(said["full_memory"], Json({{"group", "/job"},
                                       {"group_version", 2},
                                       {"limit_bytes", 300000000},
                                       {"times", 125},
                                       {"time_ns", 1000000000},
                                       {"per_step", 12.5}}));
  EXPECT_TRUE(said["blocked"]["asleep_samples"].is_null());

  cause = CauseOf(Part::kInput, Tenths(290, 285, 295));
  cause.loader_blocked = 0.75;
  said = Json::parse(WhyJson(AnswerWith({cause}), "run", ""))["verdict"]["ranks"][0]["causes"][0];
  EXPECT_EQ(said["loader_blocked"], 0.75);
  EXPECT_TRUE(said["blocked"].is_null());
}

TEST(WhyJson, FewerThreads) {
  Cause cause = CauseOf(Part::kCompute, Tenths(290, 285, 295));
  cause.threads = {500'000, 39'200'000, 69'200'000, 79'300'000, 1, 11, 0};
  Answer answer = AnswerWith({cause});
  answer.ranks[1].allowed_count = 2;
  const Json json = Json::parse(WhyJson(answer, "run", ""));
  const Json& said = json["verdict"]["ranks"][0]["causes"][0];
  EXPECT_EQ(said["cause"], "fewer_threads");
  EXPECT_EQ(said["threads"], Json({{"helpers_ns", 500'000},
                                   {"others_helpers_ns", 39'200'000},
                                   {"cpu_ns", 69'200'000},
                                   {"others_cpu_ns", 79'300'000},
                                   {"process_threads", 11},
                                   {"others_process_threads", nullptr}}));
  EXPECT_TRUE(json["ranks"][0]["allowed_cpus"].is_null());
  EXPECT_EQ(json["ranks"][1]["allowed_cpus"], 2);
}

TEST(WhyJson, Stalls) {
  Answer answer = ThrottledAnswer();
  EXPECT_TRUE(Json::parse(WhyJson(answer, "run", ""))["stalls"].is_null());
  answer.stalls = testing::StallsOf(1);
  answer.findings[0].quiet_lead = Tenths(1, 0, 2);
  const Json json = Json::parse(WhyJson(answer, "run", ""));
  EXPECT_EQ(json["verdict"]["ranks"][0]["lead_without_stalls_ns"]["est"], 100'000);
  const Json& stalls = json["stalls"];
  EXPECT_EQ(stalls["stalls"], 4);
  EXPECT_EQ(stalls["steps"], 108);
  EXPECT_EQ(stalls["usual_ns"], 96'200'000);
  const Json& group = stalls["groups"][0];
  EXPECT_EQ(group["made_by"], "ranks");
  EXPECT_EQ(group["ranks"], Json({1}));
  EXPECT_EQ(group["longest_ns"], 610'000'000);
  EXPECT_TRUE(group["every_steps"].is_null());
  EXPECT_TRUE(group["python"].is_null());
  EXPECT_EQ(group["longer_parts"]["host_code_ns"], 450'000'000);
  EXPECT_TRUE(group["longer_parts"]["throttled_ns"].is_null()) << "not told apart there";
}

TEST(WhyJson, PartsAddUpToTheStep) {
  const Json json = Json::parse(WhyJson(ThrottledAnswer(), "run-1"));
  for (const Json& rank : json["ranks"]) {
    int64_t sum_ns = 0;
    for (const auto& [name, part] : rank["parts"].items()) sum_ns += part.get<int64_t>();
    EXPECT_EQ(rank["parts"].size(), analysis::why::kParts);
    EXPECT_EQ(sum_ns, rank["step_ns"]);
  }
}

TEST(WhyJson, WhatIsNotKnownIsNull) {
  Answer answer = ThrottledAnswer();
  answer.lost_events.reset();
  RankSummary& unsampled = answer.ranks[0];
  unsampled.taken_away_known = false;
  unsampled.sample_period_ns = 0;
  unsampled.group_version = 0;
  unsampled.sample_gaps.reset();
  answer.everybody_taker = Taker{};  // nobody that the node shows
  Json json = Json::parse(WhyJson(answer, "run"));
  EXPECT_TRUE(json["lost_events"].is_null());
  EXPECT_TRUE(json["verdict"]["everybody_taker"]["cpu_ns"].is_null());
  const Json rank = json["ranks"][0];
  EXPECT_TRUE(rank["parts"]["throttled_ns"].is_null());
  EXPECT_TRUE(rank["parts"]["waiting_for_cpu_ns"].is_null());
  EXPECT_TRUE(rank["parts"]["compute_ns"].is_number());
  EXPECT_TRUE(rank["unplaced_ns"].is_null());
  const Json none = {{"period_ns", nullptr}, {"gaps", nullptr}, {"group_version", nullptr}};
  EXPECT_EQ(rank["samples"], none);

  answer.refusal = Refusal::kTooFewSteps;
  answer.mean_step_ns = 0;
  answer.ranks[1].mean_step_ns = 0;  // its steps were not taken apart
  json = Json::parse(WhyJson(answer, "run"));
  for (const char* key : {"mean_ns", "median_ns", "longest_ns"}) {
    EXPECT_TRUE(json["steps"][key].is_null()) << key;
  }
  EXPECT_TRUE(json["ranks"][1]["step_ns"].is_null());
  EXPECT_TRUE(json["ranks"][1]["own_work_ns"].is_null());
  for (const auto& [name, part] : json["ranks"][1]["parts"].items()) {
    EXPECT_TRUE(part.is_null()) << name;
  }
}

TEST(WhyJson, RefusedAndIncomplete) {
  Answer answer;
  answer.refusal = Refusal::kTooFewSteps;
  answer.refusal_text = "12 steps: \xff";
  Json json = Json::parse(WhyJson(answer, "run"));
  EXPECT_EQ(json["status"], "refused");
  EXPECT_EQ(json["reason"], "too_few_steps");
  EXPECT_EQ(json["message"], "12 steps: \xef\xbf\xbd");
  EXPECT_EQ(json["verdict"]["kind"], "none");
  EXPECT_TRUE(json["clock_bound_ns"].is_null());
  answer = ThrottledAnswer();
  answer.incomplete = true;
  json = Json::parse(WhyJson(answer, "run"));
  EXPECT_EQ(json["status"], "incomplete");
  EXPECT_EQ(json["verdict"]["kind"], "cause");
}

TEST(WhyJson, AJobThatStandsStillIsAnAnswer) {
  Answer answer;
  answer.verdict = analysis::why::Verdict::kStandsStill;
  const Json json = Json::parse(WhyJson(answer, "run-1", R"({"moves": false})"));
  EXPECT_EQ(json["status"], "answered");
  EXPECT_EQ(json["verdict"]["kind"], "stands_still");
  EXPECT_EQ(json["standstill"]["moves"], false);
  EXPECT_TRUE(Json::parse(WhyJson(answer, "run-1"))["standstill"].is_null());
}

TEST(WhyJson, NamesMayHoldAnyBytes) {
  for (const std::string name : {"\"\\\n\033", "\xff\xfe"}) {
    for (const Answer& answer : AnswersWithNames(name)) {
      EXPECT_FALSE(Json::parse(WhyJson(answer, name), nullptr, false).is_discarded());
    }
  }
}

}  // namespace
}  // namespace syncline::report
