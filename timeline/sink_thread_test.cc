// SPDX-License-Identifier: Apache-2.0
// Sinks on a thread of their own are told what they would be told on the builder's.
#include "timeline/sink_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/files.h"
#include "timeline/testing/dump_sink.h"
#include "timeline/testing/random_job.h"
#include "timeline/testing/scenario.h"

namespace syncline::timeline {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// What is pushed, and by which thread.
class WatchedSink final : public TimelineSink {
 public:
  void OnText(TextId id, std::string_view text) override { dump.OnText(id, text); }
  void OnTrack(const Track& track) override {
    pushing = std::this_thread::get_id();
    dump.OnTrack(track);
  }
  void OnSpanBegin(const Span& span) override { dump.OnSpanBegin(span); }
  void OnSpanEnd(const Span& span) override { dump.OnSpanEnd(span); }
  void OnInstant(const Instant& instant) override { dump.OnInstant(instant); }
  void OnCounter(const CounterValue& value) override { dump.OnCounter(value); }
  void OnFlow(const Flow& flow) override { dump.OnFlow(flow); }
  void OnHole(const Hole& hole) override { dump.OnHole(hole); }
  void OnClockBound(const ClockBound& bound) override { dump.OnClockBound(bound); }
  void OnClockEvent(const ClockEvent& event) override { dump.OnClockEvent(event); }
  absl::Status Finish() override { return dump.Finish(); }

  testing::DumpSink dump;
  std::thread::id pushing;
};

void ExpectTheSame(const std::string& text, const std::string& what) {
  std::string alone;
  for (const unsigned threads : {1, 2}) {
    auto scenario = testing::ParseScenario(text);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    scenario->options.threads = threads;
    WatchedSink first, second;
    TimelineSink* const sinks[] = {&first, &second};
    const auto built = BuildTimeline(scenario->nodes, scenario->options, sinks);
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_THAT(first.dump.breaches(), IsEmpty()) << what;
    EXPECT_EQ(first.pushing == std::this_thread::get_id(), threads == 1) << what;
    if (threads == 1) alone = first.dump.text();
    EXPECT_EQ(first.dump.text(), alone) << what;
    EXPECT_EQ(second.dump.text(), alone) << what;
  }
}

TEST(SinkThreadTest, EveryGoldenScenarioIsTheSame) {
  int scenarios = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/timeline")) {
    if (entry.path().extension() != ".txt") continue;
    ++scenarios;
    const auto text = ReadFile(entry.path());
    ASSERT_TRUE(text.ok()) << text.status();
    ExpectTheSame(text->substr(0, text->find("--- timeline")), entry.path().filename().string());
  }
  EXPECT_GT(scenarios, 5);
}

TEST(SinkThreadTest, ALongJobIsTheSame) {
  ExpectTheSame(testing::RandomJob({.seed = 3, .length_ns = 2'000'000, .lost_per_mille = 2}),
                "random job");
}

// Each takes its time, and fails in the end.
class SlowSink final : public SpanSink {
 public:
  void OnText(TextId, std::string_view text) override {
    for (int turn = 0; texts.size() % 1000 == 0 && turn < 1000; ++turn) std::this_thread::yield();
    texts.emplace_back(text);
  }
  void OnTrack(const Track&) override {}
  void OnSpanEnd(const Span&) override {}
  absl::Status Finish() override {
    ++finished;
    return absl::ResourceExhaustedError("the disk is full");
  }

  std::vector<std::string> texts;
  int finished = 0;
};

TEST(SinkThreadTest, TheBuilderWaitsForSlowSinksAndHearsTheirErrors) {
  SlowSink sink;
  SinkThread thread({&sink});
  constexpr TextId kTexts = 20'000;
  for (TextId id = 1; id <= kTexts; ++id) thread.OnText(id, std::to_string(id));
  EXPECT_EQ(thread.Finish().message(), "the disk is full");
  ASSERT_THAT(sink.texts, SizeIs(kTexts));
  for (TextId id = 1; id <= kTexts; ++id) ASSERT_EQ(sink.texts[id - 1], std::to_string(id));
  EXPECT_EQ(sink.finished, 1);
}

TEST(SinkThreadTest, AfterDrainTheSinksHaveAllThatWasPushed) {
  SlowSink sink;
  SinkThread thread({&sink});
  size_t pushed = 0;
  for (const size_t more : {0, 1, 511, 512, 5'000}) {
    for (size_t i = 0; i < more; ++i) thread.OnText(static_cast<TextId>(++pushed), "text");
    thread.Drain();
    EXPECT_THAT(sink.texts, SizeIs(pushed));
  }
  EXPECT_EQ(sink.finished, 0);
}

TEST(SinkThreadTest, WhatIsGivenUpIsNotFinished) {
  SlowSink sink;
  {
    SinkThread thread({&sink});
    for (TextId id = 1; id <= 5000; ++id) thread.OnText(id, "text");
  }
  EXPECT_THAT(sink.texts, SizeIs(5000));
  EXPECT_EQ(sink.finished, 0);
}

}  // namespace
}  // namespace syncline::timeline
