// SPDX-License-Identifier: Apache-2.0
// The windows of a timeline together are the timeline: every golden scenario, cut into some
// windows.
#include "timeline/window_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/files.h"
#include "timeline/overview_sink.h"
#include "timeline/testing/dump_sink.h"
#include "timeline/testing/scenario.h"

namespace syncline::timeline {
namespace {

using ::testing::IsEmpty;

// Adds up what was pushed, and lets DumpSink watch over the contract.
class SumSink final : public TimelineSink {
 public:
  using Sums = std::map<std::pair<TrackId, TextId>, int64_t>;

  void OnText(TextId id, std::string_view text) override { dump.OnText(id, text); }
  void OnTrack(const Track& track) override { dump.OnTrack(track); }
  void OnSpanBegin(const Span& span) override { dump.OnSpanBegin(span); }
  void OnSpanEnd(const Span& span) override {
    dump.OnSpanEnd(span);
    spans[{span.track, span.name}] += span.end.ns - span.begin.ns;
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
  }
  void OnInstant(const Instant& instant) override { ++instants[{instant.track, instant.name}]; }
  void OnCounter(const CounterValue& value) override {
    EXPECT_GE(value.time.ns, counted[value.track].ns);
    counted[value.track] = value.time;
  }
  void OnFlow(const Flow&) override {}
  void OnHole(const Hole& hole) override { holes[{hole.track, 0}] += hole.end.ns - hole.begin.ns; }
  void OnClockBound(const ClockBound&) override {}
  void OnClockEvent(const ClockEvent&) override {}
  absl::Status Finish() override { return dump.Finish(); }

  testing::DumpSink dump;
  Sums spans, instants, holes;
  std::map<TrackId, TimelineTime> counted;
  TimelineTime begin{kUnknownHi}, end{kUnknownLo};
};

void AddUp(const SumSink::Sums& more, SumSink::Sums* sums) {
  for (const auto& [key, value] : more) (*sums)[key] += value;
}

void Build(const std::string& text, TimelineSink* sink) {
  auto scenario = testing::ParseScenario(text);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  TimelineSink* const sinks[] = {sink};
  ASSERT_TRUE(BuildTimeline(scenario->nodes, scenario->options, sinks).ok());
}

std::vector<std::string> Scenarios() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/timeline")) {
    if (entry.path().extension() != ".txt") continue;
    const auto text = ReadFile(entry.path());
    EXPECT_TRUE(text.ok()) << text.status();
    texts.push_back(text->substr(0, text->find("--- timeline")));
  }
  return texts;
}

TEST(WindowSink, WindowsTogetherAreTheWhole) {
  size_t crossing = 0;
  for (const std::string& text : Scenarios()) {
    SumSink whole;
    Build(text, &whole);
    if (whole.spans.empty()) continue;
    for (const size_t count : {1, 2, 3, 7}) {
      std::vector<SumSink> windows(count);
      std::vector<TimelineSink*> sinks;
      for (SumSink& window : windows) sinks.push_back(&window);
      WindowSink cut({whole.begin, whole.end}, sinks);
      Build(text, &cut);
      SumSink::Sums spans, instants, holes;
      for (size_t i = 0; i < count; ++i) {
        EXPECT_THAT(windows[i].dump.breaches(), IsEmpty()) << text;
        AddUp(windows[i].spans, &spans);
        AddUp(windows[i].instants, &instants);
        AddUp(windows[i].holes, &holes);
        if (windows[i].spans.empty() || count == 1) continue;
        EXPECT_TRUE(i == 0 || windows[i].begin >= cut.BeginOf(i)) << text;
        EXPECT_TRUE(i + 1 == count || windows[i].end <= cut.BeginOf(i + 1)) << text;
        crossing += i > 0 && windows[i].begin == cut.BeginOf(i) ? 1 : 0;
      }
      EXPECT_EQ(spans, whole.spans) << count << " windows of\n" << text;
      EXPECT_EQ(instants, whole.instants) << text;
      EXPECT_EQ(holes, whole.holes) << text;
    }
  }
  EXPECT_GT(crossing, 10u);  // else nothing of it was tested
}

TEST(OverviewSink, ShowsWhatIsLongEnough) {
  for (const std::string& text : Scenarios()) {
    SumSink whole, all, long_ones;
    Build(text, &whole);
    OverviewSink everything(0, &all);
    Build(text, &everything);
    EXPECT_EQ(all.spans, whole.spans);
    OverviewSink overview(1'000, &long_ones);
    Build(text, &overview);
    EXPECT_THAT(long_ones.dump.breaches(), IsEmpty());
    EXPECT_EQ(long_ones.holes, whole.holes);
    for (const auto& [key, total_ns] : long_ones.spans) EXPECT_GE(total_ns, 1'000);
  }
}

}  // namespace
}  // namespace syncline::timeline
