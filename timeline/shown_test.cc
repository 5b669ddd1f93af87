// SPDX-License-Identifier: Apache-2.0
// Of a timeline of which only an interval is shown, what does not meet it is not built
// (BuildOptions::shown). No sink may notice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "timeline/cut_sink.h"
#include "timeline/testing/random_job.h"
#include "timeline/testing/scenario.h"

namespace syncline::timeline {
namespace {

// Every call with everything that it was given, numbers of texts and tracks too.
class LogSink final : public TimelineSink {
 public:
  void OnText(TextId id, std::string_view text) override {
    Line("text ", id, " ", std::string(text));
  }
  void OnTrack(const Track& track) override {
    Line("track ", track.id, " ", track.parent, " ", track.name);
  }
  void OnSpanBegin(const Span& span) override {
    Line("begin ", Head(span), " ", span.late, Said(span.arguments));
    ++spans;
    clipped += span.clipped_begin ? 1 : 0;
  }
  void OnSpanEnd(const Span& span) override {
    backwards += span.end < span.begin ? 1 : 0;
    Line("end ", Head(span), " ", span.end.ns, " ", span.node_end.ns, " ", span.clipped_end,
         span.suspect, span.late, " ", span.self_ns, Said(span.arguments));
  }
  void OnInstant(const Instant& instant) override {
    Line("instant ", instant.track, " ", instant.name, " ", instant.category, " ", instant.time.ns,
         Said(instant.arguments));
  }
  void OnCounter(const CounterValue& value) override {
    Line("counter ", value.track, " ", value.time.ns, " ", value.value);
  }
  void OnFlow(const Flow& flow) override {
    Line("flow ", flow.id, " ", flow.from, " ", flow.to, " ", flow.sent.ns, " ", flow.received.ns,
         " ", flow.name);
    ++flows;
  }
  void OnHole(const Hole& hole) override {
    Line("hole ", hole.track, " ", hole.begin.ns, " ", hole.end.ns, " ", hole.loss.source, " ",
         hole.loss.detail, " ", hole.loss.count.value_or(0));
  }
  void OnClockBound(const ClockBound& bound) override {
    Line("bound ", bound.node, " ", bound.time.ns, " ", bound.bound_ns.value_or(-1));
  }
  void OnClockEvent(const ClockEvent& event) override { Line("clock ", event.name); }
  absl::Status Finish() override { return absl::OkStatus(); }

  std::vector<std::string> lines;
  int spans = 0;
  int clipped = 0;
  int flows = 0;
  int backwards = 0;

 private:
  template <class... Parts>
  void Line(const Parts&... parts) {
    lines.push_back(absl::StrCat(parts...));
  }
  static std::string Head(const Span& span) {
    return absl::StrCat(span.track, " ", span.name, " ", span.category, " ", span.depth, " ",
                        span.clipped_begin, " ", span.begin.ns, " ", span.node_begin.ns);
  }
  static std::string Said(const std::vector<Argument>& arguments) {
    std::string text;
    for (const Argument& argument : arguments) {
      const bool is_text = argument.kind == Argument::Kind::kText;
      absl::StrAppend(&text, " ", argument.key, "=", is_text ? argument.text : argument.u);
    }
    return text;
  }
};

struct Built {
  LogSink whole;   // of what is shown
  LogSink part;    // of the middle of it
  LogSink pushed;  // as the builder pushes it
  std::string result;
};

std::string Described(const BuiltTimeline& built) {
  std::string text;
  for (const NodeResult& node : built.nodes) {
    absl::StrAppend(&text, node.name, " events=", node.events, " recovered=", node.recovered,
                    " seen=", node.seen->begin_ns, "-", node.seen->end_ns, "\n");
    for (const ProcessResult& process : node.processes) {
      absl::StrAppend(&text, process.name, " found=", process.found_events,
                      " threads=", process.threads, process.end_known ? " ended" : "", "\n");
      for (const ClockInterval& covered : process.coverage) {
        absl::StrAppend(&text, "covered ", covered.begin_ns, " ", covered.end_ns, "\n");
      }
    }
    for (const LossTotal& loss : node.losses) {
      absl::StrAppend(&text, "loss ", loss.source, " ", loss.intervals, " ", loss.count.value_or(0),
                      " ", loss.begin.ns, " ", loss.end.ns, "\n");
    }
    for (const MessageStream& stream : node.message_streams) {
      absl::StrAppend(&text, "messages ", stream.from, " ", stream.messages.size(), " ",
                      stream.matched_bytes, "\n");
    }
  }
  for (const Collective& collective : built.collectives.collectives) {
    absl::StrAppend(&text, "collective ", collective.number, " ", collective.members.size(), "\n");
  }
  absl::StrAppend(&text, "transfers ", built.transfers.transfers.size(), " ",
                  built.transfers.unmatched_sends, " ", built.transfers.undecided, "\n");
  return text;
}

void Build(const std::string& text, Interval cut, bool says_what_is_shown, Built* built) {
  auto scenario = testing::ParseScenario(text);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  // What lies at its place is read in a way of its own.
  if (says_what_is_shown) {
    for (testing::FakeTrace& trace : scenario->traces) trace.GivePlaces();
  }
  scenario->options.cut = cut;
  if (says_what_is_shown) scenario->options.shown = cut;
  const int64_t quarter_ns = (cut.end.ns - cut.begin.ns) / 4;
  const Interval middle{{cut.begin.ns + quarter_ns}, {cut.end.ns - quarter_ns}};
  CutSink whole(cut, &built->whole);
  CutSink part(middle, &built->part);
  TimelineSink* const sinks[] = {&whole, &part, &built->pushed};
  const auto result = BuildTimeline(scenario->nodes, scenario->options, sinks);
  ASSERT_TRUE(result.ok()) << result.status();
  built->result = Described(*result);
}

// What became of a comparison, so that a test can say whether it tested something.
struct Met {
  int pushed = 0;
  int pushed_of_all = 0;
  int clipped = 0;
  int flows = 0;
  std::string result;
};

Met Compare(const std::string& text, Interval cut) {
  Built all;
  Built shown;
  Build(text, cut, /*says_what_is_shown=*/false, &all);
  Build(text, cut, /*says_what_is_shown=*/true, &shown);
  EXPECT_EQ(shown.whole.lines, all.whole.lines);
  EXPECT_EQ(shown.part.lines, all.part.lines);
  EXPECT_EQ(all.whole.backwards + all.part.backwards, 0);
  EXPECT_EQ(shown.result, all.result);
  return {shown.pushed.spans, all.pushed.spans, all.whole.clipped, all.whole.flows, all.result};
}

TEST(ShownTest, NoSinkNoticesWhatIsNotBuilt) {
  constexpr int64_t kLength = 100'000;
  Met sum;
  int recovered = 0;
  int collectives = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = testing::RandomJob({.seed = seed,
                                                 .length_ns = kLength,
                                                 .lost_per_mille = seed % 3 == 0 ? 0 : 5,
                                                 .loss_is_declared = seed % 3 == 1});
    std::mt19937 random(seed);
    const auto dice = [&](int64_t most) {
      return std::uniform_int_distribution<int64_t>(0, most)(random);
    };
    const int64_t from_ns = dice(kLength);
    const Met met = Compare(text, {{from_ns}, {from_ns + 1 + dice(10'000)}});
    sum.pushed += met.pushed;
    sum.pushed_of_all += met.pushed_of_all;
    sum.clipped += met.clipped;
    sum.flows += met.flows;
    recovered += met.result.find(" recovered=0 ") == std::string::npos ? 1 : 0;
    collectives += met.result.find(" 2\ntransfers ") != std::string::npos ? 1 : 0;
  }
  // What it is about has happened.
  EXPECT_LT(4 * sum.pushed, sum.pushed_of_all);
  EXPECT_GT(sum.clipped, 100);
  EXPECT_GT(sum.flows, 20);
  EXPECT_GT(recovered, 20);
  EXPECT_GT(collectives, 20);
}

TEST(ShownTest, NorInRecordingsOfWhichSomethingElseIsTested) {
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/timeline")) {
    if (entry.path().extension() != ".txt") continue;
    SCOPED_TRACE(entry.path().string());
    const auto text = ReadFile(entry.path());
    ASSERT_TRUE(text.ok()) << text.status();
    const std::string scenario = text->substr(0, text->find("--- timeline\n"));
    for (int64_t from_ns = 0; from_ns < 20'000; from_ns += 700) {
      for (const int64_t length_ns : {1, 500, 3000}) {
        Compare(scenario, {{from_ns}, {from_ns + length_ns}});
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace syncline::timeline
