// SPDX-License-Identifier: Apache-2.0
#include "timeline/look_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "timeline/cut_sink.h"
#include "timeline/testing/dump_sink.h"
#include "timeline/testing/scenario.h"

namespace syncline::timeline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kSecond = 1'000'000'000;

std::string Head(int64_t end_ns, const std::string& threads) {
  return absl::StrCat("window 0 ", end_ns,
                      "\nnode a shift 0\nenv tracer_buffering_scheme uid\n"
                      "env tracer_buffering_id 0\n"
                      "process key=1 uid=0 pid=10 pidns=5 ticks=7 on=0 off=",
                      end_ns, " command=\"train\"\nname 2 epoch\nname 3 step\nname 4 kernel\n",
                      threads);
}

std::string Task(int64_t ns, bool begins, int thread, int name, int depth) {
  return absl::StrCat(ns, " syncline_itt:task_", begins ? "begin" : "end", " thread=", thread,
                      " name=", name, " depth=", depth, "\n");
}

struct Built {
  std::vector<std::string> lines;  // sorted; of everything but tracks
  NodeResult node;
};

Built Build(const std::string& text, Interval cut, std::optional<int64_t> look_back_ns) {
  auto scenario = testing::ParseScenario(text);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  scenario->options.cut = cut;
  scenario->options.look_back_ns = look_back_ns;
  testing::DumpSink dump;
  CutSink sink(cut, &dump);
  TimelineSink* const sinks[] = {&sink};
  auto result = BuildTimeline(scenario->nodes, scenario->options, sinks);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(dump.breaches(), ::testing::IsEmpty());
  Built built{absl::StrSplit(dump.text(), '\n'), std::move(result->nodes.at(0))};
  std::erase_if(built.lines, [](const std::string& line) { return line.starts_with("track "); });
  std::sort(built.lines.begin(), built.lines.end());
  return built;
}

// A thread that works at depths 0 to 3 at random, for `end_ns`.
std::string Work(int thread, int64_t end_ns, std::mt19937* random) {
  std::string events;
  std::vector<int> open;
  int64_t now_ns = 1 + thread;
  const auto wait = [&](int64_t most_ns) {
    now_ns += 1 + std::uniform_int_distribution<int64_t>(0, most_ns)(*random);
  };
  while (now_ns < end_ns) {
    const bool begins = open.empty() || (open.size() < 4 && (*random)() % 2 == 0);
    if (begins) {
      const int name = 2 + static_cast<int>((*random)() % 3);
      events += Task(now_ns, true, thread, name, static_cast<int>(open.size()));
      open.push_back(name);
    } else {
      events += Task(now_ns, false, thread, open.back(), static_cast<int>(open.size()) - 1);
      open.pop_back();
    }
    wait(open.size() == 1 && (*random)() % 8 == 0 ? 6 * kSecond : kSecond / 3);
  }
  return events;
}

TEST(LookBackTest, ACutShowsWhatItShowsOfTheWhole) {
  constexpr int64_t kEnd = 300 * kSecond;
  int parts = 0, open_before = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::string text =
        absl::StrCat(Head(kEnd, "thread 7 10 main\nthread 8 11 pool\n"), "stream cpu0\n",
                     Work(7, kEnd, &random), "stream cpu1\n", Work(8, kEnd, &random));
    const int64_t from_ns = std::uniform_int_distribution<int64_t>(0, kEnd - 8 * kSecond)(random);
    const Interval cut{{from_ns}, {from_ns + 7 * kSecond}};  // no thread is silent for so long
    const Built whole = Build(text, cut, std::nullopt);
    const Built part = Build(text, cut, 1000 * kSecond);
    EXPECT_EQ(part.lines, whole.lines);
    EXPECT_EQ(part.node.events, whole.node.events);
    if (part.node.seen->begin_ns > whole.node.seen->begin_ns) ++parts;
    open_before += std::any_of(whole.lines.begin(), whole.lines.end(),
                               [](const std::string& line) { return line.starts_with("span <"); });
  }
  EXPECT_GT(parts, 20) << "the test tests less: most cuts were read from the beginning";
  EXPECT_GT(open_before, 20);
}

TEST(LookBackTest, AsFarAsItIsAllowedAndNotFurther) {
  std::string text =
      Head(300 * kSecond, "thread 7 10 main\n") + "stream cpu0\n" + Task(kSecond, true, 7, 2, 0);
  for (int i = 2; i < 299; ++i) {
    text += Task(i * kSecond, true, 7, 3, 1) + Task(i * kSecond + 1000, false, 7, 3, 1);
  }
  text += Task(299 * kSecond, false, 7, 2, 0);
  const Interval cut{{200 * kSecond}, {201 * kSecond}};
  const auto epoch = Contains(AllOf(StartsWith("span <200000000000, 201000000000> 0 epoch")));
  const Built found = Build(text, cut, 250 * kSecond);
  EXPECT_THAT(found.lines, epoch);
  EXPECT_EQ(found.node.inside_of_unread_threads, 0u);
  const Built unread = Build(text, cut, 10 * kSecond);
  EXPECT_THAT(unread.lines, Not(epoch));
  EXPECT_THAT(unread.lines, Contains(HasSubstr("1 step")));
  EXPECT_EQ(unread.node.inside_of_unread_threads, 1u);
  EXPECT_EQ(unread.node.seen->begin_ns, 198 * kSecond) << "what was walked in vain is not read";
}

TEST(LookBackTest, AThreadThatOnlyItsAnnouncementNamesIsLookedForFromTheBeginning) {
  std::string text = Head(100 * kSecond, "") +
                     "stream cpu0\n5 syncline:thread thread=7 process=1 tid=10 name=\"main\"\n";
  for (int i = 1; i < 99; ++i) {
    text += Task(i * kSecond, true, 7, 3, 0) + Task(i * kSecond + 1000, false, 7, 3, 0);
  }
  const Interval cut{{50 * kSecond}, {51 * kSecond}};
  const Built part = Build(text, cut, 10 * kSecond);
  EXPECT_EQ(part.lines, Build(text, cut, std::nullopt).lines);
  EXPECT_THAT(part.lines, Contains(AllOf(HasSubstr("step"), HasSubstr("main"))));
}

// One node of a connection: announced at 1 s and, in use, at 49 s.
std::string End(const std::string& node, int pid, const std::string& local,
                const std::string& remote, const std::string& use) {
  const auto connection = [&](int64_t ns) {
    return absl::StrCat(ns, " syncline_net:connection thread=7 connection=5 local=\"", local,
                        "\" local_port=10 remote=\"", remote, "\" remote_port=10\n");
  };
  return absl::StrCat("node ", node, " shift 0\nenv tracer_buffering_scheme uid\n",
                      "env tracer_buffering_id 0\nprocess key=1 uid=0 pid=", pid,
                      " pidns=5 ticks=7 on=0 off=", 100 * kSecond, "\nthread 7 ", pid,
                      " main\nstream cpu0\n", connection(kSecond), connection(49 * kSecond), use);
}

TEST(LookBackTest, MessagesOfAConnectionThatWasAnnouncedBeforeTheCut) {
  const auto use = [](int64_t ns, const char* call) {
    return absl::StrCat(ns, " syncline_net:", call,
                        " thread=7 connection=5 begin=0 bytes=9 since=", ns - 10, "\n");
  };
  const std::string text =
      absl::StrCat("window 0 ", 100 * kSecond, "\n",
                   End("a", 10, "10.0.0.1", "10.0.0.2", use(50 * kSecond + 100, "send")),
                   End("b", 20, "10.0.0.2", "10.0.0.1", use(50 * kSecond + 200, "receive")));
  const Interval cut{{50 * kSecond}, {51 * kSecond}};
  const auto arrow = Contains(StartsWith("flow "));
  EXPECT_THAT(Build(text, cut, std::nullopt).lines, arrow);
  EXPECT_THAT(Build(text, cut, 2 * kSecond).lines, arrow);
}

}  // namespace
}  // namespace syncline::timeline
