// SPDX-License-Identifier: Apache-2.0
// A timeline of some events only (BuildOptions::events) is the whole one, less what was not asked
// for; and it lacks nothing of what was lost, and of who covered what.
#include "timeline/shown_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "timeline/testing/dump_sink.h"
#include "timeline/testing/random_job.h"
#include "timeline/testing/scenario.h"

namespace syncline::timeline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Lines = std::vector<std::string>;

struct Built {
  Lines lines;
  std::string losses;  // and coverage, and what processes counted
  std::string matched;
  uint64_t events = 0;
};

Built Build(const std::string& text, std::vector<std::string> patterns, bool with_places = false) {
  Built built;
  auto scenario = testing::ParseScenario(text);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (with_places) {
    for (testing::FakeTrace& trace : scenario->traces) trace.GivePlaces();
  }
  scenario->options.events = EventPatterns(std::move(patterns));
  testing::DumpSink sink;
  TimelineSink* const sinks[] = {&sink};
  const auto result = BuildTimeline(scenario->nodes, scenario->options, sinks);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(sink.breaches(), IsEmpty());
  built.lines = absl::StrSplit(sink.text(), '\n', absl::SkipEmpty());
  for (const NodeResult& node : result->nodes) {
    built.events += node.events;
    for (const LossTotal& loss : node.losses) {
      absl::StrAppend(&built.losses, loss.source, " ", loss.intervals, " ", loss.count.value_or(0),
                      " ", loss.begin.ns, " ", loss.end.ns, "\n");
    }
    for (const ProcessResult& process : node.processes) {
      absl::StrAppend(&built.losses, process.name, " found=", process.found_events, "\n");
      for (const ClockInterval& covered : process.coverage) {
        absl::StrAppend(&built.losses, covered.begin_ns, " ", covered.end_ns, "\n");
      }
    }
    for (const MessageStream& stream : node.message_streams) {
      absl::StrAppend(&built.matched, "messages ", stream.messages.size(), "\n");
    }
  }
  return built;
}

// What a line of the dump shows.
std::string Thing(const std::string& line) {
  if (absl::StartsWith(line, "track ") || absl::StartsWith(line, "bound ")) return "track";
  if (absl::StartsWith(line, "hole ")) return "hole";
  if (absl::StartsWith(line, "counter ")) return "counter";
  if (absl::StartsWith(line, "flow ")) return "flow";
  if (absl::StrContains(line, " self=")) return "task";
  for (const char* group : {"overlapped tasks", "frames", "user events", "waits",
                            "sends and receives", "collectives / "}) {
    if (absl::StrContains(line, group)) return group;
  }
  for (const char* instant : {"metadata", "relation", "object"}) {
    if (absl::StrContains(line, absl::StrCat(" ", instant))) return instant;
  }
  return "marker";
}

Lines Only(const Lines& lines, const std::set<std::string>& things) {
  Lines only;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(only),
               [&](const std::string& line) { return things.contains(Thing(line)); });
  return only;
}

const std::set<std::string> kThings = {
    "counter",  "task",  "overlapped tasks",   "frames",         "user events", "metadata",
    "relation", "waits", "sends and receives", "collectives / ", "object",      "marker"};

struct Choice {
  std::vector<std::string> patterns;
  std::set<std::string> shown;
};

const Choice kChoices[] = {
    {{"syncline_itt:task_end", "syncline_itt:metadata_text"}, {"task", "metadata"}},
    {{"syncline_itt:task_begin_fn", "*:metadata_i64"}, {"task", "metadata"}},
    {{"syncline_itt:task_begin_overlapped"}, {"overlapped tasks"}},
    {{"*:counter_f64"}, {"counter"}},
    {{"syncline_itt:frame_*"}, {"frames"}},
    {{"*event_start"}, {"user events"}},
    {{"*:sync", "*:marker"}, {"waits", "object", "marker"}},
    {{"syncline_itt:relation"}, {"relation"}},
    {{"syncline_torch:transfer_end"}, {"sends and receives", "collectives / "}},
    {{"syncline:*"}, {}},
    {{"*"}, kThings},
};

// DumpSink looks at it. Much is lost of these jobs, and the losses are known early, late or never.
TEST(ShownEventsTest, SpansNestWhateverIsLost) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Build(testing::RandomJob({.seed = seed,
                              .length_ns = 50'000,
                              .lost_per_mille = seed % 3 == 0 ? 0 : static_cast<int>(seed % 50),
                              .loss_is_declared = seed % 3 == 1}),
          {});
  }
}

TEST(ShownEventsTest, WhatIsShownIsAsInTheWhole) {
  std::set<std::string> met;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const std::string text = testing::RandomJob({.seed = seed,
                                                 .length_ns = 50'000,
                                                 .lost_per_mille = seed % 3 == 0 ? 0 : 5,
                                                 .loss_is_declared = seed % 3 == 1});
    const Built whole = Build(text, {});
    for (const std::string& line : whole.lines) met.insert(Thing(line));
    for (const Choice& choice : kChoices) {
      SCOPED_TRACE(absl::StrCat(seed, " ", choice.patterns[0]));
      for (const bool with_places : {false, true}) {
        const Built some = Build(text, choice.patterns, with_places);
        EXPECT_EQ(Only(some.lines, kThings), Only(whole.lines, choice.shown));
        EXPECT_EQ(Only(some.lines, {"hole"}), Only(whole.lines, {"hole"}));
        EXPECT_EQ(some.losses, whole.losses);
        if (choice.patterns[0] != "*") {
          EXPECT_LT(some.events, whole.events);
        }
      }
    }
    EXPECT_EQ(Build(text, {"syncline_net:receive"}).matched, whole.matched);
    EXPECT_THAT(whole.matched, HasSubstr("messages "));
    EXPECT_EQ(Build(text, {"syncline:on"}).matched, "");
  }
  EXPECT_TRUE(std::includes(met.begin(), met.end(), kThings.begin(), kThings.end()));
  EXPECT_TRUE(met.contains("hole"));
}

// Arrows stand in neither list above: their numbers, and the lanes that they lead to, depend on
// what else is shown.
TEST(ShownEventsTest, ArrowsOfWhatIsNotShownAreNotDrawn) {
  const std::string text = testing::RandomJob({.seed = 1, .length_ns = 50'000});
  const size_t all = Only(Build(text, {}).lines, {"flow"}).size();
  const size_t messages = Only(Build(text, {"syncline_net:*"}).lines, {"flow"}).size();
  const size_t transfers = Only(Build(text, {"syncline_torch:*"}).lines, {"flow"}).size();
  const size_t relations = Only(Build(text, {"syncline_itt:*"}).lines, {"flow"}).size();
  EXPECT_GT(messages, 0u);
  EXPECT_GT(transfers, 0u);
  EXPECT_GT(relations, 0u);
  EXPECT_EQ(messages + transfers + relations, all);
  EXPECT_THAT(Only(Build(text, {"*:relation"}).lines, {"flow"}), IsEmpty());
  EXPECT_THAT(Only(Build(text, {"*:task_begin*"}).lines, {"flow"}), IsEmpty());
}

TEST(ShownEventsTest, OtherProvidersStandForThemselves) {
  const auto text = ReadFile("tests/golden/timeline/foreign_provider.txt");
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string scenario = text->substr(0, text->find("--- timeline\n"));
  const auto instants = [&](std::vector<std::string> patterns) {
    Lines instants;
    for (const std::string& line : Build(scenario, std::move(patterns)).lines) {
      if (absl::StartsWith(line, "instant ")) instants.push_back(line);
    }
    return instants;
  };
  const Lines all = instants({});
  std::set<std::string> names;
  for (const std::string& line : all) {
    names.insert(std::vector<std::string>(absl::StrSplit(line, ' '))[2]);
  }
  ASSERT_GT(names.size(), 1u);
  for (const std::string& name : names) {
    Lines expected;
    std::copy_if(
        all.begin(), all.end(), std::back_inserter(expected),
        [&](const std::string& line) { return absl::StrContains(line, " " + name + " "); });
    EXPECT_EQ(instants({name}), expected);
    EXPECT_THAT(instants({"syncline_itt:*"}), Not(::testing::Contains(HasSubstr(name))));
  }
}

}  // namespace
}  // namespace syncline::timeline
