// SPDX-License-Identifier: Apache-2.0
// Names in what `syncline events` prints, and events that are wanted by name.
#include "coordinator/merge/event_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/checksum.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/test_recording.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::merge {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kReal[] = "tests/golden/tensorflow_profile/run";

class EventNamesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/syncline-names-XXXXXX"};
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name.data();
    testing::WriteJob("job", -6'000'000, Run());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Run() const { return root_ / "run"; }
  // The job with these events of the master ahead of its steps.
  std::string RunWith(const std::vector<std::string>& events) const {
    std::string more;
    int64_t time_ns = timeline::testing::kJobZeroNs + 60'000;
    for (const std::string& event : events) absl::StrAppend(&more, ++time_ns, " ", event, "\n");
    std::string text = timeline::testing::TwoNodeJob();
    text.insert(text.find('\n', text.find("syncline:on")) + 1, more);
    const std::string run = root_ / "more";
    testing::WriteScenario(text, "more", 0, run);
    return run;
  }

  static EventsOptions Of(const std::string& input, std::vector<std::string> events = {}) {
    EventsOptions options;
    options.input.inputs = {input};
    options.events = std::move(events);
    options.threads = 1;
    return options;
  }
  static std::string Text(const EventsOptions& options) {
    std::ostringstream out;
    const auto printed = PrintEvents(options, &out);
    EXPECT_TRUE(printed.ok()) << printed.status();
    return out.str();
  }
  static std::vector<std::string> Lines(const EventsOptions& options) {
    return absl::StrSplit(Text(options), '\n', absl::SkipEmpty());
  }
  static std::string Refusal(const EventsOptions& options) {
    std::ostringstream out;
    const auto printed = PrintEvents(options, &out);
    EXPECT_EQ(printed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(out.str(), "");
    return std::string(printed.status().message());
  }

  std::filesystem::path root_;
};

std::vector<std::string> With(std::vector<std::string> lines, const std::string& text) {
  std::erase_if(lines, [&](const std::string& line) { return !absl::StrContains(line, text); });
  return lines;
}

TEST_F(EventNamesTest, IdsArePrintedAsWhatTheyStandFor) {
  const std::vector<std::string> lines = Lines(Of(Run()));
  const std::string thread = "{ thread = \"python\", tid = 10, pid = 10, ";
  EXPECT_THAT(With(lines, "syncline_itt:task_begin: "),
              Contains(EndsWith(thread + "domain = \"training\", name = \"train_step\", "
                                         "depth = 0 }")));
  EXPECT_THAT(With(lines, "name = \"convolution\""), Each(HasSubstr(thread + "domain = \"oneDNN")));
  EXPECT_THAT(With(lines, "syncline:off"), Each(HasSubstr("{ generation = 1, pid = 10, ")));
  // These say what ids stand for.
  EXPECT_THAT(With(lines, "syncline:name"), Each(HasSubstr("{ process = 1, id = ")));
  EXPECT_THAT(With(lines, "syncline:thread"), Each(HasSubstr("{ thread = 7, process = 1, tid = ")));
  EXPECT_THAT(With(lines, "syncline:on"), Each(HasSubstr("process = 1, pid = 10, ")));
  // `syncline events RUN | grep train_step`.
  EXPECT_THAT(With(With(lines, "train_step"), ":task_"), SizeIs(2 * timeline::testing::kJobSteps));
}

TEST_F(EventNamesTest, NoNameIsInvented) {
  const std::vector<std::string> lines = Lines(
      Of(RunWith({"syncline_itt:task_begin thread=7 domain=0 name=17 depth=1",
                  "syncline_itt:marker thread=99 domain=1 name=2 scope=3 d1=0 d2=0 d3=0",
                  "syncline_itt:task_begin_text thread=7 domain=1 depth=2 name=\"by \\\"text\\\"\"",
                  "syncline_itt:sync name=2 thread=7 kind=1 object=5",
                  "syncline:off generation=1 process=5 events=1 lost=0 cost_ns=1"})));
  EXPECT_THAT(lines, Contains(HasSubstr("pid = 10, domain = none, name_id = 17, depth = 1 }")));
  EXPECT_THAT(lines, Contains(HasSubstr("{ thread_key = 99, domain_id = 1, name_id = 2, scope")));
  EXPECT_THAT(lines, Contains(HasSubstr("domain = \"training\", depth = 2, name = \"by ")));
  // Whose it is, is not known before the thread is met.
  EXPECT_THAT(lines, Contains(HasSubstr("{ name_id = 2, thread = \"python\", ")));
  EXPECT_THAT(lines, Contains(HasSubstr("{ generation = 1, process_key = 5, ")));
}

TEST_F(EventNamesTest, JsonLinesHaveTheirFormat) {
  for (const std::string& run : {Run(), std::string(kReal)}) {
    EventsOptions options = Of(run);
    options.format = EventFormat::kJsonLines;
    size_t named = 0;
    for (const std::string& line : Lines(options)) {
      const auto json = nlohmann::json::parse(line);
      EXPECT_EQ(json["format_version"], 2);
      const auto& fields = json["fields"];
      if (!absl::StartsWith(std::string(json["event"]), "syncline_itt:")) continue;
      named += fields["name"].is_string() ? 1 : 0;
      EXPECT_TRUE(fields["domain"].is_string() && fields["thread"].is_string()) << line;
      EXPECT_TRUE(fields["tid"].is_number() && fields["pid"].is_number()) << line;
    }
    EXPECT_GT(named, 100u) << run;
    options.raw = true;
    EXPECT_THAT(Lines(options), Each(Not(HasSubstr("format_version"))));
  }
  EventsOptions options =
      Of(RunWith({"syncline_itt:task_begin thread=7 domain=0 name=17 depth=1"}), {"*:task_begin"});
  options.format = EventFormat::kJsonLines;
  EXPECT_THAT(Lines(options), Contains(HasSubstr("\"domain\":null,\"name_id\":17,\"depth\":1}")));
}

// The sums are of what was printed before ids were resolved, and lines named their clock.
TEST_F(EventNamesTest, RawIsAsRecorded) {
  EventsOptions options = Of(kReal);
  options.raw = true;
  EXPECT_EQ(Crc32c(Text(options)), 0xe5c750f3u);
  options.format = EventFormat::kJsonLines;
  const std::string without_clock = absl::StrReplaceAll(
      Text(options), {{"\"clock\":\"trace\",", ""}, {"\"clock\":\"realtime\",", ""}});
  EXPECT_EQ(Crc32c(without_clock), 0xdb6d1a25u);
  options = Of(Run(), {"syncline_itt:task_end"});
  options.raw = true;
  EXPECT_THAT(Lines(options),
              Each(HasSubstr("syncline_itt:task_end: { cpu_id = 0 }, { thread = 7, domain = 1, ")));
}

TEST_F(EventNamesTest, TheExampleOfTheHelpFindsARealJobsSteps) {
  const std::vector<std::string> lines = Lines(Of(kReal));
  const std::vector<std::string> steps = With(With(lines, "train_step"), "syncline_itt:task_");
  EXPECT_GT(steps.size(), 20u);
  EXPECT_THAT(steps, Each(AllOf(HasSubstr("domain = \"training\", name = \"train_step\""),
                                HasSubstr(" master-0 "))));
  EXPECT_EQ(Lines(Of(kReal, {"name:train_step"})), steps);
}

TEST_F(EventNamesTest, EventsAreWantedByName) {
  const std::vector<std::string> all = Lines(Of(Run()));
  const std::vector<std::string> sends = With(all, ", name = \"send\"");
  ASSERT_THAT(sends, SizeIs(2 * timeline::testing::kJobSteps));
  EXPECT_EQ(Lines(Of(Run(), {"name:send"})), sends);
  EXPECT_EQ(Lines(Of(Run(), {" name:se*d ", "name:send"})), sends);
  // Beside classes of events, on any number of threads, raw, and in a part.
  EventsOptions options = Of(Run(), {"syncline:off", "name:*mul", "name:inner*"});
  std::vector<std::string> expected;
  for (const std::string& line : all) {
    const bool wanted = absl::StrContains(line, "syncline:off") ||
                        absl::StrContains(line, ", name = \"matmul\"") ||
                        absl::StrContains(line, ", name = \"inner_product\"");
    if (wanted) expected.push_back(line);
  }
  EXPECT_EQ(Lines(options), expected);
  options.threads = 4;
  EXPECT_EQ(Lines(options), expected);
  options.raw = true;
  EXPECT_THAT(Lines(options), SizeIs(expected.size()));
  EXPECT_THAT(Lines(options), Contains(HasSubstr("{ thread = 7, domain = 1, name = 3, ")));
  options = Of(Run(), {"name:send"});
  options.range = {TimelineTime{30'000'000}, TimelineTime{60'000'000}};
  EXPECT_THAT(Lines(options), SizeIs(6));
}

TEST_F(EventNamesTest, ANameInTheEventItselfCounts) {
  const std::string run =
      RunWith({"syncline_itt:task_begin_text thread=7 domain=1 depth=2 name=\"step 12\""});
  EXPECT_THAT(Lines(Of(run, {"name:step*"})), SizeIs(1));
}

TEST_F(EventNamesTest, APatternThatFitsNoNameOrTooMuchIsRefused) {
  EXPECT_THAT(Refusal(Of(Run(), {"name:train_stpe"})), HasSubstr("near to it: train_step"));
  EXPECT_THAT(Refusal(Of(kReal, {"name:training"})), HasSubstr("nothing here has the name"));
  EXPECT_THAT(Refusal(Of(Run(), {"train_step"})), HasSubstr("'name:train_step'"));
  const std::string run = RunWith({"name:send x=1", "name:sent x=2"});
  EXPECT_THAT(Refusal(Of(run, {"name:send"})), HasSubstr("write '*name:send'"));
  EXPECT_THAT(Lines(Of(run, {"*name:send"})), SizeIs(1));
  EXPECT_THAT(Lines(Of(run, {"name:sent"})), SizeIs(1));  // as ever
  MergeOptions merge;
  merge.input.inputs = {run};
  merge.events = {"name:receive"};
  EXPECT_THAT(std::string(Merge(merge).status().message()), HasSubstr("syncline events"));
  merge.events = {"name:send"};
  EXPECT_TRUE(Merge(merge).ok());
}

TEST_F(EventNamesTest, APartHasTheNamesOfTheWhole) {
  for (const std::string& run : {Run(), std::string(kReal)}) {
    std::vector<std::string> expected;
    for (const std::string& line : Lines(Of(run))) {
      if (line.starts_with("[+0.04") || line.starts_with("[+0.05")) expected.push_back(line);
    }
    EventsOptions options = Of(run);
    options.range = {TimelineTime{40'000'000}, TimelineTime{60'000'000}};
    EXPECT_EQ(Lines(options), expected);
    EXPECT_GT(expected.size(), 10u);
  }
}

}  // namespace
}  // namespace syncline::merge
