// SPDX-License-Identifier: Apache-2.0
#include "timeline/transfers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::timeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A rank of group "0" as it is recorded; process and node are `number`.
class Rank {
 public:
  Rank(TransferMatcher* matcher, uint32_t number, uint64_t sequence = 0, uint32_t size = 2,
       std::optional<int32_t> rank = std::nullopt)
      : Rank(matcher, Unannounced{number}) {
    Announce(sequence, size, rank);
  }
  struct Unannounced {
    uint32_t number = 0;
  };
  Rank(TransferMatcher* matcher, Unannounced process)
      : matcher_(matcher), number_(process.number) {}
  void Announce(uint64_t sequence, uint32_t size = 2, std::optional<int32_t> rank = std::nullopt) {
    matcher_->OnGroup(number_, number_, {"", "", "0", "0-1", "", size},
                      rank.value_or(static_cast<int32_t>(number_)), sequence);
  }
  uint64_t Send(int32_t peer, int64_t at_ns, int32_t tag = 0, uint64_t bytes = 8) {
    return Begin(true, peer, at_ns, tag, bytes);
  }
  uint64_t Receive(int32_t peer, int64_t at_ns, int32_t tag = 0, uint64_t bytes = 8) {
    return Begin(false, peer, at_ns, tag, bytes);
  }
  void Ended(uint64_t id, int64_t at_ns, int32_t peer = -1) {
    matcher_->OnEnd(number_, id, peer, 1, std::nullopt, At(at_ns));
  }
  void Received(int32_t peer, int64_t at_ns, int32_t tag = 0, uint64_t bytes = 8) {
    Ended(Receive(peer, at_ns - 1, tag, bytes), at_ns);
  }

 private:
  uint64_t Begin(bool send, int32_t peer, int64_t at_ns, int32_t tag, uint64_t bytes) {
    matcher_->OnBegin(number_, {++next_id_, "0", send, peer, tag, bytes, kNoTrack}, At(at_ns));
    return next_id_;
  }
  TransferMatcher::Place At(int64_t ns) const { return {{{number_}, ns}, {ns}, 1}; }

  TransferMatcher* matcher_;
  uint32_t number_;
  uint64_t next_id_ = 0;
};

std::vector<std::pair<int64_t, int64_t>> Times(const Transfers& found) {
  std::vector<std::pair<int64_t, int64_t>> times;
  for (const Transfer& transfer : found.transfers) {
    times.emplace_back(transfer.send_begin.ns, transfer.received ? transfer.received->ns : -1);
  }
  return times;
}

TEST(TransferMatcherTest, SeveralInFlightByTagAndOrder) {
  TransferMatcher matcher;
  Rank a(&matcher, 0);
  Rank b(&matcher, 1);
  a.Send(1, 10, /*tag=*/1);
  a.Send(1, 11, /*tag=*/2);
  a.Send(1, 12, /*tag=*/1);
  const uint64_t second_tag = b.Receive(0, 5, 2);
  const uint64_t first = b.Receive(0, 6, 1);
  const uint64_t second = b.Receive(0, 7, 1);
  b.Ended(second, 30);  // waited for in another order than they arrive
  b.Ended(first, 31);
  b.Ended(second_tag, 32);
  const Transfers found = matcher.Match();
  EXPECT_THAT(Times(found), ElementsAre(std::pair(10, 31), std::pair(12, 30), std::pair(11, 32)));
  ASSERT_THAT(found.channels, SizeIs(2));
  EXPECT_EQ(found.channels[0].tag, 1);
  EXPECT_EQ(found.transfers[0].send_node, 0u);
  EXPECT_EQ(found.transfers[0].receive_node, 1u);
  EXPECT_EQ(found.unmatched_sends + found.unmatched_receives + found.undecided, 0u);
}

TEST(TransferMatcherTest, AReceiverThatWasAttachedLater) {
  for (const uint32_t size : {2u, 4u}) {
    TransferMatcher matcher;
    Rank a(&matcher, 0, 100, size);
    Rank b(&matcher, 1, 102, size);
    for (int64_t i = 0; i < 10; ++i) a.Send(1, 1000 * i);
    for (int64_t i = 2; i < 10; ++i) b.Received(0, 1000 * i + 300);
    const Transfers found = matcher.Match();
    ASSERT_THAT(found.transfers, SizeIs(8)) << size;
    for (const Transfer& transfer : found.transfers) {
      EXPECT_EQ(transfer.received->ns - transfer.send_begin.ns, 300);
    }
    EXPECT_EQ(found.unmatched_sends, 2u);
  }
}

TEST(TransferMatcherTest, NumbersTellALaggingReceiverOfTwo) {
  TransferMatcher matcher;
  Rank a(&matcher, 0, 50);
  Rank b(&matcher, 1, 50);
  // Received three sends later: by order alone earlier receives would do as well.
  for (int64_t i = 0; i < 20; ++i) a.Send(1, 1000 * i);
  for (int64_t i = 0; i < 20; ++i) b.Received(0, 1000 * i + 3300);
  for (const Transfer& transfer : matcher.Match().transfers) {
    EXPECT_EQ(transfer.received->ns - transfer.send_begin.ns, 3300);
  }
}

TEST(TransferMatcherTest, WhereNumbersLeaveTwoItIsUndecided) {
  TransferMatcher matcher;
  Rank a(&matcher, 0, 50);
  Rank b(&matcher, 1, 51);
  for (int64_t i = 0; i < 20; ++i) {
    a.Send(1, 1000 * i);
    a.Received(1, 1000 * i + 500);
    b.Received(0, 1000 * i + 3300);
    b.Send(0, 1000 * i + 3400);
  }
  EXPECT_GT(matcher.Match().undecided, 0u);
}

TEST(TransferMatcherTest, NothingIsReceivedBeforeItWasSentNorWithOtherBytes) {
  TransferMatcher matcher;
  Rank a(&matcher, 0, 7, 3);
  Rank b(&matcher, 1, 7, 3);
  a.Send(1, 1000);
  b.Received(0, 500);
  a.Send(1, 2000, /*tag=*/1, 8);
  b.Received(0, 2500, /*tag=*/1, 16);
  const Transfers found = matcher.Match();
  EXPECT_THAT(found.transfers, IsEmpty());
  EXPECT_EQ(found.undecided, 4u);
}

TEST(TransferMatcherTest, FromAnybodyIsKnownOnceItIsThere) {
  TransferMatcher matcher;
  Rank a(&matcher, 0);
  Rank b(&matcher, 1);
  a.Send(1, 10);
  b.Ended(b.Receive(-1, 5), 20, /*peer=*/0);
  b.Receive(-1, 30);
  const Transfers found = matcher.Match();
  EXPECT_THAT(Times(found), ElementsAre(std::pair(10, 20)));
  EXPECT_EQ(found.unmatched_receives, 1u);
}

// Shifts are found in all that was read; what each of two cuts keeps makes up the whole.
TEST(TransferMatcherTest, OfACutThereIsWhatArrivedInIt) {
  for (const bool second : {false, true}) {
    TransferMatcher matcher;
    Rank a(&matcher, 0);
    Rank b(&matcher, 1);
    for (int64_t i = 0; i < 10; ++i) a.Send(1, 1000 * i);
    for (int64_t i = 0; i < 8; ++i) b.Received(0, 1000 * i + 300);
    b.Receive(-1, 9500);
    const Transfers found =
        second ? matcher.Match(Interval{{4100}, {20000}}) : matcher.Match(Interval{{0}, {4100}});
    EXPECT_THAT(Times(found), second ? ElementsAre(std::pair(4000, 4300), std::pair(5000, 5300),
                                                   std::pair(6000, 6300), std::pair(7000, 7300))
                                     : ElementsAre(std::pair(0, 300), std::pair(1000, 1300),
                                                   std::pair(2000, 2300), std::pair(3000, 3300)));
    EXPECT_EQ(found.unmatched_sends, second ? 2u : 0u);
    EXPECT_EQ(found.unmatched_receives, second ? 1u : 0u);
    EXPECT_EQ(found.undecided, 0u);
  }
}

// Attached in the middle, killed while a send is under way, started again; each life has another
// shift, and nothing leads from one to the other.
TEST(TransferMatcherTest, RanksThatWereStartedAgainAreMatchedAnew) {
  TransferMatcher matcher;
  Rank a(&matcher, 0, 100);
  Rank b(&matcher, 1, 102);
  Rank a2(&matcher, 2, 0, 2, 0);
  Rank b2(&matcher, 3, 0, 2, 1);
  for (int64_t i = 0; i < 11; ++i) a.Send(1, 1000 * i);
  for (int64_t i = 2; i < 10; ++i) b.Received(0, 1000 * i + 300);
  for (int64_t i = 20; i < 30; ++i) a2.Send(1, 1000 * i);
  for (int64_t i = 20; i < 30; ++i) b2.Received(0, 1000 * i + 300);
  const Transfers found = matcher.Match();
  ASSERT_THAT(found.transfers, SizeIs(18));
  for (const Transfer& transfer : found.transfers) {
    EXPECT_EQ(transfer.received->ns - transfer.send_begin.ns, 300);
    EXPECT_EQ(transfer.receive_node, transfer.send_node + 1);
  }
  EXPECT_THAT(found.channels, SizeIs(1));
  EXPECT_EQ(found.unmatched_sends, 3u);
  EXPECT_EQ(found.unmatched_receives + found.undecided, 0u);
}

// So short that the ranks' parts are never there at the same time.
TEST(TransferMatcherTest, LivesOfASingleTransferAreTheNearest) {
  TransferMatcher matcher;
  Rank a(&matcher, 0);
  Rank b2(&matcher, 3, 0, 2, 1);
  Rank b(&matcher, 1);
  Rank a2(&matcher, 2, 0, 2, 0);
  a.Send(1, 10);
  b.Received(0, 20);
  a2.Send(1, 5010);
  b2.Received(0, 5020);
  EXPECT_THAT(Times(matcher.Match()), ElementsAre(std::pair(10, 20), std::pair(5010, 5020)));
}

// Groups are announced twice a second: one that is made while it is recorded is used before that.
TEST(TransferMatcherTest, BeforeItsGroupIsAnnouncedATransferIsOneToo) {
  TransferMatcher matcher;
  Rank a(&matcher, Rank::Unannounced{0});
  Rank b(&matcher, Rank::Unannounced{1});
  a.Send(1, 10);
  a.Announce(1);
  b.Received(0, 20);
  b.Received(0, 1020);
  b.Announce(2);
  a.Send(1, 1010);
  const Transfers found = matcher.Match();
  EXPECT_THAT(Times(found), ElementsAre(std::pair(10, 20), std::pair(1010, 1020)));
  EXPECT_EQ(found.unmatched_sends + found.unmatched_receives + found.undecided, 0u);
}

// The number at the announcement tells that more went before than was recorded.
TEST(TransferMatcherTest, WhatIsSeenFirstNeedNotBeTheFirst) {
  TransferMatcher matcher;
  Rank a(&matcher, Rank::Unannounced{0});
  Rank b(&matcher, Rank::Unannounced{1});
  for (int64_t i = 0; i < 20; ++i) {
    a.Send(1, 1000 * i);
    if (i > 0) b.Received(0, 1000 * i + 3300);
  }
  a.Announce(25);
  b.Announce(25);
  EXPECT_THAT(Times(matcher.Match()), testing::Contains(std::pair(1000, 4300)));
}

TEST(TransferMatcherTest, OfAGroupThatIsNeverAnnouncedTheyAreCounted) {
  TransferMatcher matcher;
  Rank a(&matcher, Rank::Unannounced{0});
  Rank b(&matcher, Rank::Unannounced{1});
  a.Send(1, 10);
  b.Received(0, 20);
  const Transfers found = matcher.Match();
  EXPECT_THAT(found.transfers, IsEmpty());
  EXPECT_EQ(found.undecided, 2u);
}

TEST(TransferMatcherTest, WhatNobodyWaitedForHasNoArrival) {
  TransferMatcher matcher;
  Rank a(&matcher, 0);
  Rank b(&matcher, 1);
  a.Send(1, 10);
  b.Receive(0, 5);
  EXPECT_THAT(Times(matcher.Match()), ElementsAre(std::pair(10, -1)));
}

}  // namespace
}  // namespace syncline::timeline
