// SPDX-License-Identifier: Apache-2.0
// What is missing of a recording costs what it is about, and nothing else.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "timeline/collectives.h"

namespace syncline::timeline {
namespace {

using testing::SizeIs;

constexpr uint32_t kMain = 1;
constexpr uint32_t kWorker = 2;
constexpr int64_t kStepNs = 1000;

// All-reduces in step with one another; each process knows one group.
class Process {
 public:
  Process(CollectiveMatcher* matcher, uint32_t node)
      : matcher_(matcher), node_(node), number_(matcher->AddProcess(node)) {}
  void Announce(uint64_t sequence) {
    matcher_->OnGroup(number_, kMain,
                      {{"", "", "0", "0-1", "", 2}, static_cast<int32_t>(node_), sequence});
  }
  void Call(uint64_t step) {
    matcher_->OnCall(number_, kMain, "0", "allreduce", step, 8, At(step, 0));
  }
  void Launch(uint64_t step) { matcher_->OnLaunch(number_, kMain, "allreduce", At(step, 1)); }
  void Work(uint64_t step) {
    matcher_->OnWorkBegin(number_, kWorker, "all_reduce");
    matcher_->OnWorkEnd(number_, kWorker, At(step, 100));
  }

 private:
  CollectiveMatcher::Place At(uint64_t step, int64_t ns) const {
    const int64_t at_ns = static_cast<int64_t>(step) * kStepNs + ns;
    return {{{node_}, at_ns}, {at_ns}, 0};
  }

  CollectiveMatcher* matcher_;
  uint32_t node_;
  uint32_t number_;
};

TEST(CollectiveWorksTest, ALaunchThatIsMissingCostsWhatLiesBetweenTwoAnnouncements) {
  constexpr uint64_t kSteps = 100;
  for (const uint32_t loser : {0u, 1u}) {
    CollectiveMatcher matcher;
    for (const uint32_t node : {0u, 1u}) {
      Process process(&matcher, node);
      for (uint64_t step = 0; step < kSteps; ++step) {
        if (step % 10 == 0) process.Announce(step);
        if (node == loser && step == 35) continue;
        process.Launch(step);
        process.Work(step);
      }
      process.Announce(kSteps);
    }
    const Collectives found = matcher.Match();
    EXPECT_THAT(found.undecided, SizeIs(9));
    ASSERT_THAT(found.collectives, SizeIs(kSteps));
    for (const Collective& collective : found.collectives) {
      const bool lost = collective.number / 10 == 3;
      EXPECT_THAT(collective.members, SizeIs(lost ? 1 : 2)) << collective.number;
    }
  }
}

// A work that is lost leaves its launch without an end, and no other one: those that follow in the
// same step may get each other's.
TEST(CollectiveWorksTest, AWorkThatIsLostCostsItsStep) {
  constexpr uint64_t kSteps = 60;
  constexpr uint64_t kStep = 100'000;  // 100 ms
  CollectiveMatcher matcher;
  Process process(&matcher, 0);
  process.Announce(0);
  for (uint64_t step = 0; step < kSteps; ++step) {
    process.Launch(step * kStep);
    if (step != 20 && step != 40) process.Work(step * kStep);
  }
  matcher.OnRecordedUntil(0, {static_cast<int64_t>(kSteps * kStep) * kStepNs});
  process.Announce(kSteps);
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(kSteps));
  for (const Collective& collective : found.collectives) {
    const CollectiveMember& member = collective.members[0];
    const bool lost = collective.number == 20 || collective.number == 40;
    ASSERT_EQ(member.left_at.has_value(), !lost) << collective.number;
    if (lost) continue;
    EXPECT_EQ(member.left_at->ns - member.entered_at.ns, 99);
  }
}

// All of the process stands still for 25 ms between two launches, and one is under way at the end.
TEST(CollectiveWorksTest, AWorkThatIsLateIsNotLost) {
  constexpr int64_t kMs = 1'000'000;
  CollectiveMatcher matcher;
  const uint32_t process = matcher.AddProcess(0);
  const auto at = [](int64_t ms) {
    return CollectiveMatcher::Place{{{0}, ms * kMs}, {ms * kMs}, 0};
  };
  const auto launch = [&](int64_t ms) { matcher.OnLaunch(process, kMain, "allreduce", at(ms)); };
  const auto work = [&](int64_t end_ms) {
    matcher.OnWorkBegin(process, kWorker, "all_reduce");
    matcher.OnWorkEnd(process, kWorker, at(end_ms));
  };
  matcher.OnGroup(process, kMain, {{"", "", "0", "0", "", 1}, 0, 0});
  launch(10);
  work(12);
  launch(100);
  launch(125);
  work(130);
  work(140);
  launch(200);
  matcher.OnRecordedUntil(process, {205 * kMs});
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(4));
  EXPECT_EQ(found.collectives[1].members[0].left_at->ns, 130 * kMs);
  EXPECT_EQ(found.collectives[2].members[0].left_at->ns, 140 * kMs);
  EXPECT_FALSE(found.collectives[3].members[0].left_at.has_value());
}

// One rank does not come, and the others enter a second after each other: one collective, not three
// groups, as long as those who entered are known to be there. Without a word of it they may have
// been started anew.
TEST(CollectiveWorksTest, ACollectiveThatHangsIsOne) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  for (const bool there : {true, false}) {
    CollectiveMatcher matcher;
    for (const uint32_t node : {0u, 1u, 3u}) {
      const uint32_t process = matcher.AddProcess(node);
      const int64_t at_ns = node * kSecondNs;
      matcher.OnGroup(process, kMain, {{"", "", "0", "0-3", "", 4}, static_cast<int32_t>(node), 0});
      matcher.OnLaunch(process, kMain, "allreduce", {{{node}, at_ns}, {at_ns}, 0});
      matcher.OnWorkBegin(process, kWorker, "all_reduce");
      if (there) matcher.OnRecordedUntil(process, {9 * kSecondNs});
    }
    const Collectives found = matcher.Match();
    EXPECT_THAT(found.groups, SizeIs(there ? 1 : 3));
    EXPECT_THAT(found.collectives[0].members, SizeIs(there ? 3 : 1));
  }
}

// The program's own profiler has the thread: nothing observes what it launches, nor the work.
TEST(CollectiveWorksTest, ACallWithoutALaunchHasNoWork) {
  CollectiveMatcher matcher;
  Process process(&matcher, 0);
  process.Announce(0);
  for (uint64_t step = 0; step < 60; ++step) {
    process.Call(step);
    if (step / 10 == 2) continue;
    process.Launch(step);
    process.Work(step);
  }
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(60));
  for (const Collective& collective : found.collectives) {
    const CollectiveMember& member = collective.members[0];
    ASSERT_EQ(member.left_at.has_value(), collective.number / 10 != 2) << collective.number;
    if (!member.left_at.has_value()) continue;
    EXPECT_EQ(member.left_at->ns - member.entered_at.ns, 99);
  }
}

// Two threads take a work each, and the second is recorded first: no rank leaves a collective
// before the others have entered it.
TEST(CollectiveWorksTest, WorksThatBeginInTheOtherOrderGetTheirEnds) {
  for (const int64_t late_ns : {40, 90}) {  // when the other rank enters the second
    CollectiveMatcher matcher;
    for (const uint32_t node : {0u, 1u}) {
      const uint32_t process = matcher.AddProcess(node);
      const auto at = [node](int64_t ns) {
        return CollectiveMatcher::Place{{{node}, ns}, {ns}, 1};
      };
      const auto launch = [&](int64_t ns) {
        matcher.OnLaunch(process, kMain, "allreduce", at(ns));
      };
      matcher.OnGroup(process, kMain, {{"", "", "0", "0-1", "", 2}, static_cast<int32_t>(node), 0});
      launch(node == 0 ? 10 : 30);
      launch(node == 0 ? 20 : late_ns);
      for (const uint32_t thread : {kWorker, kWorker + 1}) {
        matcher.OnWorkBegin(process, thread, "all_reduce");
      }
      matcher.OnWorkEnd(process, node == 0 ? kWorker + 1 : kWorker, at(50));
      matcher.OnWorkEnd(process, node == 0 ? kWorker : kWorker + 1, at(100));
    }
    const Collectives found = matcher.Match();
    ASSERT_THAT(found.collectives, SizeIs(2));
    // Where either order can be, that of the begins is believed.
    const bool exchanged = late_ns == 90;
    const auto left_ns = [&](size_t number, size_t rank) {
      return found.collectives[number].members[rank].left_at->ns;
    };
    EXPECT_EQ(left_ns(0, 0), exchanged ? 50 : 100);
    EXPECT_EQ(left_ns(1, 0), exchanged ? 100 : 50);
    EXPECT_EQ(left_ns(0, 1), 50);
    EXPECT_EQ(left_ns(1, 1), 100);
  }
}

// A program that is wrong in its sizes is what one looks at: its rows are those of the numbers.
TEST(CollectiveWorksTest, ASizeThatDiffersMovesNoRank) {
  CollectiveMatcher matcher;
  for (const uint32_t node : {0u, 1u}) {
    const uint32_t process = matcher.AddProcess(node);
    matcher.OnGroup(process, kMain, {{"", "", "0", "0-1", "", 2}, static_cast<int32_t>(node), 0});
    for (uint64_t step = 0; step < 3; ++step) {
      const int64_t at_ns = static_cast<int64_t>(step) * kStepNs;
      const uint64_t bytes = 8 + 8 * step + 16 * node;  // one of each is alike by chance
      matcher.OnCall(process, kMain, "0", "broadcast", step, bytes, {{{node}, at_ns}, {at_ns}, 0});
    }
  }
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(3));
  for (const Collective& collective : found.collectives) {
    EXPECT_LT(collective.number, 3u);
    EXPECT_THAT(collective.members, SizeIs(2));
  }
}

}  // namespace
}  // namespace syncline::timeline
