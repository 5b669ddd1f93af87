// SPDX-License-Identifier: Apache-2.0
#include "export/chrome/chrome_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "export/testing/perfetto_query.h"
#include "timeline/testing/scenario.h"

namespace syncline::chrome {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

constexpr int64_t kUnixNs = 1'700'000'000'000'000'000;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::array<char, 32> name{"/tmp/syncline-chrome-XXXXXX"};
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name.data();
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// File name to contents.
using Files = std::map<std::string, std::string>;

Files FilesOf(const std::filesystem::path& directory) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const auto text = ReadFile(entry.path());
    EXPECT_TRUE(text.ok()) << text.status();
    files[entry.path().lexically_relative(directory).string()] = *text;
  }
  return files;
}

Files Export(const std::string& scenario_text) {
  auto scenario = timeline::testing::ParseScenario(scenario_text);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  const TemporaryDirectory out;
  ChromeSink sink({.directory = out.path(), .epoch_unix_ns = kUnixNs});
  timeline::TimelineSink* const sinks[] = {&sink};
  EXPECT_TRUE(timeline::BuildTimeline(scenario->nodes, scenario->options, sinks).ok());
  return FilesOf(out.path());
}

std::vector<Json> Events(const std::string& file, const std::string& phase) {
  std::vector<Json> events;
  const Json trace = Json::parse(file);
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

TEST(ChromeSink, HasAFilePerRankThatToolsRecognize) {
  const Files files = Export(export_testing::ReadCase("two_nodes_nested"));
  EXPECT_THAT(files, UnorderedElementsAre(Pair("rank-0.json", HasSubstr("step 1")),
                                          Pair("rank-1.json", HasSubstr("step 1")),
                                          Pair("nodes/a.json", HasSubstr("node a")),
                                          Pair("nodes/b.json", HasSubstr("node b"))));
  const Json trace = Json::parse(files.at("rank-1.json"));
  EXPECT_EQ(trace["distributedInfo"]["rank"], 1);
  EXPECT_EQ(trace["baseTimeNanoseconds"].get<int64_t>(), kUnixNs - kOriginNs);
  EXPECT_FALSE(Json::parse(files.at("nodes/a.json")).contains("distributedInfo"));
  // The digits themselves: nanoseconds are kept, and not as a float.
  EXPECT_THAT(files.at("rank-0.json"),
              HasSubstr(R"("pid":10,"tid":10,"ts":3600000000.010,"dur":0.090)"));
  EXPECT_EQ(files, Export(export_testing::ReadCase("two_nodes_nested")));
}

TEST(ChromeSink, WritesStrictJsonOfEveryScenario) {
  size_t spans = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/timeline")) {
    if (entry.path().extension() != ".txt") continue;
    const std::string text = export_testing::ReadCase(entry.path().stem().string());
    for (const auto& [name, contents] : Export(text)) {
      ASSERT_TRUE(Json::accept(contents)) << entry.path() << " " << name;
      spans += Events(contents, "X").size();
      for (const Json& event : Events(contents, "X")) {
        ASSERT_GE(event["ts"].get<double>(), 0) << event;
        ASSERT_GE(event["dur"].get<double>(), 0) << event;
        for (const char* key : {"pid", "tid", "cat", "name", "args"}) {
          ASSERT_TRUE(event.contains(key)) << event;
        }
      }
    }
  }
  EXPECT_GT(spans, 50u);
}

// A sink without a builder: what no scenario has.
class Pushed : public ::testing::Test {
 protected:
  Pushed() : sink_({.directory = out_.path()}) {
    sink_.OnText(1, "a \"quoted\"\xff name");
    AddTrack(0, timeline::kNoTrack, timeline::TrackKind::kNode, "n");
    for (uint32_t rank = 0; rank < 2; ++rank) {
      AddTrack(1 + 2 * rank, 0, timeline::TrackKind::kProcess, absl::StrCat("p", rank),
               {{"rank", absl::StrCat(rank)}, {"world size", "2"}});
      AddTrack(2 + 2 * rank, 1 + 2 * rank, timeline::TrackKind::kThread, "main");
    }
  }
  void AddTrack(uint32_t id, uint32_t parent, timeline::TrackKind kind, std::string name,
                std::vector<std::pair<std::string, std::string>> facts = {}) {
    timeline::Track track;
    track.id = id;
    track.parent = parent;
    track.kind = kind;
    track.name = std::move(name);
    track.facts = std::move(facts);
    if (kind != timeline::TrackKind::kNode) track.process.pid = 7;
    if (kind == timeline::TrackKind::kThread) track.tid = 7;
    sink_.OnTrack(track);
  }
  void Push(uint32_t track, int64_t begin_ns, int64_t end_ns) {
    timeline::Span span;
    span.track = track;
    span.name = 1;
    span.begin = {begin_ns};
    span.end = {end_ns};
    if (begin_ns >= 0) open_.push_back(span);
    sink_.OnSpanBegin(span);
  }
  void PopAll() {
    for (; !open_.empty(); open_.pop_back()) sink_.OnSpanEnd(open_.back());
  }
  Files Finish() {
    EXPECT_TRUE(sink_.Finish().ok());
    return FilesOf(out_.path());
  }

  TemporaryDirectory out_;
  ChromeSink sink_;
  std::vector<timeline::Span> open_;
};

TEST_F(Pushed, WhatConcernsAllNodesHasAPlaceToo) {
  AddTrack(5, timeline::kNoTrack, timeline::TrackKind::kFleet, "collectives");
  AddTrack(6, 5, timeline::TrackKind::kAsync, "ranks 0-1");
  Push(6, 10, 20);
  PopAll();
  EXPECT_FALSE(Finish().empty());
}

TEST_F(Pushed, PutsWhatBeginsTogetherBehindItsParent) {
  Push(2, 100, 200);
  Push(2, 100, 180);
  Push(2, 100, 150);
  PopAll();
  Push(2, 300, 310);
  PopAll();
  std::vector<double> durations;
  const Files files = Finish();
  for (const Json& event : Events(files.at("rank-0.json"), "X")) durations.push_back(event["dur"]);
  EXPECT_THAT(durations, ElementsAre(0.100, 0.080, 0.050, 0.010));
  EXPECT_THAT(files.at("rank-0.json"), HasSubstr("a \\\"quoted\\\"\xef\xbf\xbd name"));
  EXPECT_EQ(Json::parse(files.at("rank-0.json"))["distributedInfo"]["world_size"], 2);
}

TEST_F(Pushed, ConnectsWhatIsInOneFileAndNamesWhatIsNot) {
  sink_.OnFlow({.id = 5, .from = 2, .to = 4, .sent = {1000}, .received = {2500}, .name = 1});
  sink_.OnFlow({.id = 6, .from = 2, .to = 2, .sent = {3000}, .received = {4000}, .name = 1});
  const Files files = Finish();
  EXPECT_EQ(Events(files.at("rank-0.json"), "s").size(), 1u);
  EXPECT_EQ(Events(files.at("rank-0.json"), "f").size(), 1u);
  const std::vector<Json> received = Events(files.at("rank-1.json"), "X");
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0]["args"]["from"], "p0 · main");
  EXPECT_THAT(files.at("rank-1.json"), HasSubstr("\"sent ts\":3600000001.000"));
}

TEST_F(Pushed, StatesOfAThreadAreSpansWhereItDidNotSleep) {
  AddTrack(5, 1, timeline::TrackKind::kGroup, "scheduling");
  AddTrack(6, 5, timeline::TrackKind::kLane, "main 7");
  sink_.OnText(2, "CPU 3");
  timeline::ThreadState state;
  state.track = 6;
  state.name = 2;
  state.begin = {100};
  state.end = {150};
  sink_.OnThreadState(state);
  state.state = timeline::ThreadState::State::kAsleep;
  state.begin = {150};
  state.end = {200};
  sink_.OnThreadState(state);
  const Files files = Finish();
  const std::vector<Json> spans = Events(files.at("rank-0.json"), "X");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0]["name"], "CPU 3");
  EXPECT_EQ(spans[0]["dur"], 0.050);
  EXPECT_THAT(files.at("rank-0.json"), HasSubstr("\"scheduling · main 7\""));
}

TEST_F(Pushed, SaysOfTheNodeInEveryFileOfIt) {
  timeline::Hole hole;
  hole.track = 0;
  hole.begin = {10};
  hole.end = {20};
  hole.loss.reason = LossReason::kDiscardedEvents;
  hole.loss.count = 3;
  sink_.OnHole(hole);
  sink_.OnClockBound({0, {0}, 55});
  for (const auto& [name, contents] : Finish()) {
    const std::vector<Json> holes = Events(contents, "X");
    ASSERT_EQ(holes.size(), 1u) << name;
    EXPECT_EQ(holes[0]["args"]["count"], 3) << name;
    ASSERT_EQ(Events(contents, "C").size(), 1u) << name;
    EXPECT_EQ(Events(contents, "C")[0]["args"]["ns"], 55) << name;
  }
}

TEST_F(Pushed, ReportsThatItCannotWrite) {
  std::filesystem::permissions(out_.path(), std::filesystem::perms::none);
  std::filesystem::remove(out_.path());
  ASSERT_TRUE(WriteFileAtomically(out_.path(), "in the way").ok());
  EXPECT_FALSE(sink_.Finish().ok());
}

using PerfettoQuery = export_testing::PerfettoQuery;

TEST_F(PerfettoQuery, IsReadAsItWasMeant) {
  const Files files = Export(export_testing::ReadCase("overlapped_frames_counters"));
  const std::vector<std::string> tables =
      Query(files.at("nodes/a.json"),
            {"select name, value from stats where severity in ('error', 'data_loss') and value > 0",
             "select s.name, s.ts - 3600000000000, s.dur from slice s where s.category = 'io' and "
             "s.dur > 0 "
             "order by s.ts, s.name",
             "select t.name, c.value from counter c join track t on c.track_id = t.id "
             "where t.name <> 'clock bound' order by c.ts",
             "select a.flat_key, a.display_value from slice s join args a using (arg_set_id) "
             "where s.name = 'parse' order by a.key"});
  ASSERT_GE(tables.size(), 4u);
  EXPECT_THAT(tables[0], EndsWith("name\tvalue\n"));
  EXPECT_THAT(tables[1],
              EndsWith("read\t1\t101\nread\t10\t20\nread\t20\t30\nread\t40\t20\nparse\t70\t10\n"
                       "io\t81\t8\nio\t90\t5\n"));
  EXPECT_THAT(tables[2], EndsWith("io · bytes value\t-3\nio · bytes value\t2.5\n"));
  EXPECT_THAT(tables[3], EndsWith("args.shape\t1x1\nargs.shape\t2x3\n"));
}

}  // namespace
}  // namespace syncline::chrome
