// SPDX-License-Identifier: Apache-2.0
// The contract is Intel's text: "Create a CSV File with External Data" of the VTune user guide.
#include "export/vtune/vtune_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/files.h"
#include "export/testing/perfetto_query.h"
#include "timeline/testing/scenario.h"

namespace syncline::vtune {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

class Vtune : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/syncline-vtune-XXXXXX"};
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    out_ = name.data();
  }
  void TearDown() override { std::filesystem::remove_all(out_); }

  void Export(const std::string& golden, std::vector<Node> nodes) {
    auto scenario = timeline::testing::ParseScenario(export_testing::ReadCase(golden));
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    VtuneSink sink(out_, std::move(nodes));
    timeline::TimelineSink* const sinks[] = {&sink};
    ASSERT_TRUE(timeline::BuildTimeline(scenario->nodes, scenario->options, sinks).ok());
  }
  std::vector<std::string> Lines(const std::string& file) const {
    const auto text = ReadFile(out_ / file);
    EXPECT_TRUE(text.ok()) << text.status();
    return absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty());
  }

  std::filesystem::path out_;
};

Node RawNode(const std::string& name, const std::string& hostname, int64_t raw_zero_ns) {
  return {name, hostname, Node::Clock::kMonotonicRaw,
          [raw_zero_ns](TimelineTime time) { return raw_zero_ns + time.ns; }};
}

TEST_F(Vtune, HasAFilePerHostInItsOwnRawClock) {
  Export("two_nodes_nested", {RawNode("a", "host-a", 5000), RawNode("b", "host-b", 900)});
  EXPECT_THAT(Lines("a-hostname-host-a.csv"),
              ElementsAre("name,start_tsc.CLOCK_MONOTONIC_RAW,end_tsc,pid,tid",
                          "matmul,5020,5050,10,10", "step 1,5010,5100,10,10"));
  EXPECT_THAT(Lines("b-hostname-host-b.csv"), Contains("step 1,910,1000,10,10"));
}

TEST_F(Vtune, HasTasksWithAThreadAndFramesWithout) {
  Export("overlapped_frames_counters", {RawNode("a", "h", 0)});
  EXPECT_THAT(Lines("a-hostname-h.csv"),
              IsSupersetOf({"parse,70,80,10,10", "io,90,95,,", "read,10,30,,"}));
}

TEST_F(Vtune, HasFiveColumnsWhateverNamesHold) {
  VtuneSink sink(out_, {RawNode("a/..", "h", 0)});
  sink.OnText(1, "a,b \"c\"\n\td\xff");
  timeline::Track track;
  track.id = 0;
  track.kind = timeline::TrackKind::kThread;
  track.process.pid = 3;
  track.tid = 4;
  sink.OnTrack(track);
  timeline::Span span;
  span.name = 1;
  span.end = {9};
  sink.OnSpanEnd(span);
  span.name = timeline::kNoText;
  sink.OnSpanEnd(span);
  ASSERT_TRUE(sink.Finish().ok());
  EXPECT_THAT(Lines("a_..-hostname-h.csv"),
              ElementsAre(testing::_, "a;b 'c'  d\ufffd,0,9,3,4", "unnamed,0,9,3,4"));
}

TEST_F(Vtune, HasNoLanesOfTheWholeJob) {
  VtuneSink sink(out_, {RawNode("a", "h", 0)});
  sink.OnText(1, "x");
  const auto add = [&](timeline::TrackId id, std::string_view name) {
    timeline::Track track;
    track.id = id;
    track.kind = timeline::TrackKind::kAsync;
    track.name = name;
    sink.OnTrack(track);
    timeline::Span span;
    span.track = id;
    span.name = 1;
    span.end = {id};
    sink.OnSpanEnd(span);
  };
  add(0, "waits");
  add(1, "default_pg");
  add(2, "frames");
  add(3, "sends and receives");
  add(4, "user events");
  ASSERT_TRUE(sink.Finish().ok());
  EXPECT_THAT(Lines("a-hostname-h.csv"), ElementsAre(testing::_, "x,0,2,,", "x,0,4,,"));
}

TEST_F(Vtune, SaysWhatIsNotWhole) {
  Export("loss_between_frames", {RawNode("a", "h", 0)});
  EXPECT_THAT(Lines("a-hostname-h.csv"),
              ElementsAre(testing::_, "frames of it,1000,3000,,",
                          "frames of it (events were lost),4000,12000,,",
                          "frames of it,13000,14000,,", "work (events were lost),4500,15000,,",
                          "unnamed (events were lost),10000,16000,,"));
  Export("loss_recovery", {RawNode("b", "h", 0)});
  EXPECT_THAT(Lines("b-hostname-h.csv"), Contains("a (cut),14000,16000,10,10"));
}

TEST_F(Vtune, IsInUtcWhereTheRawClockIsUnknown) {
  Node node{"a", "h", Node::Clock::kUtc,
            [](TimelineTime time) { return 1'377'651'723'000'400'000 + time.ns; }};
  Export("two_nodes_nested", {node, RawNode("b", "h", 0)});
  const std::vector<std::string> lines = Lines("a-hostname-h.csv");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "name,start_tsc.UTC,end_tsc,pid,tid");
  EXPECT_EQ(lines[1], "matmul,2013-08-28 01:02:03.000400020,2013-08-28 01:02:03.000400050,10,10");
  EXPECT_EQ(UtcText(1'709'164'799'999'999'999), "2024-02-28 23:59:59.999999999");
  EXPECT_EQ(UtcText(1'709'164'800'000'000'000), "2024-02-29 00:00:00.000000000");
}

}  // namespace
}  // namespace syncline::vtune
