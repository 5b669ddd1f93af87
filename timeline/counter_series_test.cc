// SPDX-License-Identifier: Apache-2.0
#include "timeline/counter_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timeline/builder.h"
#include "timeline/testing/dump_sink.h"
#include "timeline/testing/scenario.h"

namespace syncline::timeline {
namespace {

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
node b shift 0
)";

class CounterSeriesTest : public ::testing::Test {
 protected:
  CounterSeriesTest() {
    auto parsed = testing::ParseScenario(kScenario);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    scenario_ = *std::move(parsed);
  }
  std::string Dump() {
    testing::DumpSink dump;
    TimelineSink* const sinks[] = {&dump};
    EXPECT_TRUE(BuildTimeline(scenario_.nodes, scenario_.options, sinks).ok());
    EXPECT_THAT(dump.breaches(), IsEmpty());
    return dump.text();
  }

  testing::Scenario scenario_;
};

TEST_F(CounterSeriesTest, LieOnTheTimelineUnderTheirProcessOrTheirNode) {
  scenario_.nodes[0].counters = {
      {ProcessKey{0, 5, 10, 7}, "run queue", "ms/s", {{5200, 3.5}, {5300, 0}}},
      {ProcessKey{0, 5, 99, 7}, "nobody's", "%", {{5200, 1}}},
      {std::nullopt, "empty", "%", {}}};
  scenario_.nodes[1].counters = {{std::nullopt, "throttled", "ms/s", {{400, 2}}}};
  const std::string text = Dump();
  EXPECT_THAT(text, HasSubstr("a · rank 0 · python train.py / run queue (counter)"));
  EXPECT_THAT(text, HasSubstr("counter 200 a · rank 0 · python train.py / run queue = 3.5\n"
                              "counter 300 a · rank 0 · python train.py / run queue = 0\n"));
  EXPECT_THAT(text, HasSubstr("a / nobody's (counter)"));
  EXPECT_THAT(text, HasSubstr("counter 400 b / throttled = 2"));
  EXPECT_THAT(text, Not(HasSubstr("empty")));
}

TEST_F(CounterSeriesTest, AreNoneOfTheEventsThatWereAskedFor) {
  scenario_.nodes[1].counters = {{std::nullopt, "throttled", "ms/s", {{400, 2}}}};
  scenario_.options.events = EventPatterns({"syncline_itt:*"});
  EXPECT_THAT(Dump(), Not(HasSubstr("throttled")));
}

}  // namespace
}  // namespace syncline::timeline
