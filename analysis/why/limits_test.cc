// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis::why {
namespace {

using ::testing::HasSubstr;
using State = LimitResult::State;

TEST(Limits, NamesAndPercentagesAreRead) {
  struct Case {
    const char* text;
    const char* part;
    std::optional<int32_t> rank;
    int64_t ppm;
  };
  const Case cases[] = {
      {"step > +5%", "", std::nullopt, 50'000},
      {"step>+0%", "", std::nullopt, 0},
      {"  step >  + 12.5 % ", "", std::nullopt, 125'000},
      {"input > +0.0001%", "input", std::nullopt, 1},
      {"waiting for a CPU > +1%", "waiting for a CPU", std::nullopt, 10'000},
      {"waiting_for_cpu > +1%", "waiting_for_cpu", std::nullopt, 10'000},
      {"rank:3.garbage_collection > +200%", "garbage_collection", 3, 2'000'000},
      {"rank:0.wait and transfer > +1%", "wait and transfer", 0, 10'000},
      {"tensors > +1%", "tensors", std::nullopt, 10'000},
      {"launch > +1%", "launch", std::nullopt, 10'000},
      {"rank:0.own_work > +1%", "own_work", 0, 10'000},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    const auto limit = ParseLimit(one.text);
    ASSERT_TRUE(limit.ok()) << limit.status();
    EXPECT_EQ(limit->part, one.part);
    EXPECT_EQ(limit->rank, one.rank);
    EXPECT_EQ(limit->ppm, one.ppm);
  }
}

TEST(Limits, AnythingElseIsRefusedWithWhatALimitLooksLike) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "\">\" is missing"},
      {"step", "\">\" is missing"},
      {"step < +5%", "\">\" is missing"},
      {"step > 5%", "with its sign"},
      {"step > -5%", "with its sign"},
      {"step > +5", "with its sign"},
      {"step > +%", "is a number"},
      {"step > +1e3%", "is a number"},
      {"step > +inf%", "is a number"},
      {"step > +5.%", "is a number"},
      {"step > +.5%", "is a number"},
      {"step > +1.23456%", "is a number"},
      {"step > +123456%", "is a number"},
      {"step > ++5%", "is a number"},
      {"> +5%", "there is no \"\""},
      {"steps > +5%", "there is no \"steps\"; names are step, compute, throttled"},
      {"rank:3 > +5%", "a rank's part is rank:NUMBER.PART"},
      {"rank:.input > +5%", "a rank's part is rank:NUMBER.PART"},
      {"rank:-1.input > +5%", "a rank's part is rank:NUMBER.PART"},
      {"rank:99999999999.input > +5%", "a rank's part is rank:NUMBER.PART"},
      {"rank:3.step > +5%", "there is no \"rank:3.step\""},
      {"rank:3.tensors > +5%", "there is no \"rank:3.tensors\""},
      {"own_work > +5%", "there is no \"own_work\""},
  };
  for (const auto& [text, what] : cases) {
    const auto limit = ParseLimit(text);
    ASSERT_FALSE(limit.ok()) << text;
    EXPECT_EQ(limit.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(limit.status().message()), HasSubstr("like 'step > +5%'")) << text;
    EXPECT_THAT(std::string(limit.status().message()), HasSubstr(what)) << text;
  }
}

Change ChangeOf(int64_t lo_ppm, int64_t est_ppm, int64_t hi_ppm) {
  Change change;
  change.lo_ppm = lo_ppm;
  change.est_ppm = est_ppm;
  change.hi_ppm = hi_ppm;
  return change;
}

Comparison Compared() {
  Comparison comparison;
  comparison.before.steps = comparison.now.steps = 60;
  comparison.taken_away_known = true;
  comparison.step = ChangeOf(50'000, 80'000, 110'000);
  comparison.parts[static_cast<size_t>(Part::kInput)] = ChangeOf(-1'000, 30'000, 70'000);
  comparison.ranks.push_back({3, {}});
  comparison.ranks[0].parts[static_cast<size_t>(Part::kInput)] = ChangeOf(51'000, 60'000, 70'000);
  return comparison;
}

LimitResult Judged(const char* text, const Comparison& comparison) {
  return JudgeLimits({*ParseLimit(text)}, comparison)[0];
}

TEST(Limits, AreExceededOnlyByAllOfTheInterval) {
  const Comparison comparison = Compared();
  EXPECT_EQ(Judged("step > +4.9999%", comparison).state, State::kAbove);
  EXPECT_EQ(Judged("step > +5%", comparison).state, State::kNotAbove);
  EXPECT_EQ(Judged("input > +0%", comparison).state, State::kNotAbove);
  EXPECT_EQ(Judged("rank:3.input > +5%", comparison).state, State::kAbove);
  EXPECT_EQ(Judged("rank:3.input > +5%", comparison).change->est_ppm, 60'000);
}

TEST(Limits, OfDevicesNameTheirPartsAndOwnWork) {
  DeviceComparison comparison;
  comparison.before.steps = comparison.now.steps = 60;
  comparison.parts[static_cast<size_t>(DevicePart::kLaunch)] = ChangeOf(51'000, 60'000, 70'000);
  comparison.ranks.push_back({2, ChangeOf(20'000, 30'000, 40'000), {}});
  const auto judged = [&](const char* text) {
    return JudgeLimits({*ParseLimit(text)}, comparison)[0];
  };
  EXPECT_EQ(judged("launch > +5%").state, State::kAbove);
  EXPECT_EQ(judged("waiting for a launch > +5%").state, State::kAbove);
  EXPECT_EQ(judged("rank:2.own_work > +1%").state, State::kAbove);
  EXPECT_EQ(judged("rank:2.launch > +1%").state, State::kNotAbove);
  EXPECT_THAT(judged("rank:1.own_work > +1%").why, HasSubstr("a rank 1"));
  comparison.own_work_known = false;
  EXPECT_THAT(judged("rank:2.own_work > +1%").why, HasSubstr("collectives run on the host"));
  EXPECT_EQ(judged("rank:2.launch > +1%").state, State::kNotAbove);
  EXPECT_THAT(judged("throttled > +1%").why, HasSubstr("there are step, computing, copies"));
}

TEST(Limits, OfBeingBlockedAreJudgedOnlyWhereThatIsKnown) {
  Comparison comparison = Compared();
  comparison.taken_away_known = true;
  EXPECT_THAT(Judged("blocked > +5%", comparison).why, HasSubstr("not measured on every rank"));
  comparison.blocked_known = true;
  EXPECT_EQ(Judged("blocked > +5%", comparison).state, State::kNotAbove);
  EXPECT_EQ(Judged("blocked in kernel > +5%", comparison).state, State::kNotAbove);
}

TEST(Limits, AreNotJudgedWhereSomethingIsMissing) {
  EXPECT_THAT(Judged("rank:4.input > +5%", Compared()).why, HasSubstr("a rank 4"));
  Comparison comparison = Compared();
  comparison.now.steps = 59;
  EXPECT_EQ(Judged("step > +1%", comparison).state, State::kNotJudged);
  EXPECT_EQ(Judged("step > +1%", comparison).why,
            "only 59 steps of one class were judged now, and 60 are needed on both sides");
  comparison = Compared();
  comparison.before.incomplete = true;
  EXPECT_EQ(Judged("step > +1%", comparison).state, State::kNotJudged);
  EXPECT_EQ(Judged("step > +1%", comparison).why, "the recording before is not complete");
  comparison = Compared();
  comparison.taken_away_known = false;
  EXPECT_EQ(Judged("throttled > +1%", comparison).state, State::kNotJudged);
  EXPECT_EQ(Judged("step > +1%", comparison).state, State::kAbove);
  comparison.mismatch = Mismatch::kOtherSteps;
  EXPECT_EQ(Judged("step > +1%", comparison).state, State::kNotJudged);
  EXPECT_FALSE(Judged("step > +1%", comparison).change.has_value());
}

}  // namespace
}  // namespace syncline::analysis::why
