// SPDX-License-Identifier: Apache-2.0
#include "export/report/clock_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/report/svg_parts.h"

namespace syncline::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kAhead = 500 * kSecond;

// b is 500 s ahead of a and gains 10 ppm; its clock jumps by `step_ns` after five seconds.
clocksync::BuildResult TwoClocks(int64_t step_ns) {
  clocksync::BuildInput input{.nodes = {"a<1>", "b"}};
  clocksync::Edge edge{.local = "a<1>", .remote = "b"};
  for (int64_t t = 0; t < 10 * kSecond; t += kSecond / 10) {
    const int64_t ahead = kAhead + t / 100'000 + (t >= 5 * kSecond ? step_ns : 0);
    edge.samples.push_back({100 * kSecond + t, 100 * kSecond + t + ahead + 300,
                            100 * kSecond + t + ahead + 400, 100 * kSecond + t + 700,
                            clocksync::StampSource::kKernel});
  }
  input.edges.push_back(std::move(edge));
  return clocksync::BuildModel(
             input, {.reference = "a<1>", .zero_reference_raw_ns = 101 * kSecond, .audit = true})
      .value();
}

TEST(ClockPlotTest, TextShowsCorridorSamplesAndEstimate) {
  const clocksync::BuildResult built = TwoClocks(0);
  const std::string plot = ClockPlotText({.edges = built.edges, .events = built.events}, 80);
  EXPECT_THAT(plot, HasSubstr("a<1> \u2192 b"));
  for (const char* mark : {"\u25bd", "\u25b3", "\u2591", "\u2501", "-1 s", "+8.9 s"}) {
    EXPECT_THAT(plot, HasSubstr(mark));
  }
  // The drift is taken away: nothing but nanoseconds is left.
  EXPECT_THAT(plot, HasSubstr(" ns"));
  EXPECT_THAT(plot, Not(HasSubstr("µs ")));
}

TEST(ClockPlotTest, SvgIsWholeAndEscapesNames) {
  const clocksync::BuildResult built = TwoClocks(0);
  const ClockPlotInput input{.title = "Clocks & all", .edges = built.edges, .events = built.events};
  const std::string svg = ClockPlotSvg(input);
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("Clocks &amp; all"));
  EXPECT_THAT(svg, HasSubstr("a&lt;1&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(svg, ClockPlotSvg(input));
}

TEST(ClockPlotTest, AStepIsMarked) {
  const clocksync::BuildResult built = TwoClocks(2'000'000);
  const std::string svg = ClockPlotSvg({.edges = built.edges, .events = built.events});
  EXPECT_THAT(svg, HasSubstr(">step</text>"));
  EXPECT_THAT(svg, HasSubstr(", at least "));
}

TEST(ClockPlotTest, EdgesBeyondTheLimitAreCounted) {
  const clocksync::BuildResult built = TwoClocks(0);
  std::vector<clocksync::EdgeQuality> edges(5, built.edges[0]);
  const ClockPlotInput input{.edges = edges, .edges_max = 2};
  EXPECT_THAT(ClockPlotText(input, 80), HasSubstr("edges not drawn: 3\n"));
  EXPECT_THAT(ClockPlotSvg(input), HasSubstr("edges not drawn: 3"));
  EXPECT_EQ(ClockPlotText({}, 80), "");
  EXPECT_THAT(ClockPlotSvg({}), HasSubstr("No edge has samples"));
}

TEST(EscapeXmlTest, WhateverTheBytesAreTheMarkupIsSound) {
  EXPECT_EQ(EscapeXml("a<b>&\"c\" \n é"), "a&lt;b&gt;&amp;&quot;c&quot;   é");
  EXPECT_EQ(EscapeXml("bad\xff\xc3"), "bad\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace syncline::report
