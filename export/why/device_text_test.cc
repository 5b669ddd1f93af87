// SPDX-License-Identifier: Apache-2.0
#include "export/why/device_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/why/device_json.h"

namespace syncline::report {
namespace {

using analysis::why::DeviceAnswer;
using analysis::why::DeviceCause;
using analysis::why::DeviceFinding;
using analysis::why::DevicePart;
using analysis::why::DeviceRefusal;
using analysis::why::DeviceVerdict;
using analysis::why::KernelWork;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

DeviceAnswer Late() {
  DeviceAnswer answer;
  answer.steps = 20;
  answer.mean_step_ns = 29'000'000;
  answer.collectives = true;
  answer.verdict = DeviceVerdict::kLate;
  answer.ranks = {{0, "rank0", "GPU 0", {}, 0, 0}, {1, "rank1\x1b[31m", "GPU 1", {}, 0, 0}};
  for (size_t i = 0; i < 2; ++i) {
    answer.ranks[i].mean[static_cast<size_t>(DevicePart::kComputing)] =
        i == 0 ? 20'000'000 : 25'000'000;
    answer.ranks[i].mean[static_cast<size_t>(DevicePart::kCommunication)] =
        i == 0 ? 9'000'000 : 4'000'000;
    answer.ranks[i].mean_step_ns = 29'000'000;
  }
  DeviceFinding finding;
  finding.index = 1;
  finding.lead = {5'000'000, 4'800'000, 5'200'000};
  finding.most_in = 20;
  finding.cost_ns = 5'000'000;
  DeviceCause cause;
  cause.amount = finding.lead;
  cause.own_ns = 25'000'000;
  KernelWork work;
  work.longer_ns = 5'000'000;
  work.longer_part = 0.25;
  work.kernels = {{"gemm", 10, 10, 2'500'000, 2'000'000, 5'000'000}};
  cause.work = work;
  finding.causes = {cause};
  answer.findings = {finding};
  return answer;
}

std::string TextOf(const DeviceAnswer& answer) { return DeviceWhyText(answer, {200, false}); }

TEST(DeviceText, SaysWhoIsLateAndWhy) {
  EXPECT_THAT(
      TextOf(Late()),
      AllOf(
          HasSubstr("LATE"),
          HasSubstr("its own work takes 5.0 ms [4.8, 5.2] longer than the "
                    "other rank's in a step of 29.0 ms; no rank has more in "
                    "20 of 20 steps"),
          HasSubstr("it is slower at the same work (or at longer data in equal grids): kernels of "
                    "the same names, grids and blocks "
                    "take 25 % longer in all (5.0 ms)"),
          HasSubstr("gemm: 5.0 ms more, 10.0 a step of 2.5 ms, the others' take 2.0 ms"),
          HasSubstr("5.0 ms of each step (17.2 %) at most"),
          HasSubstr("device of rank 1: its clocks"), Not(HasSubstr("\x1b"))));
}

TEST(DeviceText, ADeviceThatWasHeldBackIsEvidence) {
  EXPECT_THAT(TextOf(Late()), Not(HasSubstr("held back")));
  DeviceAnswer answer = Late();
  answer.findings[0].held_back = {{.reason = evidence::DeviceValue::kThermalNs,
                                   .own = {0.41, 0.40, 0.42},
                                   .others = {0.01, 0, 0.02},
                                   .known = 6,
                                   .unknown = 1,
                                   .own_mhz = 1200,
                                   .others_mhz = 1980}};
  EXPECT_THAT(
      TextOf(answer),
      HasSubstr("DEVICE  its device was held back by its temperature in 40 % to 42 % of the "
                "window, the others' in 0.0 % to 2.0 %; its SM clock was 1200 MHz in the "
                "median, the others' 1980 MHz; of 1 more rank it is"));
  const auto json = nlohmann::json::parse(DeviceWhyJson(answer, {}));
  const auto& held = json["verdict"]["ranks"][0]["held_back"][0];
  EXPECT_EQ(held["reason"], "thermal_ns");
  EXPECT_EQ(held["own"]["lo"], 0.40);
  EXPECT_EQ(held["others"]["hi"], 0.02);
  EXPECT_EQ(held["own_sm_mhz"], 1200);
}

TEST(DeviceText, PartsThatNobodyHasAreLeftOut) {
  EXPECT_THAT(TextOf(Late()),
              AllOf(HasSubstr("  exposed communication"), Not(HasSubstr("  waiting for input"))));
}

TEST(DeviceText, OtherWorkIsSaid) {
  DeviceAnswer answer = Late();
  KernelWork& work = *answer.findings[0].causes[0].work;
  work.more_ns = 4'000'000;
  work.longer_ns = 1'000'000;
  work.sizes_known = false;
  EXPECT_THAT(TextOf(answer), AllOf(HasSubstr("it has other work"), HasSubstr("by name alone"),
                                    HasSubstr("compare its batches")));
}

TEST(DeviceText, ASourceThatIsTheRanksNameIsNotRepeated) {
  DeviceAnswer answer = Late();
  answer.ranks[answer.findings[0].index].source = "rank 1";
  EXPECT_THAT(TextOf(answer), HasSubstr("rank 1 (GPU 1): its own work"));
}

TEST(DeviceText, EqualGridsAreNotCalledProofOfEqualWork) {
  EXPECT_THAT(TextOf(Late()), HasSubstr("or at longer data in equal grids"));
}

TEST(DeviceText, IdleTimeThatTheProgramDoesNotShowIsSaid) {
  DeviceAnswer answer = Late();
  answer.findings[0].unseen_launch_ns = 3'000'000;
  EXPECT_THAT(TextOf(answer), HasSubstr("not explained: its device was idle 3.0 ms longer"));
  answer.findings[0].causes.clear();
  EXPECT_THAT(TextOf(answer), HasSubstr("not known: its device was idle 3.0 ms longer"));
  answer.findings[0].unseen_launch_ns = 0;
  EXPECT_THAT(TextOf(answer), HasSubstr("no part alone is certainly larger"));
}

TEST(DeviceText, NothingIsAdvisedForLaunchesThatMayWaitForARank) {
  DeviceAnswer answer = Late();
  answer.findings.clear();
  answer.verdict = DeviceVerdict::kNotJudged;
  answer.ranks.resize(1);
  answer.everybody = {DevicePart::kLaunch};
  EXPECT_THAT(TextOf(answer), HasSubstr("CUDA graphs"));
  answer.host_collectives = true;
  EXPECT_THAT(TextOf(answer), Not(HasSubstr("CUDA graphs")));
}

TEST(DeviceText, NobodyAndUndecided) {
  DeviceAnswer answer = Late();
  answer.closest = answer.findings[0];
  answer.findings.clear();
  answer.verdict = DeviceVerdict::kNobody;
  answer.everybody = {DevicePart::kCommunication};
  EXPECT_THAT(TextOf(answer), AllOf(HasSubstr("no rank is late"),
                                    HasSubstr("exposed communication: 4.0 to 9.0 ms of the step on "
                                              "every rank")));
  answer.verdict = DeviceVerdict::kUndecided;
  answer.steps = 3;
  EXPECT_THAT(TextOf(answer), AllOf(HasSubstr("UNDECIDED"), HasSubstr("too few steps"),
                                    HasSubstr("profile more steps")));
  answer.steps = 9;
  EXPECT_THAT(TextOf(answer), HasSubstr("it is not certain that no rank is late"));
}

TEST(DeviceText, ARefusalIsOneParagraph) {
  DeviceAnswer answer;
  answer.refusal = DeviceRefusal::kNoRank;
  answer.refusal_text = "x.json: of which rank it is, is not known";
  EXPECT_EQ(TextOf(answer), "REFUSED x.json: of which rank it is, is not known\n");
}

TEST(DeviceJson, HasWhatWasFound) {
  const auto json = nlohmann::json::parse(DeviceWhyJson(Late(), {"rank0.json", "rank1.json"}));
  EXPECT_EQ(json["kind"], "devices");
  EXPECT_EQ(json["status"], "answered");
  EXPECT_EQ(json["verdict"]["kind"], "late");
  const auto& finding = json["verdict"]["ranks"][0];
  EXPECT_EQ(finding["rank"], 1);
  EXPECT_EQ(finding["lead_ns"]["lo"], 4'800'000);
  EXPECT_EQ(finding["causes"][0]["work"]["kind"], "slower");
  EXPECT_EQ(json["ranks"][1]["parts_ns"]["computing"], 25'000'000);
  EXPECT_TRUE(json["reason"].is_null());
  EXPECT_TRUE(finding["held_back"].empty());
}

}  // namespace
}  // namespace syncline::report
