// SPDX-License-Identifier: Apache-2.0
#include "timeline/collectives.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::timeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kMain = 1;
constexpr uint32_t kWorker = 2;

// One process as it is recorded; time goes on by itself.
class Rank {
 public:
  Rank(CollectiveMatcher* matcher, uint32_t node, int32_t rank, int64_t now_ns = 1000)
      : matcher_(matcher), node_(node), rank_(rank), now_ns_(now_ns) {
    process_ = matcher->AddProcess(node);
  }

  void Group(const std::string& name, uint64_t sequence, uint32_t size = 2) {
    matcher_->OnGroup(process_, kMain, {{"", "", name, "0-1", "", size}, rank_, sequence});
  }
  // PyTorch launches one by itself, and it is worked at.
  void Launch(const std::string& name = "allreduce", const std::string& work = "all_reduce") {
    matcher_->OnLaunch(process_, kMain, name, Now());
    now_ns_ += 100;
    if (!works) return;
    matcher_->OnWorkBegin(process_, kWorker, work);
    matcher_->OnWorkEnd(process_, kWorker, Now());
    now_ns_ += 100;
  }
  // The program asks for it.
  void Call(const std::string& group, uint64_t sequence, const std::string& name = "allreduce",
            uint64_t bytes = 4) {
    matcher_->OnCall(process_, kMain, group, name, sequence, bytes, Now());
    Launch(name, name == "allreduce" ? "all_reduce" : name);
  }
  void Transfer(const std::string& group) { matcher_->OnTransfer(process_, group); }
  uint32_t process() const { return process_; }
  CollectiveMatcher::Place Now() const { return {{{node_}, now_ns_}, {now_ns_}, 0}; }
  void Later(int64_t ns) { now_ns_ += ns; }

  bool works = true;  // false: a backend of which only launches are seen

 private:
  CollectiveMatcher* matcher_;
  uint32_t node_;
  int32_t rank_;
  int64_t now_ns_;
  uint32_t process_;
};

std::vector<std::pair<uint64_t, size_t>> NumbersAndRanks(const Collectives& found) {
  std::vector<std::pair<uint64_t, size_t>> numbers;
  for (const Collective& collective : found.collectives) {
    numbers.emplace_back(collective.number, collective.members.size());
  }
  return numbers;
}

TEST(CollectiveMatcherTest, RanksThatWereAttachedAtDifferentPointsMeetByNumber) {
  CollectiveMatcher matcher;
  Rank a(&matcher, 0, 0);
  Rank b(&matcher, 1, 1);
  a.Group("0", 50);
  for (int i = 0; i < 3; ++i) a.Launch();
  b.Later(200);
  b.Group("0", 51);
  for (int i = 0; i < 2; ++i) b.Launch();
  const Collectives found = matcher.Match();
  EXPECT_THAT(NumbersAndRanks(found),
              ElementsAre(std::pair(50, 1), std::pair(51, 2), std::pair(52, 2)));
  EXPECT_EQ(found.undecided.size(), 0u);
  ASSERT_THAT(found.groups, SizeIs(1));
  EXPECT_EQ(found.collectives[1].members[0].left_at->ns, 1300);
}

TEST(CollectiveMatcherTest, PyTorchsOwnBelongToTheGroupThatGrew) {
  CollectiveMatcher matcher;
  for (const uint32_t node : {0u, 1u}) {
    Rank rank(&matcher, node, static_cast<int32_t>(node));
    rank.Group("0", 10);
    rank.Group("1", 3);
    rank.Launch();
    rank.Call("1", 3);
    rank.Launch();
    rank.Call("1", 4, "barrier");
    rank.Group("0", 12);
    rank.Group("1", 5);
    rank.Launch();  // after the last announcement: as before
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(NumbersAndRanks(found),
              ElementsAre(std::pair(10, 2), std::pair(11, 2), std::pair(12, 2), std::pair(3, 2),
                          std::pair(4, 2)));
  EXPECT_EQ(found.collectives[4].name, "barrier");
  EXPECT_EQ(found.undecided.size(), 0u);
}

TEST(CollectiveMatcherTest, WhereTwoGroupsGrewNobodyCanTell) {
  CollectiveMatcher matcher;
  for (const uint32_t node : {0u, 1u}) {
    Rank rank(&matcher, node, static_cast<int32_t>(node));
    rank.Group("0", 10);
    rank.Group("1", 3);
    rank.Launch();
    rank.Launch();
    rank.Group("0", 11);
    rank.Group("1", 4);
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(found.collectives, IsEmpty());
  EXPECT_EQ(found.undecided.size(), 4u);
}

TEST(CollectiveMatcherTest, TransfersBetweenTwoRanksAreCountedByBoth) {
  CollectiveMatcher matcher;
  for (const uint32_t node : {0u, 1u}) {
    Rank rank(&matcher, node, static_cast<int32_t>(node));
    rank.Group("0", 10);
    rank.Launch();
    rank.Transfer("0");
    rank.Transfer("0");
    rank.Launch();
  }
  EXPECT_THAT(NumbersAndRanks(matcher.Match()), ElementsAre(std::pair(10, 2), std::pair(13, 2)));
}

TEST(CollectiveMatcherTest, ARankThatIsOffIsShiftedWhereOnlyOneShiftIsPossible) {
  CollectiveMatcher matcher;
  Rank a(&matcher, 0, 0);
  Rank b(&matcher, 1, 1);
  a.Group("0", 50);
  b.Group("0", 47);  // of a larger group some ranks sent to each other
  for (int i = 0; i < 20; ++i)
    a.Launch(i == 7 ? "broadcast" : "allreduce", i == 7 ? "broadcast" : "all_reduce");
  for (int i = 0; i < 20; ++i)
    b.Launch(i == 7 ? "broadcast" : "allreduce", i == 7 ? "broadcast" : "all_reduce");
  const Collectives found = matcher.Match();
  EXPECT_THAT(found.collectives, SizeIs(20));
  for (const Collective& collective : found.collectives) {
    ASSERT_THAT(collective.members, SizeIs(2));
    EXPECT_EQ(collective.members[0].entered_at, collective.members[1].entered_at);
  }
}

// A broadcast's root need not wait: that a rank has left before another enters says nothing of
// their numbers.
TEST(CollectiveMatcherTest, WhereDataFlowOneWayARankMayBeRoundsAhead) {
  CollectiveMatcher matcher;
  Rank a(&matcher, 0, 0);
  Rank b(&matcher, 1, 1);
  a.Group("0", 50);
  b.Group("0", 50);
  for (int i = 0; i < 20; ++i) {
    a.Launch("broadcast", "broadcast");
    b.Later(500);
    b.Launch("broadcast", "broadcast");
  }
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(20));
  for (const Collective& collective : found.collectives) {
    EXPECT_THAT(collective.members, SizeIs(2));
  }
}

// A barrier that is made of transfers between some ranks moves their numbers, by any amount.
TEST(CollectiveMatcherTest, RanksThatAreFarOffMeetInTime) {
  CollectiveMatcher matcher;
  Rank a(&matcher, 0, 0);
  Rank b(&matcher, 1, 1);
  a.Group("0", 5000);
  b.Group("0", 47);
  for (int i = 0; i < 300; ++i) {
    for (Rank* rank : {&a, &b}) rank->Launch("reduce_scatter_base", "all_reduce");
  }
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(300));
  EXPECT_EQ(found.collectives[299].members[1].left_at, found.collectives[299].members[0].left_at);
}

// What the size of a round says when the times say nothing.
TEST(CollectiveMatcherTest, SizesTellRoundsApart) {
  CollectiveMatcher matcher;
  for (const int id : {0, 1}) {
    Rank rank(&matcher, static_cast<uint32_t>(id), id);
    const uint64_t first = id == 0 ? 10 : 13;
    rank.Group("0", first);
    for (uint64_t i = 0; i < 9; ++i) {
      rank.Call("0", first + i, "broadcast", 100 + i * i);
    }
  }
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(9));
  for (const Collective& collective : found.collectives) {
    EXPECT_THAT(collective.members, SizeIs(2));
  }
}

// Each group has threads of its own. One has several under way, late, while the other's are begun
// and done: whose work is whose is not to be told by the order of launches.
TEST(CollectiveMatcherTest, AWorkBelongsToItsThreadsGroup) {
  CollectiveMatcher matcher;
  const uint32_t process = matcher.AddProcess(0);
  int64_t now_ns = 0;
  const auto place = [&] { return CollectiveMatcher::Place{{{0}, ++now_ns}, {now_ns}, 0}; };
  const auto call = [&](const char* group, uint64_t number) {
    matcher.OnCall(process, kMain, group, "allreduce", number, 8, place());
    matcher.OnLaunch(process, kMain, "allreduce", place());
  };
  for (const char* name : {"0", "1"}) {
    matcher.OnGroup(process, kMain, {{"", "", name, "0", "", 1}, 0, 0});
  }
  constexpr uint32_t kSlow[] = {21, 22};
  constexpr uint32_t kQuick = 23;
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 4; ++i) call("0", 4 * round + i);
    for (const uint32_t thread : kSlow) matcher.OnWorkBegin(process, thread, "all_reduce");
    for (uint64_t i = 0; i < 2; ++i) {
      call("1", 2 * round + i);
      matcher.OnWorkBegin(process, kQuick, "all_reduce");
      matcher.OnWorkEnd(process, kQuick, place());
    }
    now_ns += 1000;
    for (const uint32_t thread : kSlow) {
      matcher.OnWorkEnd(process, thread, place());
      matcher.OnWorkBegin(process, thread, "all_reduce");
    }
    for (const uint32_t thread : kSlow) matcher.OnWorkEnd(process, thread, place());
  }
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(18));
  for (const Collective& collective : found.collectives) {
    const CollectiveMember& member = collective.members[0];
    ASSERT_TRUE(member.left_at.has_value());
    const bool slow = found.groups[collective.group].name == "0";
    EXPECT_EQ(member.left_at->ns - member.entered_at.ns > 1000, slow) << collective.number;
  }
}

// Of one launch there are as many works as there are tensors, and nobody says how many.
TEST(CollectiveMatcherTest, WhereWorksCannotBeCountedNoEndIsKnown) {
  for (const bool coalesced : {false, true}) {
    CollectiveMatcher matcher;
    Rank rank(&matcher, 0, 0);
    rank.Group("0", 0);
    rank.Launch();
    if (coalesced) rank.Launch("reduce_scatter_tensor_coalesced", "all_reduce");
    rank.Launch();
    const Collectives found = matcher.Match();
    for (const Collective& collective : found.collectives) {
      EXPECT_EQ(collective.members[0].left_at.has_value(), !coalesced);
    }
  }
}

// They take no number, which the next call has then: that is no new life of the group.
TEST(CollectiveMatcherTest, CallsThatAreRefusedAreNone) {
  CollectiveMatcher matcher;
  for (const int id : {0, 1}) {
    Rank rank(&matcher, static_cast<uint32_t>(id), id);
    rank.Group("0", 5);
    rank.Call("0", 5);
    rank.works = false;
    rank.Call("0", 6, "broadcast");                                             // by the backend
    matcher.OnCall(rank.process(), kMain, "0", "allgather", 6, 8, rank.Now());  // by PyTorch
    rank.works = true;
    rank.Call("0", 6);
    rank.Call("0", 7);
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(found.groups, SizeIs(1));
  EXPECT_THAT(NumbersAndRanks(found),
              ElementsAre(std::pair(5, 2), std::pair(6, 2), std::pair(7, 2)));
  for (const Collective& collective : found.collectives) {
    EXPECT_EQ(collective.name, "allreduce");
    EXPECT_TRUE(collective.members[1].left_at.has_value());
  }
  EXPECT_THAT(found.undecided, IsEmpty());
}

// What a group's life is called, and its collectives.
std::vector<std::string> LivesIn(const Collectives& found) {
  std::vector<std::string> lives;
  for (const Collective& collective : found.collectives) {
    lives.push_back(found.groups[collective.group].description + " " +
                    std::to_string(collective.number) + " x" +
                    std::to_string(collective.members.size()));
  }
  return lives;
}

TEST(CollectiveMatcherTest, AGroupThatIsMadeAnewIsAnother) {
  CollectiveMatcher matcher;
  Rank ranks[] = {{&matcher, 0, 0}, {&matcher, 1, 1}};
  for (Rank& rank : ranks) {
    rank.Group("0", 7);
    rank.Call("0", 7);
    rank.Call("0", 8);
    rank.Launch();  // PyTorch's own, #9
    rank.Later(1000);
    rank.Call("0", 0);
    rank.Call("0", 1);
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(LivesIn(found),
              ElementsAre(" 7 x2", " 8 x2", " 9 x2", "group 0 (2) 0 x2", "group 0 (2) 1 x2"));
  EXPECT_EQ(found.undecided.size(), 0u);
}

TEST(CollectiveMatcherTest, WithoutCallsALifeBeginsAsManyBeforeItIsAnnounced) {
  CollectiveMatcher matcher;
  Rank ranks[] = {{&matcher, 0, 0}, {&matcher, 1, 1}};
  for (Rank& rank : ranks) {
    rank.Group("0", 100);
    for (int i = 0; i < 3; ++i) rank.Launch();
    rank.Group("0", 103);
    rank.Launch();
    rank.Later(1000);
    rank.Launch();  // the new life's first
    rank.Launch();
    rank.Group("0", 2);
    rank.Launch();
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(LivesIn(found),
              ElementsAre(" 100 x2", " 101 x2", " 102 x2", " 103 x2", "group 0 (2) 0 x2",
                          "group 0 (2) 1 x2", "group 0 (2) 2 x2"));
  EXPECT_EQ(found.undecided.size(), 0u);
}

TEST(CollectiveMatcherTest, RanksThatWereStartedAgainAreAnotherLife) {
  CollectiveMatcher matcher;
  for (const int64_t begin_ns : {1000, 50'000, 100'000}) {
    for (const int rank : {0, 1}) {
      if (begin_ns == 50'000 && rank == 0) continue;  // of one only one rank was recorded
      Rank process(&matcher, static_cast<uint32_t>(rank), rank, begin_ns + rank);
      process.Call("0", 0);  // before the group is announced
      process.Launch();
      process.Group("0", 2);
      process.Call("0", 2);
    }
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(
      LivesIn(found),
      ElementsAre(" 0 x2", " 1 x2", " 2 x2", "group 0 (2) 0 x1", "group 0 (2) 1 x1",
                  "group 0 (2) 2 x1", "group 0 (3) 0 x2", "group 0 (3) 1 x2", "group 0 (3) 2 x2"));
  EXPECT_EQ(found.undecided.size(), 0u);
}

TEST(CollectiveMatcherTest, AGroupThatIsNeverAnnouncedIsCounted) {
  CollectiveMatcher matcher;
  Rank rank(&matcher, 0, 0);
  rank.Call("0", 0);
  rank.Call("0", 1);
  const Collectives found = matcher.Match();
  EXPECT_THAT(found.groups, IsEmpty());
  EXPECT_EQ(found.undecided.size(), 2u);
}

TEST(CollectiveMatcherTest, ACallToAGroupThatIsNeverAnnouncedCostsTheOthersNothing) {
  CollectiveMatcher matcher;
  for (const int id : {0, 1}) {
    Rank rank(&matcher, static_cast<uint32_t>(id), id);
    rank.Group("0", 0);
    rank.Launch();
    rank.Group("0", 1);
    rank.Call("7", 0, "barrier");
    rank.Launch();
    rank.Group("0", 2);
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(LivesIn(found), ElementsAre(" 0 x2", " 1 x2"));
  EXPECT_EQ(found.undecided.size(), 2u);
}

TEST(CollectiveMatcherTest, OfACutThereIsWhatEndedInIt) {
  CollectiveMatcher matcher;
  Rank a(&matcher, 0, 0);
  Rank b(&matcher, 1, 1);
  for (Rank* rank : {&a, &b}) {
    rank->Call("never announced", 0);
    rank->Group("0", 50);
    for (int i = 0; i < 4; ++i) rank->Launch();
  }
  const Collectives all = matcher.Match();
  ASSERT_THAT(all.collectives, SizeIs(4));
  ASSERT_EQ(all.undecided.size(), 2u);
  const TimelineTime second_ends = *all.collectives[1].members[1].left_at;
  Collectives early = all;
  KeepEndedIn({{0}, second_ends}, &early);
  EXPECT_THAT(NumbersAndRanks(early), ElementsAre(std::pair(50, 2)));
  EXPECT_EQ(early.undecided.size(), 2u);
  Collectives late = all;
  KeepEndedIn({second_ends, {kUnknownHi}}, &late);
  EXPECT_THAT(NumbersAndRanks(late),
              ElementsAre(std::pair(51, 2), std::pair(52, 2), std::pair(53, 2)));
  EXPECT_EQ(late.undecided.size(), 0u);
}

TEST(CollectiveMatcherTest, AGroupLivesOnWhileAnotherIsMadeAnew) {
  CollectiveMatcher matcher;
  for (const int id : {0, 1}) {
    Rank rank(&matcher, static_cast<uint32_t>(id), id);
    for (uint64_t number = 100; number < 106; number += 2) {
      rank.Group("0", number);
      rank.Group("sub", 0);
      rank.Call("sub", 0);
      rank.Launch();  // PyTorch's, on "0"
      rank.Launch();
      rank.Group("0", number + 2);
      rank.Group("sub", 1);
    }
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(LivesIn(found),
              ElementsAre(" 100 x2", " 101 x2", " 102 x2", " 103 x2", " 104 x2", " 105 x2", " 0 x2",
                          "group sub (2) 0 x2", "group sub (3) 0 x2"));
  EXPECT_EQ(found.undecided.size(), 0u);
}

TEST(CollectiveMatcherTest, WhereOnlyLaunchesAreSeenRanksMeetInTime) {
  CollectiveMatcher matcher;
  for (const int id : {0, 1}) {
    Rank rank(&matcher, static_cast<uint32_t>(id), id);
    rank.works = false;
    for (int life = 0; life < 3; ++life) {
      rank.Later(1'000'000'000 - 50 * id);  // rank 1 is the first to enter
      if (life == 0 && id == 1) continue;   // and was attached in the second life
      if (life == id) rank.Group("0", 0);
      for (uint64_t number = 0; number < 3; ++number) rank.Call("0", number);
    }
  }
  const Collectives found = matcher.Match();
  for (const Collective& collective : found.collectives) {
    const int64_t entered_ns = collective.members[0].entered_at.ns;
    EXPECT_EQ(collective.members.size(), entered_ns < 1'500'000'000 ? 1u : 2u);
    EXPECT_NEAR(collective.members.back().entered_at.ns, entered_ns, 1000);
  }
  EXPECT_THAT(found.collectives, SizeIs(9));
}

TEST(CollectiveMatcherTest, ALifeMayBeginWithTransfers) {
  CollectiveMatcher matcher;
  for (const int id : {0, 1}) {
    Rank rank(&matcher, static_cast<uint32_t>(id), id);
    rank.Group("0", 10);
    rank.Launch();
    rank.Launch();
    rank.Later(10'000);
    rank.Transfer("0");
    rank.Transfer("0");
    rank.Call("0", 2);
    rank.Group("0", 3);
  }
  EXPECT_THAT(LivesIn(matcher.Match()), ElementsAre(" 10 x2", " 11 x2", "group 0 (2) 2 x2"));
}

// Two threads that read their numbers one after the other may say them the other way round.
TEST(CollectiveMatcherTest, ThreadsThatOvertakeEachOtherMakeNoNewLife) {
  CollectiveMatcher matcher;
  Rank rank(&matcher, 0, 0);
  rank.Group("0", 5);
  matcher.OnCall(rank.process(), kWorker, "0", "allreduce", 6, 4, rank.Now());
  rank.Call("0", 5);
  const Collectives found = matcher.Match();
  EXPECT_THAT(found.groups, SizeIs(1));
}

TEST(CollectiveMatcherTest, JobsAndGroupsAreKeptApart) {
  CollectiveMatcher matcher;
  for (const char* job : {"day", "night"}) {
    Rank rank(&matcher, 0, 0);
    matcher.OnGroup(rank.process(), kMain, {{job, "", "0", "0-1", "", 2}, 0, 5});
    rank.Launch();
  }
  const Collectives found = matcher.Match();
  EXPECT_THAT(found.groups, SizeIs(2));
  EXPECT_THAT(NumbersAndRanks(found), ElementsAre(std::pair(5, 1), std::pair(5, 1)));
}

}  // namespace
}  // namespace syncline::timeline
