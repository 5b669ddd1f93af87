// SPDX-License-Identifier: Apache-2.0
#include "timeline/scheduling_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timeline/builder.h"
#include "timeline/cut_sink.h"
#include "timeline/testing/dump_sink.h"
#include "timeline/testing/scenario.h"
#include "timeline/window_sink.h"

namespace syncline::timeline {
namespace {

using State = ThreadState::State;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kScenario[] = R"(
window 0 1000
node a shift -5000
process key=1 uid=0 pid=10 pidns=5 ticks=7 rank=0 command="python train.py"
stream s
5100 syncline:on generation=1 process=1 pid=+10 pidns=5 start_ticks=7
5900 syncline:off generation=1 process=1 events=2 lost=0 cost_ns=0
)";
constexpr char kLane[] = "a · rank 0 · python train.py / scheduling / main 10";

// Uninterruptible [100, 200), ready [200, 250), on CPU 3 [250, 400); preempted, ready [400, 430),
// on CPU 4 [430, 500); asleep [500, 600).
SchedulingSeries Series() {
  SchedulingSeries series;
  series.names = {"no one", "stress (pid 90)"};
  series.takers = {{1, 40}, {0, 10}, {kNoName, 30}};
  const ScheduledTurn first{.until_ns = 5400,
                            .ran_ns = 150,
                            .ready_ns = 50,
                            .pause_ns = 100,
                            .pause = State::kUninterruptible,
                            .cpu = 3,
                            .waker = 1,
                            .first_taker = 0,
                            .takers = 2};
  const ScheduledTurn second{
      .until_ns = 5500, .ran_ns = 70, .ready_ns = 30, .cpu = 4, .first_taker = 2, .takers = 1};
  const ScheduledTurn last{.until_ns = 5600, .pause_ns = 100};
  const ProcessKey process{0, 5, 10, 7};
  series.threads = {{process, 10, "main", {first, second, last}}, {process, 12, "silent", {}}};
  series.losses = {{.begin_ns = 5700, .end_ns = 5800, .count = 9, .detail = "no room"}};
  return series;
}

std::string Dump(Interval shown, unsigned threads, const SchedulingSeries& series) {
  auto scenario = testing::ParseScenario(kScenario);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  scenario->nodes[0].scheduling = series;
  scenario->options.threads = threads;
  testing::DumpSink dump;
  CutSink cut(shown, &dump);
  TimelineSink* const sinks[] = {&cut};
  EXPECT_TRUE(BuildTimeline(scenario->nodes, scenario->options, sinks).ok());
  EXPECT_THAT(dump.breaches(), IsEmpty());
  return dump.text();
}

constexpr Interval kAll{{kUnknownLo}, {kUnknownHi}};

std::string Line(const std::string& what, const std::string& rest) {
  return "state " + what + " on " + kLane + rest + "\n";
}

TEST(SchedulingSeries, EachThreadHasItsStates) {
  const std::string text = Dump(kAll, 1, Series());
  const std::string stress = "\"stress (pid 90)\"";
  EXPECT_THAT(text, HasSubstr(std::string(kLane) + " tid=10\n"));
  EXPECT_THAT(text, HasSubstr(Line("[100, 200] uninterruptible", " cpu=-1:")));
  EXPECT_THAT(text, HasSubstr(Line("[200, 250] ready",
                                   " cpu=3 " + stress +
                                       "=40 \"no one\"=10: CPU=3 had the CPU: stress (pid 90), "
                                       "ns=40 had the CPU: no one, ns=10")));
  EXPECT_THAT(
      text, HasSubstr(Line("[250, 400] CPU 3", " cpu=3 waker=" + stress + ": woken by=" + stress)));
  EXPECT_THAT(text, HasSubstr(Line("[400, 430] ready", " cpu=4: CPU=4"))) << "nobody is named";
  EXPECT_THAT(text, HasSubstr(Line("[430, 500] CPU 4", " cpu=4:")));
  EXPECT_THAT(text, HasSubstr(Line("[500, 600] asleep", " cpu=-1:")));
  EXPECT_THAT(text, Not(HasSubstr("silent")));
}

TEST(SchedulingSeries, TakersThatAreCalledAlikeAreAddedUp) {
  SchedulingSeries series = Series();
  series.names.push_back("stress (pid 90)");
  series.takers[1].who = 2;
  EXPECT_THAT(Dump(kAll, 1, series),
              HasSubstr("\"stress (pid 90)\"=50: CPU=3 had the CPU: stress (pid 90), ns=50\n"));
}

TEST(SchedulingSeries, LossesAreHolesOfTheGroup) {
  EXPECT_THAT(Dump(kAll, 1, Series()),
              HasSubstr("hole [700, 800] discarded events on a · rank 0 · python train.py / "
                        "scheduling count=9: no room\n"));
}

TEST(SchedulingSeries, IsTheSameThroughASecondThread) {
  EXPECT_EQ(Dump(kAll, 1, Series()), Dump(kAll, 2, Series()));
}

TEST(SchedulingSeries, IsCut) {
  const std::string text = Dump({{220}, {300}}, 1, Series());
  EXPECT_THAT(text, HasSubstr("state <220, 250] ready"));
  EXPECT_THAT(text, HasSubstr("state [250, 300> CPU 3"));
  EXPECT_THAT(text, Not(HasSubstr("CPU 4 on")));
  EXPECT_THAT(text, Not(HasSubstr("uninterruptible")));
}

TEST(SchedulingSeries, IsDividedIntoWindows) {
  auto scenario = testing::ParseScenario(kScenario);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  scenario->nodes[0].scheduling = Series();
  testing::DumpSink first, second;
  WindowSink windows({{0}, {600}}, {&first, &second});
  TimelineSink* const sinks[] = {&windows};
  ASSERT_TRUE(BuildTimeline(scenario->nodes, scenario->options, sinks).ok());
  EXPECT_THAT(first.text(), HasSubstr("state [250, 300> CPU 3"));
  EXPECT_THAT(second.text(), HasSubstr("state <300, 400] CPU 3"));
  EXPECT_THAT(first.text(), Not(HasSubstr("CPU 4 on")));
  EXPECT_THAT(second.text(), HasSubstr("state [430, 500] CPU 4"));
}

TEST(SchedulingSeries, TurnsThatOverlapAreDrawnOneBehindTheOther) {
  SchedulingSeries series = Series();
  series.threads[0].turns[1].ran_ns = 300;
  const std::string text = Dump(kAll, 1, series);
  EXPECT_THAT(text, HasSubstr(Line("[250, 400] CPU 3", "").substr(0, 30)));
  EXPECT_THAT(text, HasSubstr("state [400, 500] CPU 4"));
}

}  // namespace
}  // namespace syncline::timeline
