// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/scheduling_diary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace syncline::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = SchedulerEvent::Kind;

constexpr int64_t kRuns = 0;         // the kernel's bits: preempted
constexpr int64_t kPreempted = 256;  // so, too
constexpr int64_t kSleeps = 1;
constexpr int64_t kDisk = 2;
constexpr int64_t kDead = 16;

class Diary : public ::testing::Test {
 protected:
  Diary() {
    diary_.Begin(1000, {0, 1});
    diary_.AddThread(0, 10, 1000, {'S', 0, 1000});
    diary_.AddThread(1, 11, 1000, {'S', 0, 1000});
  }
  void Switch(int64_t at_ns, int32_t cpu, int32_t tid, int64_t state, int32_t next,
              const char* next_name = "n") {
    SchedulerEvent event{.kind = Kind::kSwitch, .cpu = cpu, .at_ns = at_ns};
    event.tid = event.current_tid = tid;
    event.seen_tid = seen_offset_ + tid;
    event.seen_pid = tid == 0 ? 0 : 500 + tid;
    event.state = state;
    event.next_tid = next;
    std::strncpy(event.next_name.data(), next_name, event.next_name.size() - 1);
    diary_.Take(event);
  }
  void Wake(int64_t at_ns, int32_t cpu, int32_t tid, int32_t waker, bool interrupt = false) {
    SchedulerEvent event{.kind = Kind::kWake, .interrupt = interrupt, .cpu = 0, .at_ns = at_ns};
    event.tid = tid;
    event.to_cpu = cpu;
    event.current_tid = event.seen_tid = waker;
    diary_.Take(event);
  }
  void Move(int64_t at_ns, int32_t tid, int32_t to) {
    diary_.Take({.kind = Kind::kMove, .at_ns = at_ns, .tid = tid, .to_cpu = to});
  }
  void Lose(int64_t from_ns, int64_t until_ns) {
    diary_.Take({.kind = Kind::kLoss, .at_ns = from_ns, .until_ns = until_ns, .count = 5});
  }
  // The lines, without their ends.
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    const std::string text = diary_.TakeText();
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      lines.push_back(text.substr(begin, end - begin));
    }
    return lines;
  }
  // With what /proc says of threads 10 and 11 then.
  std::vector<std::string> End(int64_t at_ns, char state = '?') {
    const SchedulingDiary::Look look{state, 0, at_ns};
    diary_.End(at_ns, {{10, look}, {11, look}});
    return Lines();
  }

  int32_t seen_offset_ = 0;
  SchedulingDiary diary_{{.same_numbers = true,
                          .process_name = [](int32_t pid) { return "p" + std::to_string(pid); }}};
};

TEST_F(Diary, ATurnIsAPauseThenReadyThenRunning) {
  Switch(1100, 0, 0, kRuns, 77, "thief");  // somebody has the CPU
  Wake(1500, 0, 10, 11);
  Switch(1700, 0, 77, kSleeps, 10);
  Switch(2000, 0, 10, kDisk, 0);
  Wake(2600, 1, 10, 0, true);
  Switch(2610, 1, 0, kRuns, 10);
  Switch(3000, 1, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("O 577 77 =thief =p577", "r 0 2000 300 200 500 S 0 t1 o0 200",
                                   "r 0 3000 390 10 600 D 1 x i 10"));
}

TEST_F(Diary, WhoIsPreemptedIsReadyAtOnce) {
  diary_.AddThread(0, 10, 1000, {'R', 0, 1000});
  diary_.AddThread(1, 11, 1000, {'R', 0, 1000});
  Switch(1200, 0, 10, kPreempted, 11);
  Switch(1250, 0, 11, kRuns, 10);
  Switch(1300, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 0 1200 200 0 0 ? 0 -", "r 1 1250 50 200 0 ? 0 -",
                                   "r 0 1300 50 50 0 R 0 - t1 50"));
}

TEST_F(Diary, WhoHadEachCpuThatItWaitedFor) {
  Switch(1100, 0, 0, kRuns, 77, "a");
  Switch(1100, 1, 0, kRuns, 88, "b");
  Wake(1200, 0, 10, 0, true);
  Move(1500, 10, 1);
  Switch(1600, 0, 77, kSleeps, 0);
  Switch(1900, 1, 88, kSleeps, 10);
  Switch(2000, 1, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("O 588 88 =b =p588", "O 577 77 =a =p577",
                                   "r 0 2000 100 700 200 S 1 x o0 400 o1 300"));
}

TEST_F(Diary, AWakeUpBeforeItHasLeftItsCpuIsNotLost) {
  Switch(1100, 0, 0, kRuns, 10);
  Wake(1190, 0, 10, 11);
  Switch(1200, 0, 10, kSleeps, 0);
  Switch(1210, 0, 0, kRuns, 10);
  Switch(1300, 0, 10, kSleeps, 0);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "r 0 1300 90 10 0 S 0 t1");
}

TEST_F(Diary, AWakeUpWhileItRunsDoesNotEndALaterPause) {
  Switch(1100, 0, 0, kRuns, 10);
  Wake(1150, 0, 10, 11);  // it had only meant to sleep
  Switch(1200, 0, 10, kSleeps, 0);
  Wake(1900, 0, 10, 0, true);
  Switch(1910, 0, 0, kRuns, 10);
  Switch(2000, 0, 10, kSleeps, 0);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "r 0 2000 90 10 700 S 0 x i 10");
}

TEST_F(Diary, AThreadThatBeganLaterDidNotSleepBefore) {
  Switch(1500, 0, 0, kRuns, 12, "new");  // its first event
  diary_.AddThread(2, 12, 1600, {'R', 0, 1600});
  Switch(1700, 0, 12, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 2 1700 200 0 0 ? 0 -"));
}

TEST_F(Diary, TheEndIsInTheMiddleOfTurns) {
  diary_.AddThread(0, 10, 1000, {'R', 0, 1000});
  Switch(1100, 0, 0, kRuns, 10);
  Wake(1400, 0, 11, 10);
  EXPECT_THAT(diary_.Unsure(), ElementsAre(10, 11));
  EXPECT_THAT(End(1500, 'R'), ElementsAre("r 0 1500 400 100 0 ? 0 -", "r 1 1400 0 0 400 S 0 t0"))
      << "that it waited no switch has confirmed";
}

TEST_F(Diary, WhoRunsAtTheEndIsAskedOfProc) {
  diary_.AddThread(0, 10, 1000, {'R', 0, 1000});
  Switch(1100, 0, 0, kRuns, 10);
  EXPECT_THAT(End(1500, 'S'), ElementsAre("r 0 1100 0 100 0 ? 0 -", "r 1 1500 0 0 500 S 0 -"))
      << "it has left, which was not reported";
}

TEST_F(Diary, AThreadWithoutAnyEventIsWhatItIsAtTheEnd) {
  EXPECT_THAT(End(1500, 'S'), ElementsAre("r 0 1500 0 0 500 S 0 -", "r 1 1500 0 0 500 S 0 -"));
}

TEST_F(Diary, WithoutAnyEventNothingTellsRunningFromReady) {
  EXPECT_THAT(End(1500, 'R'), IsEmpty());
}

TEST_F(Diary, AStateThatWasReadBehindTheFirstEventTellsNothing) {
  diary_.AddThread(0, 10, 1000, {'S', 0, 1300});
  Switch(1200, 0, 0, kRuns, 10);
  Switch(1290, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 0 1290 90 0 0 ? 0 -"));
}

TEST_F(Diary, OnACpuThatIsNotWatchedNothingIsKnown) {
  Switch(1100, 0, 0, kRuns, 10);
  Switch(1200, 0, 10, kSleeps, 0);
  Wake(1300, 7, 10, 0, true);
  Switch(1800, 0, 0, kRuns, 10);  // it is back
  Switch(1900, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 0 1200 100 0 100 S 0 -", "r 0 1300 0 0 100 S 7 x",
                                   "r 0 1900 100 0 0 ? 0 -"));
}

TEST_F(Diary, ASecondWakeUpTellsThatItRanMeanwhile) {
  Switch(1100, 0, 0, kRuns, 10);
  Switch(1200, 0, 10, kSleeps, 0);
  Wake(1300, 0, 10, 0, true);
  Wake(1900, 0, 10, 0, true);
  Switch(1910, 0, 0, kRuns, 10);
  Switch(2000, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 0 1200 100 0 100 S 0 -", "r 0 1300 0 0 100 S 0 x",
                                   "r 0 2000 90 10 0 ? 0 x i 10"));
  EXPECT_EQ(diary_.missed().switches, 1U);
}

TEST_F(Diary, NothingIsSaidOfWhatALossHides) {
  diary_.AddThread(0, 10, 1000, {'R', 0, 1000});
  Switch(1100, 0, 0, kRuns, 10);
  Lose(1200, 1900);
  Switch(1300, 1, 0, kRuns, 11);  // of another CPU: that 11 slept until then is not known
  Switch(1800, 1, 11, kSleeps, 0);
  Switch(2000, 0, 10, kSleeps, 0);
  Switch(2100, 0, 0, kRuns, 10);
  Switch(2300, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(),
              ElementsAre("L 1200 1900 5", "r 0 1100 0 100 0 ? 0 -", "r 0 2300 200 0 100 S 0 -"))
      << "nor what its first event behind it could tell";
}

TEST_F(Diary, ANumberThatIsUsedAgainIsAnotherThread) {
  diary_.AddThread(0, 10, 1000, {'R', 0, 1000});
  Switch(1100, 0, 0, kRuns, 10);
  Switch(1200, 0, 10, kDead, 0);
  Switch(1300, 0, 0, kRuns, 10, "other");
  Switch(1400, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 0 1200 100 100 0 ? 0 -"));
}

TEST_F(Diary, WhereSwitchesAreMissingNothingIsKnown) {
  Switch(1100, 0, 0, kRuns, 10);
  // That 10 left and 11 came was not reported.
  Switch(1500, 0, 11, kSleeps, 0);
  Switch(1600, 0, 0, kRuns, 10);
  Switch(1700, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 0 1100 0 0 100 S 0 -", "r 0 1700 100 0 0 ? 0 -"));
  EXPECT_EQ(diary_.missed().switches, 2U);
}

TEST_F(Diary, NobodyHadACpuOfWhichSwitchesAreMissing) {
  Switch(1100, 0, 0, kRuns, 77, "a");
  Wake(1200, 0, 10, 0, true);
  Switch(1500, 0, 88, kSleeps, 0);  // 77 had left it before
  Switch(1510, 0, 0, kRuns, 10);
  Switch(1600, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 0 1600 90 310 200 S 0 x i 10"));
}

TEST_F(Diary, AThreadIsNeverOnTwoCpus) {
  Switch(1100, 0, 0, kRuns, 10);
  Switch(1300, 1, 0, kRuns, 10);  // that it left CPU 0 was not reported
  Switch(1400, 1, 10, kSleeps, 0);
  EXPECT_THAT(Lines(), ElementsAre("r 0 1100 0 0 100 S 0 -", "r 0 1400 100 0 0 ? 1 -"));
}

TEST_F(Diary, WithoutAWakeUpThePauseLastsUntilItRuns) {
  Switch(1100, 0, 0, kRuns, 10);
  Switch(1200, 0, 10, kDisk, 0);
  Switch(1700, 0, 0, kRuns, 10);
  Switch(1800, 0, 10, kSleeps, 0);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "r 0 1800 100 0 500 D 0 -");
  EXPECT_EQ(diary_.missed().wakeups, 1U);
}

TEST_F(Diary, ShortLivedProcessesAreAddedUpByNameAndParent) {
  Wake(1100, 0, 10, 0, true);
  int64_t at_ns = 1200;
  int32_t before = 0;
  for (const int32_t tid : {601, 602, 603}) {
    SchedulerEvent begin{.kind = Kind::kFork, .at_ns = at_ns, .tid = tid};
    begin.seen_pid = begin.seen_tid = tid;
    begin.parent_pid = 600;
    diary_.Take(begin);
    Switch(at_ns, 0, before, before == 0 ? kRuns : kDead, tid, "true");
    before = tid;
    at_ns += 100;
  }
  Switch(at_ns, 0, before, kDead, 10);
  Switch(at_ns + 100, 0, 10, kSleeps, 0);
  EXPECT_THAT(Lines(),
              ElementsAre("O 600 0 =true =p600", "r 0 1600 100 400 100 S 0 x o0 300 i 100"));
}

TEST(DeclaredThreads, AreRecordedFromTheirFirstTurnOn) {
  SchedulingDiary diary({.declare = [](int32_t pid, int32_t tid, const std::string&,
                                       std::string* text) -> std::optional<uint32_t> {
    if (pid != 5) return std::nullopt;
    *text += "T " + std::to_string(tid) + "\n";
    return 0;
  }});
  diary.Begin(1000, {0});
  SchedulerEvent begin{.kind = Kind::kFork, .at_ns = 1100, .tid = 9};
  begin.seen_pid = begin.parent_pid = 5;
  begin.seen_tid = 9;
  diary.Take(begin);
  diary.Take({.kind = Kind::kSwitch, .at_ns = 1200, .next_tid = 9});
  SchedulerEvent end{.kind = Kind::kSwitch, .at_ns = 1300, .tid = 9, .current_tid = 9};
  end.state = kDead;  // the kernel no longer knows whose it was
  diary.Take(end);
  EXPECT_EQ(diary.TakeText(), "T 9\nr 0 1300 100 100 0 ? 0 -\n");
}

TEST(NamespacedDiary, NumbersAreLearnedWhenAThreadLeavesItsCpu) {
  SchedulingDiary diary({.same_numbers = false});
  diary.Begin(1000, {0});
  diary.AddThread(0, 7, 1000, {'R', 0, 1000});  // the machine calls it 4007
  SchedulerEvent event{.kind = Kind::kSwitch, .at_ns = 1100, .next_tid = 4007};
  diary.Take(event);
  event = {.kind = Kind::kSwitch, .at_ns = 1300, .tid = 4007, .current_tid = 4007};
  event.seen_pid = 5;
  event.seen_tid = 7;
  event.state = kSleeps;
  diary.Take(event);
  EXPECT_EQ(diary.TakeText(), "r 0 1300 200 100 0 ? 0 -\n");
  // 4008 is nobody of this namespace.
  diary.Take({.kind = Kind::kSwitch, .at_ns = 1400, .next_tid = 4008});
  diary.Take({.kind = Kind::kWake, .at_ns = 1500, .tid = 4007, .current_tid = 4008});
  event = {
      .kind = Kind::kSwitch, .at_ns = 1700, .tid = 4008, .next_tid = 4007, .current_tid = 4008};
  event.state = kSleeps;
  diary.Take(event);
  event = {.kind = Kind::kSwitch, .at_ns = 1800, .tid = 4007, .current_tid = 4007};
  event.seen_pid = 5;
  event.seen_tid = 7;
  event.state = kSleeps;
  diary.Take(event);
  EXPECT_THAT(diary.TakeText(), ::testing::EndsWith("r 0 1800 100 200 200 S 0 o0 o0 200\n"));
}

}  // namespace
}  // namespace syncline::agent
