// SPDX-License-Identifier: Apache-2.0
#include "timeline/code_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timeline/builder.h"
#include "timeline/cut_sink.h"
#include "timeline/testing/dump_sink.h"
#include "timeline/testing/scenario.h"

namespace syncline::timeline {
namespace {

using ::testing::ContainsRegex;
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

SampledCode Code() {
  SampledCode code;
  code.period_ns = 10;
  code.frames = {{"main", "/opt/job", "job.c", 3},
                 {"work", "/opt/job", "job.c", 9},
                 {"do_sys", "[kernel]", "", 0}};
  code.stacks = {{{0, 1}, 1}, {{0, 1, 2}, 1}};
  code.threads = {{ProcessKey{0, 5, 10, 7}, 10, "main", {{5200, 0}, {5600, 1}}},
                  {ProcessKey{0, 5, 10, 7}, 12, "silent", {}},
                  {ProcessKey{0, 5, 99, 7}, 99, "nobody's", {{5300, 0}}},
                  {ProcessKey{0, 6, 99, 7}, 99, "nobody's", {{5400, 0}}}};
  return code;
}

std::string Dump(Interval shown, unsigned threads, const std::vector<std::string>& events) {
  auto scenario = testing::ParseScenario(kScenario);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  scenario->nodes[0].code = Code();
  scenario->options.threads = threads;
  if (!events.empty()) scenario->options.events = EventPatterns(events);
  testing::DumpSink dump;
  CutSink cut(shown, &dump);
  TimelineSink* const sinks[] = {&cut};
  EXPECT_TRUE(BuildTimeline(scenario->nodes, scenario->options, sinks).ok());
  EXPECT_THAT(dump.breaches(), IsEmpty());
  return dump.text();
}

constexpr Interval kAll{{kUnknownLo}, {kUnknownHi}};

TEST(CodeSeries, LiesUnderItsProcessOrItsNode) {
  const std::string text = Dump(kAll, 1, {});
  EXPECT_THAT(text, HasSubstr("a · rank 0 · python train.py / sampled code / main 10 tid=10"));
  EXPECT_THAT(text, HasSubstr("sample 200 a · rank 0 · python train.py / sampled code / main 10: "
                              "main@job.c:3 in /opt/job work*@job.c:9 in /opt/job\n"
                              "sample 600 a · rank 0 · python train.py / sampled code / main 10: "
                              "main@job.c:3 in /opt/job work*@job.c:9 in /opt/job "
                              "do_sys@:0 in [kernel]\n"));
  // Two containers, each of which has a process 99.
  EXPECT_THAT(text, HasSubstr("sample 300 a / sampled code · pid 99 / nobody's 99: "));
  EXPECT_THAT(text, HasSubstr("sample 400 a / sampled code · pid 99 / nobody's 99: "));
  EXPECT_THAT(text, ContainsRegex("(track [0-9]+ a / sampled code · pid 99\n(.|\n)*){2}"));
  EXPECT_THAT(text, Not(HasSubstr("silent")));
}

TEST(CodeSeries, IsTheSameThroughASecondThread) { EXPECT_EQ(Dump(kAll, 1, {}), Dump(kAll, 2, {})); }

TEST(CodeSeries, IsCut) {
  const std::string text = Dump({{100}, {500}}, 1, {});
  EXPECT_THAT(text, HasSubstr("sample 200 "));
  EXPECT_THAT(text, Not(HasSubstr("sample 600 ")));
}

TEST(CodeSeries, IsNoneOfTheEventsThatWereAskedFor) {
  EXPECT_THAT(Dump(kAll, 1, {"syncline_itt:*"}), Not(HasSubstr("sample")));
}

}  // namespace
}  // namespace syncline::timeline
