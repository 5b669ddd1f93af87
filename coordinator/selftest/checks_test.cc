// SPDX-License-Identifier: Apache-2.0
#include "coordinator/selftest/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"

namespace syncline::selftest {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::MeanEstimate;
using analysis::why::Part;
using analysis::why::RankFinding;
using analysis::why::Refusal;
using analysis::why::Verdict;
using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kUs = 1'000;
constexpr Delay kDelay = {.rank = 1, .delay_ns = 20 * kMs};

MeanEstimate Mean(int64_t est_ns, int64_t half_ns) {
  return {.est_ns = est_ns, .lo_ns = est_ns - half_ns, .hi_ns = est_ns + half_ns};
}

Answer Healthy() {
  Answer answer;
  answer.steps = 200;
  answer.mean_step_ns = 40 * kMs;
  answer.ranks.resize(3);
  for (int32_t rank = 0; rank < 3; ++rank) answer.ranks[static_cast<size_t>(rank)].rank = rank;
  answer.verdict = Verdict::kNobody;
  answer.closest = RankFinding{.index = 0, .lead = Mean(kMs / 2, kMs)};
  return answer;
}

RankFinding Late(size_t index, Part part, int64_t amount_ns) {
  RankFinding finding{.index = index, .late = true, .lead = Mean(amount_ns, kMs)};
  finding.causes = {
      {.part = part, .amount = Mean(amount_ns, kMs / 5), .cost = Mean(amount_ns - kMs, kMs / 2)}};
  return finding;
}

Answer Delayed() {
  Answer answer = Healthy();
  answer.mean_step_ns = 59 * kMs;
  answer.verdict = Verdict::kCause;
  answer.closest.reset();
  answer.findings = {Late(1, Part::kInput, 20 * kMs)};
  return answer;
}

std::map<std::string, State> States(const std::vector<Check>& checks) {
  std::map<std::string, State> states;
  for (const Check& check : checks) states[check.name] = check.state;
  return states;
}

std::map<std::string, State> StatesOf(const Answer& healthy, const Answer& delayed,
                                      const Delay& delay = kDelay) {
  return States(CheckDelay(healthy, delayed, delay));
}

TEST(Checks, PassWhereTheDelayIsFound) {
  const std::map<std::string, State> all = {{"nobody", State::kPassed},
                                            {"who", State::kPassed},
                                            {"cause", State::kPassed},
                                            {"amount", State::kPassed},
                                            {"cost", State::kPassed}};
  EXPECT_EQ(StatesOf(Healthy(), Delayed()), all);
  EXPECT_EQ(Overall(CheckDelay(Healthy(), Delayed(), kDelay)), State::kPassed);
}

TEST(Checks, FailWhereAnotherRankIsNamed) {
  EXPECT_EQ(StatesOf(Healthy(), Delayed(), {.rank = 2, .delay_ns = 20 * kMs}).at("who"),
            State::kFailed);
  Answer both = Delayed();
  both.findings.push_back(Late(0, Part::kThrottled, 3 * kMs));
  EXPECT_EQ(StatesOf(Healthy(), both).at("who"), State::kUndecided)
      << "another program may well throttle it meanwhile";
  both.findings[1].causes[0].part = Part::kGarbageCollection;
  EXPECT_EQ(StatesOf(Healthy(), both).at("who"), State::kFailed);
}

TEST(Checks, AnotherRankThatIsLateForNoCauseIsNotNamed) {
  Answer slower = Delayed();
  slower.findings.insert(slower.findings.begin(),
                         {.index = 0, .late = true, .lead = Mean(25 * kMs, kMs)});
  const std::vector<Check> checks = CheckDelay(Healthy(), slower, kDelay);
  EXPECT_EQ(checks[1].state, State::kPassed);
  EXPECT_THAT(checks[1].text, HasSubstr("rank 1 (node ) is late by 20.0 ms")) << checks[1].text;
  slower.findings.erase(slower.findings.begin() + 1);
  EXPECT_EQ(StatesOf(Healthy(), slower).at("who"), State::kFailed);
}

TEST(Checks, FailWhereTheCauseIsAnother) {
  Answer other = Delayed();
  other.findings[0].causes[0].part = Part::kThrottled;
  EXPECT_EQ(StatesOf(Healthy(), other).at("cause"), State::kFailed);
  Answer behind = Delayed();
  behind.findings[0].causes.insert(behind.findings[0].causes.begin(),
                                   Cause{.part = Part::kWaitingForCpu, .amount = Mean(kMs, 0)});
  EXPECT_EQ(StatesOf(Healthy(), behind).at("cause"), State::kUndecided)
      << "another program may take its processor";
  behind.findings[0].causes[0].part = Part::kGarbageCollection;
  EXPECT_EQ(StatesOf(Healthy(), behind).at("cause"), State::kFailed);
}

TEST(Checks, FailWhereTheAmountIsAnother) {
  // 21.3 ms [21.1, 21.5]: 1.1 ms, more than 5 % of 20 ms, outside of the interval.
  Answer more = Delayed();
  more.findings[0].causes[0].amount = Mean(21'300 * kUs, 200 * kUs);
  EXPECT_EQ(StatesOf(Healthy(), more).at("amount"), State::kFailed);
  more.findings[0].causes[0].amount = Mean(21'100 * kUs, 200 * kUs);
  EXPECT_EQ(StatesOf(Healthy(), more).at("amount"), State::kPassed);
  more.findings[0].causes[0].amount = Mean(18'700 * kUs, 200 * kUs);
  EXPECT_EQ(StatesOf(Healthy(), more).at("amount"), State::kFailed);
}

TEST(Checks, AnAmountThatSaysNothingFails) {
  Answer wide = Delayed();
  wide.findings[0].causes[0].amount = Mean(200 * kMs, 200 * kMs);
  EXPECT_EQ(StatesOf(Healthy(), wide).at("amount"), State::kFailed);
}

TEST(Checks, WhatOthersTakeOfTheProcessorMayBeInTheAmount) {
  Answer busy = Delayed();
  busy.findings[0].causes[0].amount = Mean(17 * kMs, 200 * kUs);
  EXPECT_EQ(StatesOf(Healthy(), busy).at("amount"), State::kFailed);
  busy.ranks[1].mean[static_cast<size_t>(Part::kWaitingForCpu)] = 3 * kMs;
  EXPECT_EQ(StatesOf(Healthy(), busy).at("amount"), State::kUndecided);
}

TEST(Checks, AFastJobsDelayIsAllowedItsFixedError) {
  Answer fast = Delayed();
  fast.findings[0].causes[0].amount = Mean(2'200 * kUs, 20 * kUs);
  const Delay delay{.rank = 1, .delay_ns = 2 * kMs};
  EXPECT_EQ(StatesOf(Healthy(), fast, delay).at("amount"), State::kPassed);
  fast.findings[0].causes[0].amount = Mean(2'400 * kUs, 20 * kUs);
  EXPECT_EQ(StatesOf(Healthy(), fast, delay).at("amount"), State::kFailed);
}

TEST(Checks, ACostThatDoesNotFitIsNotRefutedForWindowsDrift) {
  Answer drifted = Delayed();
  drifted.mean_step_ns = 50 * kMs;
  EXPECT_EQ(StatesOf(Healthy(), drifted).at("cost"), State::kNotTested);
}

TEST(Checks, AMissedDelayFailsOnlyWhereItIsPromisedToBeFound) {
  Answer missed = Healthy();
  EXPECT_EQ(StatesOf(Healthy(), missed).at("who"), State::kFailed);
  EXPECT_EQ(StatesOf(Healthy(), missed).at("cause"), State::kFailed);
  EXPECT_EQ(StatesOf(Healthy(), missed, {.rank = 1, .delay_ns = 3 * kMs}).at("who"),
            State::kUndecided);
  missed.steps = 59;
  EXPECT_EQ(StatesOf(Healthy(), missed).at("who"), State::kUndecided);
  EXPECT_EQ(StatesOf(Healthy(), missed).at("cause"), State::kUndecided);
}

TEST(Checks, OfTheHealthyJobOnlyWhatCannotBeTrueFails) {
  Answer named = Healthy();
  named.verdict = Verdict::kCause;
  named.findings = {Late(0, Part::kWaitingForCpu, 4 * kMs)};
  EXPECT_EQ(StatesOf(named, Delayed()).at("nobody"), State::kUndecided) << "it may well be so";
  named.findings = {Late(0, Part::kInput, 4 * kMs)};
  EXPECT_EQ(StatesOf(named, Delayed()).at("nobody"), State::kFailed) << "no loader waits";
  Answer differs = Healthy();
  differs.verdict = Verdict::kWorkDiffers;
  EXPECT_EQ(StatesOf(differs, Delayed()).at("nobody"), State::kFailed) << "all do the same work";
  Answer unknown = Healthy();
  unknown.verdict = Verdict::kLateCauseUnknown;
  unknown.closest.reset();
  unknown.findings = {{.index = 0, .late = true, .lead = Mean(2 * kMs, kMs)}};
  const std::vector<Check> checks = CheckDelay(unknown, Delayed(), kDelay);
  EXPECT_EQ(checks[0].state, State::kPassed) << "it accuses nobody";
  EXPECT_THAT(checks[0].text, HasSubstr("2.0 ms [1.0, 3.0]; no cause is named"));
  Answer few = Healthy();
  few.steps = 59;
  EXPECT_EQ(StatesOf(few, Delayed()).at("nobody"), State::kUndecided);
  few = Healthy();
  few.verdict = Verdict::kNotJudged;
  EXPECT_EQ(StatesOf(few, Delayed()).at("nobody"), State::kUndecided);
}

TEST(Checks, WithoutAnAnswerNothingIsDecided) {
  Answer refused;
  refused.refusal = Refusal::kTooFewSteps;
  refused.refusal_text = "too few steps";
  EXPECT_EQ(StatesOf(refused, Delayed()).at("nobody"), State::kUndecided);
  EXPECT_EQ(StatesOf(refused, Delayed()).count("cost"), 0u);
  const std::vector<Check> checks = CheckDelay(Healthy(), refused, kDelay);
  EXPECT_EQ(checks.size(), 2u);
  EXPECT_EQ(Overall(checks), State::kUndecided);
}

DurationEstimate Around(int64_t est_ns, int64_t half_ns) {
  return {.est_ns = est_ns, .lo_ns = est_ns - half_ns, .hi_ns = est_ns + half_ns};
}

// As many clock events; messages take 80 us.
ClockSight Sight(int64_t skew_ns, int64_t bound_ns, size_t events) {
  ClockSight sight{.node = "w", .bound_ns = bound_ns, .flight_ns = 80 * kUs};
  sight.start = Around(skew_ns, bound_ns);
  sight.stop = Around(skew_ns, bound_ns);
  for (size_t i = 0; i < events; ++i) sight.events.push_back(absl::StrCat("event ", i));
  return sight;
}

std::map<std::string, State> StatesOfShift(const ClockSight& after,
                                           const ClockSight& before = Sight(0, 2 * kUs, 1)) {
  return States(CheckShift(before, after, kMs, Delayed(), Delayed()));
}

TEST(Checks, AWrongClockMustBeNoticed) {
  EXPECT_EQ(StatesOfShift(Sight(kMs, 2 * kMs, 3)).at("clock_noticed"), State::kPassed);
  ClockSight contradicted = Sight(kMs, 2 * kUs, 1);
  EXPECT_EQ(StatesOfShift(contradicted).at("clock_noticed"), State::kFailed);
  contradicted.contradictions = 1;
  EXPECT_EQ(StatesOfShift(contradicted).at("clock_noticed"), State::kPassed);
  EXPECT_EQ(StatesOfShift(Sight(kMs, 2 * kMs, 1), Sight(0, 2 * kMs, 1)).at("clock_noticed"),
            State::kUndecided)
      << "a clock that is known to 2 ms may be wrong by 1 ms";
  ClockSight far = Sight(0, 2 * kUs, 1);
  far.flight_ns = 3 * kMs;
  const auto states = StatesOfShift(Sight(kMs, 2 * kUs, 1), far);
  EXPECT_EQ(states.at("clock_noticed"), State::kUndecided) << "no message was that quick";
  EXPECT_EQ(states.at("clock_bound"), State::kUndecided);
  far.flight_ns.reset();
  EXPECT_EQ(StatesOfShift(Sight(kMs, 2 * kUs, 1), far).at("clock_noticed"), State::kUndecided);
  EXPECT_THAT(
      CheckShift(Sight(0, 2 * kUs, 1), Sight(kMs, 2 * kMs, 2), kMs, Delayed(), Delayed())[0].text,
      HasSubstr("a new clock event: event 1"));
}

TEST(Checks, ClocksThatAreWrongAlreadyAreNotTested) {
  ClockSight before = Sight(0, 2 * kUs, 0);
  before.contradictions = 5;
  ClockSight after = Sight(kMs, 2 * kUs, 3);
  after.contradictions = 50;
  const std::vector<Check> checks = CheckShift(before, after, kMs, Delayed(), Delayed());
  EXPECT_EQ(States(checks).at("clock_noticed"), State::kUndecided);
  EXPECT_EQ(States(checks).at("clock_bound"), State::kUndecided);
}

TEST(Checks, TheBoundMustHoldTheTruth) {
  EXPECT_EQ(StatesOfShift(Sight(kMs, 2 * kMs, 3)).at("clock_bound"), State::kPassed);
  ClockSight told = Sight(kMs, 2 * kUs, 3);
  EXPECT_EQ(StatesOfShift(told).at("clock_bound"), State::kFailed);
  told.contradictions = 1;
  EXPECT_EQ(StatesOfShift(told).at("clock_bound"), State::kPassed) << "it is said not to hold";
  ClockSight late_only = Sight(kMs, 2 * kMs, 3);
  late_only.stop = Around(kMs, 2 * kUs);
  EXPECT_EQ(StatesOfShift(late_only).at("clock_bound"), State::kFailed);
  EXPECT_EQ(StatesOfShift(Sight(kMs, 2 * kMs, 3), ClockSight{}).at("clock_bound"),
            State::kUndecided);
}

TEST(Checks, TheVerdictMustNotDependOnClocks) {
  const ClockSight sight = Sight(0, 2 * kUs, 1);
  Answer other = Delayed();
  other.findings[0].lead = Mean(17 * kMs, kMs);
  EXPECT_EQ(States(CheckShift(sight, sight, kMs, Delayed(), other)).at("verdict_without_clocks"),
            State::kFailed);
  other = Delayed();
  other.findings[0].index = 2;
  EXPECT_EQ(States(CheckShift(sight, sight, kMs, Delayed(), other)).at("verdict_without_clocks"),
            State::kFailed);
  other.refusal = Refusal::kNotCovered;
  EXPECT_EQ(States(CheckShift(sight, sight, kMs, Delayed(), other)).at("verdict_without_clocks"),
            State::kUndecided);
  EXPECT_EQ(
      States(CheckShift(sight, sight, kMs, Healthy(), Healthy())).at("verdict_without_clocks"),
      State::kNotTested);
  other = Delayed();
  other.findings[0].lead.est_ns += kMs / 2;
  EXPECT_EQ(States(CheckShift(sight, sight, kMs, Delayed(), other)).at("verdict_without_clocks"),
            State::kPassed);
}

TEST(Checks, TheWorstDecides) {
  const auto overall = [](std::vector<State> states) {
    std::vector<Check> checks;
    for (const State state : states) checks.push_back({.name = "a", .state = state});
    return Overall(checks);
  };
  using enum State;
  EXPECT_EQ(overall({kPassed, kNotTested}), kPassed);
  EXPECT_EQ(overall({kPassed, kUndecided, kNotTested}), kUndecided);
  EXPECT_EQ(overall({kUndecided, kFailed, kPassed}), kFailed);
  EXPECT_EQ(overall({kNotTested}), kNotTested);
}

TEST(Checks, WhatIsMissingIsNotTested) {
  std::vector<Check> checks = {{.name = "who", .state = State::kPassed}};
  Complete("no reason", &checks);
  EXPECT_EQ(checks.size(), kCheckNames.size());
  EXPECT_EQ(States(checks).at("who"), State::kPassed);
  EXPECT_EQ(States(checks).at("clock_bound"), State::kNotTested);
}

TEST(Checks, ASightIsOfOneNode) {
  analysis::Report report;
  report.nodes.resize(2);
  report.nodes[0].name = "m";
  report.nodes[1].name = "w";
  report.nodes[1].bound_ns = 7;
  report.clock_events.resize(2);
  report.messages.contradictions = 2;
  report.transfers.contradictions = 3;
  report.collectives.contradictions = 4;
  const ClockSight sight = SightOf(report, "w");
  EXPECT_EQ(sight.bound_ns, 7);
  EXPECT_EQ(sight.events.size(), 2u);
  EXPECT_EQ(sight.contradictions, 5u) << "not of collectives";
  EXPECT_FALSE(SightOf(report, "m").bound_ns.has_value());
}

}  // namespace
}  // namespace syncline::selftest
