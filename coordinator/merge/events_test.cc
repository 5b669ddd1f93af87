// SPDX-License-Identifier: Apache-2.0
// `syncline events`, and `--events` of it and of merge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/event_filter.h"
#include "common/files.h"
#include "coordinator/merge/choose_events.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/test_recording.h"
#include "ctf/generator.h"

namespace syncline::merge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class EventsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/syncline-events-XXXXXX"};
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name.data();
    testing::WriteJob("job", -6'000'000, Run());
    ctf::GeneratorOptions options;
    options.streams = 3;
    options.events_per_stream = 4000;
    options.packet_bytes = 4096;
    ASSERT_TRUE(ctf::GenerateTrace(Trace(), options).ok());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Run() const { return root_ / "run"; }
  std::string Trace() const { return root_ / "trace"; }

  static std::string Print(EventsOptions options) {
    std::ostringstream out;
    const auto printed = PrintEvents(options, &out);
    EXPECT_TRUE(printed.ok()) << printed.status();
    return out.str();
  }
  static EventsOptions Of(const std::string& input, EventFormat format = EventFormat::kText) {
    EventsOptions options;
    options.input.inputs = {input};
    options.format = format;
    return options;
  }
  static MergeOptions MergeOf(const std::string& input, std::vector<std::string> events) {
    MergeOptions options;
    options.input.inputs = {input};
    options.events = std::move(events);
    return options;
  }

  std::filesystem::path root_;
};

// The name of a line's event.
std::string NameIn(const std::string& line, EventFormat format) {
  if (format == EventFormat::kJsonLines) return nlohmann::json::parse(line)["event"];
  const size_t colon = line.find(": {");  // the names of these nodes and streams hold none
  const std::string head = line.substr(0, colon == std::string::npos ? line.size() - 1 : colon);
  return head.substr(head.rfind(' ') + 1);
}

TEST_F(EventsTest, FilteringThenReadingIsReadingThenFiltering) {
  struct Case {
    std::string input;
    std::vector<std::vector<std::string>> patterns;
  };
  // The last one is real, with TensorFlow's profiles.
  const Case cases[] = {{Run(), {{"syncline:*"}, {"*:task_begin", "syncline:o*"}, {"*"}}},
                        {Trace(), {{"bench:named"}, {"bench:*n*d"}, {"bench:begin", "bench:end"}}},
                        {"tests/golden/tensorflow_profile/run",
                         {{"syncline_itt:*"}, {"MatMul*", "syncline:thread"}, {"*MatMul"}}}};
  for (const Case& one : cases) {
    for (const EventFormat format : {EventFormat::kText, EventFormat::kJsonLines}) {
      EventsOptions options = Of(one.input, format);
      const std::string all = Print(options);
      for (const std::vector<std::string>& patterns : one.patterns) {
        std::string expected;
        std::istringstream lines(all);
        for (std::string line; std::getline(lines, line);) {
          if (!EventPatterns(patterns).Matches(NameIn(line, format))) continue;
          absl::StrAppend(&expected, line, "\n");
        }
        options.events = patterns;
        EXPECT_FALSE(expected.empty()) << one.input << " " << patterns[0];
        EXPECT_EQ(Print(options), expected) << one.input << " " << patterns[0];
      }
    }
  }
}

TEST_F(EventsTest, WithARangeToo) {
  EventsOptions options = Of(Run());
  options.range = {TimelineTime{30'000'000}, TimelineTime{60'000'000}};
  options.events = {"syncline_itt:task_end"};
  const std::string printed = Print(options);
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 18);  // of three steps
}

TEST_F(EventsTest, AnEndBehindTheLastEventLeavesNoneOut) {
  EventsOptions options = Of(Trace());
  const std::string all = Print(options);
  options.range.to = TimelineTime{100'000'000'000};
  EXPECT_EQ(Print(options), all);
}

// A trace of which many events have one time, in several streams.
void WriteTies(const std::filesystem::path& directory, uint32_t streams) {
  ctf::GeneratorOptions options;
  options.streams = streams;
  options.events_per_stream = 60'000 / streams;
  options.gap_ns_mean = 2;
  options.packet_bytes = 65'536;
  ASSERT_TRUE(ctf::GenerateTrace(directory, options).ok());
}

TEST_F(EventsTest, TheSameLinesForAnyNumberOfThreads) {
  WriteTies(root_ / "ties", 5);
  WriteTies(root_ / "one", 1);
  // Two of them side by side, which are two nodes; one is damaged.
  std::filesystem::copy(Trace(), root_ / "cut");
  const std::filesystem::path cut = root_ / "cut" / "channel0_0";
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 5000);
  for (const EventFormat format : {EventFormat::kText, EventFormat::kJsonLines}) {
    std::vector<EventsOptions> cases;
    for (const std::string& input :
         {Run(), Trace(), std::string(root_ / "ties"), std::string(root_ / "one"),
          std::string("tests/golden/tensorflow_profile/run")}) {
      cases.push_back(Of(input, format));
    }
    cases.push_back(Of("a=" + (root_ / "cut").string(), format));
    cases.back().input.inputs.push_back("b=" + Trace());
    cases.push_back(Of(Run(), format));
    cases.back().range.from = TimelineTime{30'000'000};
    cases.back().events = {"*:task_*"};
    for (EventsOptions& options : cases) {
      SCOPED_TRACE(options.input.inputs[0]);
      std::string lines;
      EventsResult alone;
      for (const unsigned threads : {1u, 2u, 3u, 7u, 64u}) {
        options.threads = threads;
        std::ostringstream out;
        const auto printed = PrintEvents(options, &out);
        ASSERT_TRUE(printed.ok()) << printed.status();
        if (threads == 1) {
          lines = out.str();
          alone = *printed;
          EXPECT_GT(lines.size(), 1000u);
          EXPECT_EQ(alone.events,
                    static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n')));
        }
        EXPECT_TRUE(out.str() == lines) << threads;
        EXPECT_EQ(printed->events, alone.events);
        EXPECT_EQ(printed->incomplete, alone.incomplete);
        EXPECT_EQ(printed->complaints, alone.complaints);
      }
      EXPECT_EQ(alone.incomplete, options.input.inputs.size() == 2);
    }
  }
}

// Takes some bytes, and no more.
class Full final : public std::streambuf {
 public:
  Full(std::streamsize room, int why) : room_(room), why_(why) {}

 private:
  std::streamsize xsputn(const char*, std::streamsize bytes) override {
    if (bytes <= room_) {
      room_ -= bytes;
      return bytes;
    }
    errno = why_;
    return 0;
  }
  int_type overflow(int_type) override { return traits_type::eof(); }

  std::streamsize room_;
  int why_;
};

TEST_F(EventsTest, AReaderThatGoesIsNoErrorAndAFullDiskIs) {
  WriteTies(root_ / "ties", 5);
  const size_t all = Print(Of(root_ / "ties")).size();
  ASSERT_GT(all, size_t{4} << 20);
  for (const unsigned threads : {1u, 4u}) {
    for (const std::streamsize room : {0, 1 << 20, 3 << 20}) {
      EventsOptions options = Of(root_ / "ties");
      options.threads = threads;
      Full gone(room, EPIPE);
      std::ostream reader(&gone);
      const auto printed = PrintEvents(options, &reader);
      EXPECT_TRUE(printed.ok()) << printed.status();
      Full full(room, ENOSPC);
      std::ostream disk(&full);
      EXPECT_FALSE(PrintEvents(options, &disk).ok());
    }
  }
}

TEST_F(EventsTest, APatternThatFitsNothingIsRefused) {
  EventsOptions options = Of(Run());
  std::ostringstream out;
  options.events = {"syncline:*", "syncline_itt:taskbegin"};
  const auto printed = PrintEvents(options, &out);
  EXPECT_EQ(printed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(printed.status().message()),
              AllOf(HasSubstr("'syncline_itt:taskbegin'"), HasSubstr("syncline_itt:task_begin"),
                    Not(HasSubstr("task_end"))));
  EXPECT_EQ(out.str(), "");
  for (const char* pattern : {"", "  ", "nothing*"}) {
    EXPECT_FALSE(Merge(MergeOf(Run(), {pattern})).ok()) << pattern;
  }
  EXPECT_FALSE(std::filesystem::exists(Run() + "/out"));
  // What could not be read may have held it.
  const std::string worker = Run() + "/nodes/worker-0/trace/ust/uid/0/64-bit/metadata";
  ASSERT_TRUE(WriteFileAtomically(worker, "not a trace").ok());
  EXPECT_THAT(std::string(PrintEvents(options, &out).status().message()), HasSubstr("worker-0"));
}

TEST_F(EventsTest, NamesThatCouldBeMeant) {
  const std::set<std::string> names = {"syncline_itt:task_begin", "syncline_itt:task_end",
                                       "lttng_ust_libc:malloc", "MatMul:MatMul"};
  const auto near = [&](const std::string& pattern) { return NamesNear(pattern, names); };
  EXPECT_EQ(near("task_begin"), "near to it: syncline_itt:task_begin");
  EXPECT_EQ(near("syncline_itt:Task*"),
            "near to it: syncline_itt:task_begin, syncline_itt:task_end");
  EXPECT_EQ(near("maloc"), "near to it: lttng_ust_libc:malloc");
  EXPECT_EQ(near("lttng_usr_libc:*"), "near to it: lttng_ust_libc:*");
  EXPECT_EQ(near("sched_*"), "there are: MatMul:*, lttng_ust_libc:*, syncline_itt:*");
}

TEST_F(EventsTest, AMergeShowsTheseAndSaysSo) {
  const auto all = Merge(MergeOf(Run(), {}));
  ASSERT_TRUE(all.ok()) << all.status();
  const auto read = [this] { return *ReadFile(Run() + "/out/timeline.perfetto-trace"); };
  const std::string whole = read();
  EXPECT_THAT(*ReadFile(Run() + "/out/report.json"), Not(HasSubstr("only_events")));
  // Who covers what, and who is who, is never left out.
  const auto control = Merge(MergeOf(Run(), {"syncline:o*"}));
  ASSERT_TRUE(control.ok()) << control.status();
  EXPECT_FALSE(control->incomplete);
  EXPECT_EQ(control->report.tasks.size(), 0u);
  EXPECT_EQ(control->report.events, 4u);
  EXPECT_EQ(control->report.nodes.at(0).processes.at(0).events,
            all->report.nodes.at(0).processes.at(0).events);
  EXPECT_THAT(read(), AllOf(HasSubstr("python worker.py"), Not(HasSubstr("train_step"))));
  EXPECT_EQ(nlohmann::json::parse(*ReadFile(Run() + "/out/report.json"))["only_events"],
            nlohmann::json::array({"syncline:o*"}));
  // A task has a begin and an end.
  for (const char* pattern : {"syncline_itt:task_begin", "syncline_itt:task_end"}) {
    const auto tasks = Merge(MergeOf(Run(), {pattern}));
    ASSERT_TRUE(tasks.ok()) << tasks.status();
    EXPECT_EQ(tasks->report.tasks.size(), 6u);
    EXPECT_EQ(read(), whole) << pattern;
  }
}

TEST_F(EventsTest, ACopyOfPacketsCannotLeaveEventsOut) {
  MergeOptions options = MergeOf(Run(), {"syncline:*"});
  options.formats = {"perfetto", "ctf"};
  EXPECT_THAT(std::string(Merge(options).status().message()), HasSubstr("--events"));
}

}  // namespace
}  // namespace syncline::merge
