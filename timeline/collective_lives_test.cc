// SPDX-License-Identifier: Apache-2.0
// Groups that are made anew while they are recorded.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "timeline/collectives.h"

namespace syncline::timeline {
namespace {

using testing::SizeIs;

constexpr uint32_t kMain = 1;
constexpr uint32_t kAnnouncer = 2;
constexpr uint32_t kWorker = 3;

// A rank of the default group. A step is an all-reduce, a send and a receive, and a barrier, called
// by the program; Gloo counts all of them.
class Rank {
 public:
  Rank(CollectiveMatcher* matcher, uint32_t node)
      : matcher_(matcher), node_(node), number_(matcher->AddProcess(node)) {}

  void MakeAnew() {
    next_ = 0;
    ++worker_;
  }
  void Announce(const std::string& ranks, uint32_t size) {
    matcher_->OnGroup(
        number_, kAnnouncer,
        {{"", "", "0", ranks, "default_pg", size}, static_cast<int32_t>(node_), next_});
  }
  void Step(int64_t begin_ns) {
    Collective("allreduce", "all_reduce", begin_ns);
    Transfers();
    Collective("barrier", "barrier", begin_ns + 500);
  }
  void Transfers() {
    for (int i = 0; i < 2; ++i, ++next_) matcher_->OnTransfer(number_, "0");
  }

 private:
  void Collective(const std::string& name, const std::string& work, int64_t begin_ns) {
    matcher_->OnCall(number_, kMain, "0", name, next_++, name == "barrier" ? 0 : 8, At(begin_ns));
    matcher_->OnLaunch(number_, kMain, name, At(begin_ns + 1));
    matcher_->OnWorkBegin(number_, worker_, work);
    matcher_->OnWorkEnd(number_, worker_, At(begin_ns + 100));
  }
  CollectiveMatcher::Place At(int64_t ns) const { return {{{node_}, ns}, {ns}, 0}; }

  CollectiveMatcher* matcher_;
  uint32_t node_;
  uint32_t number_;
  uint64_t next_ = 0;
  uint32_t worker_ = kWorker;
};

// They announce the new group half a second later, each between other operations.
TEST(CollectiveLivesTest, SurvivorsThatGoOnWithoutARankAreAGroupOfTheirOwn) {
  constexpr int64_t kSteps = 200;
  constexpr int64_t kStepNs = 1'000'000;
  CollectiveMatcher matcher;
  for (const uint32_t node : {0u, 1u, 2u, 3u}) {
    Rank rank(&matcher, node);
    rank.Announce("0-3", 4);
    for (int64_t step = 0; step < kSteps; ++step) rank.Step(step * kStepNs);
    if (node == 3) break;  // it is killed
    rank.MakeAnew();
    for (int64_t step = 0; step < kSteps; ++step) {
      if (step == 90 + node) rank.Announce("0-2", 3);
      rank.Step((kSteps + step) * kStepNs);
    }
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(found.undecided, SizeIs(0));
  ASSERT_THAT(found.groups, SizeIs(2));
  ASSERT_THAT(found.collectives, SizeIs(4 * kSteps));
  for (const Collective& collective : found.collectives) {
    EXPECT_THAT(collective.members, SizeIs(found.groups[collective.group].size));
    for (const CollectiveMember& member : collective.members) {
      EXPECT_EQ(member.entered_at, collective.members.front().entered_at);
      EXPECT_EQ(member.left_at, TimelineTime{member.entered_at.ns + 99});
    }
  }
}

// What a group has sent before it is announced counts towards its number.
TEST(CollectiveLivesTest, TransfersBeforeTheAnnouncementAreCounted) {
  CollectiveMatcher matcher;
  for (const uint32_t node : {0u, 1u, 2u}) {
    Rank rank(&matcher, node);
    for (uint32_t i = 0; i < node; ++i) rank.Transfers();
    rank.Announce("0-2", 3);
    for (int64_t step = 0; step < 20; ++step) rank.Step(step * 1000);
  }
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(40));
  for (size_t i = 0; i < found.collectives.size(); ++i) {
    EXPECT_EQ(found.collectives[i].number, i);
    EXPECT_THAT(found.collectives[i].members, SizeIs(3));
  }
}

// A node that could not be stopped in time goes on.
TEST(CollectiveLivesTest, WhatBeginsBehindTheWindowDoesNotCount) {
  CollectiveMatcher matcher;
  for (const uint32_t node : {0u, 1u}) {
    Rank rank(&matcher, node);
    rank.Announce("0-1", 2);
    for (int64_t step = 0; step < (node == 0 ? 10 : 20); ++step) rank.Step(step * 1000);
  }
  Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(40));
  KeepEnteredBefore(TimelineTime{9'400}, &found);
  EXPECT_THAT(found.collectives, SizeIs(19));
}

}  // namespace
}  // namespace syncline::timeline
