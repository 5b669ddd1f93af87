// SPDX-License-Identifier: Apache-2.0
#include "timeline/messages.h"

#include <gtest/gtest.h>

namespace syncline::timeline {
namespace {

constexpr MessageMatcher::Address kA{"10.0.0.1", 4000};
constexpr MessageMatcher::Address kB{"10.0.0.2", 80};
constexpr int64_t kSecond = 1'000'000'000;

MessageMatcher::Place At(int64_t ns) { return {ns, {ns}}; }

class MessagesTest : public testing::Test {
 protected:
  // An end of process 0 of a node.
  uint32_t End(uint32_t node, uint64_t cookie, MessageMatcher::Address local,
               MessageMatcher::Address remote) {
    const uint32_t end = matcher_.EndOf(node, 0, cookie, {node});
    matcher_.OnConnection(end, local, remote);
    return end;
  }
  MessageMatcher matcher_{MessageMatcher::Options()};
};

TEST_F(MessagesTest, TheExampleOfTheHeader) {
  const uint32_t a = End(0, 1, kA, kB);
  const uint32_t b = End(1, 1, kB, kA);
  matcher_.OnSend(a, 0, 10, At(100), 7);
  matcher_.OnSend(a, 10, 30, At(120), 7);
  matcher_.OnReceive(b, 0, 25, At(150), 8);
  matcher_.OnReceive(b, 25, 15, At(160), 9);
  matcher_.OnRetransmits(a, 3);
  matcher_.OnRetransmits(a, 5);
  const MessageMatcher::Result result = matcher_.Match();
  ASSERT_EQ(result.streams.size(), 1u);
  const MessageStream& stream = result.streams[0];
  EXPECT_EQ(stream.send_node, 0u);
  EXPECT_EQ(stream.receive_node, 1u);
  EXPECT_EQ(stream.from, "10.0.0.1:4000");
  EXPECT_EQ(stream.to, "10.0.0.2:80");
  EXPECT_EQ(stream.sent_bytes, 40u);
  EXPECT_EQ(stream.matched_bytes, 40u);
  EXPECT_EQ(stream.retransmits, 2u);
  ASSERT_EQ(stream.messages.size(), 2u);
  EXPECT_EQ(stream.messages[0].sent_ns, 100);
  EXPECT_EQ(stream.messages[0].first_ns, 150);
  EXPECT_EQ(stream.messages[0].last_ns, 150);
  EXPECT_EQ(stream.messages[1].first_ns, 150);
  EXPECT_EQ(stream.messages[1].last_ns, 160);
  EXPECT_EQ(stream.messages[1].from, 7u);
  EXPECT_EQ(stream.messages[1].to, 9u);
  EXPECT_EQ(result.nodes[0].connections + result.nodes[1].connections, 1u);
}

TEST_F(MessagesTest, WhatTheOtherEndDidNotRecordAsAWholeIsNoMessage) {
  const uint32_t a = End(0, 1, kA, kB);
  const uint32_t b = End(1, 1, kB, kA);
  for (uint64_t i = 0; i < 5; ++i) matcher_.OnSend(a, 100 + 10 * i, 10, At(100), 7);
  matcher_.OnReceive(b, 90, 15, At(150), 8);   // [90, 105): begins before the sends are recorded
  matcher_.OnReceive(b, 115, 15, At(160), 8);  // [105, 115) was lost
  matcher_.OnReceive(b, 130, 12, At(170), 8);  // ends in the middle of the last
  const MessageStream stream = matcher_.Match().streams.at(0);
  EXPECT_EQ(stream.messages.size(), 2u);  // [120, 130) and [130, 140)
  EXPECT_EQ(stream.messages.at(0).first_ns, 160);
  EXPECT_EQ(stream.unmatched, 3u);
  EXPECT_EQ(stream.matched_bytes, 32u);
}

TEST_F(MessagesTest, AddressesThatDoNotMirrorStayAlone) {
  const uint32_t a = End(0, 1, kA, kB);
  const uint32_t b = End(1, 1, kB, {"192.168.0.1", 4000});  // translated on the way
  matcher_.OnSend(a, 0, 10, At(100), 7);
  matcher_.OnReceive(b, 0, 10, At(150), 8);
  const MessageMatcher::Result result = matcher_.Match();
  EXPECT_TRUE(result.streams.empty());
  EXPECT_EQ(result.nodes[0].alone + result.nodes[1].alone, 2u);
  EXPECT_EQ(result.nodes[0].alone_bytes, 10u);
}

TEST_F(MessagesTest, AnAddressThatIsUsedAgainIsToldApartByTime) {
  const uint32_t a = End(0, 1, kA, kB);
  const uint32_t b = End(1, 1, kB, kA);
  const uint32_t a_again = End(0, 2, kA, kB);
  const uint32_t b_again = End(1, 2, kB, kA);
  matcher_.OnSend(a, 0, 10, At(100), 7);
  matcher_.OnReceive(b, 0, 10, At(150), 8);
  matcher_.OnSend(a_again, 0, 10, At(60 * kSecond), 7);
  matcher_.OnReceive(b_again, 0, 10, At(60 * kSecond + 50), 8);
  const MessageMatcher::Result result = matcher_.Match();
  ASSERT_EQ(result.streams.size(), 2u);
  for (const MessageStream& stream : result.streams) {
    ASSERT_EQ(stream.messages.size(), 1u);
    EXPECT_EQ(stream.messages[0].first_ns - stream.messages[0].sent_ns, 50);
  }
}

TEST_F(MessagesTest, HostsThatShareAddressesAreNotGuessedAt) {
  const uint32_t a = End(0, 1, kA, kB);
  matcher_.OnSend(a, 0, 10, At(100), 7);
  for (const uint32_t node : {1u, 2u}) {  // two simulated networks in one recording
    matcher_.OnReceive(End(node, 1, kB, kA), 0, 10, At(150), 8);
  }
  EXPECT_TRUE(matcher_.Match().streams.empty());
}

TEST_F(MessagesTest, LoopbackStaysOnItsNode) {
  constexpr MessageMatcher::Address kLocalA{"127.0.0.1", 4000};
  constexpr MessageMatcher::Address kLocalB{"127.0.0.1", 80};
  for (const uint32_t node : {0u, 1u}) {
    const uint32_t a = End(node, 1, kLocalA, kLocalB);
    const uint32_t b = End(node, 2, kLocalB, kLocalA);
    matcher_.OnSend(a, 0, 10, At(100 + node), 7);
    matcher_.OnReceive(b, 0, 10, At(150), 8);
  }
  const MessageMatcher::Result result = matcher_.Match();
  ASSERT_EQ(result.streams.size(), 2u);
  EXPECT_EQ(result.streams[0].send_node, result.streams[0].receive_node);
}

TEST_F(MessagesTest, DoubtfulPositionsAreDropped) {
  const uint32_t a = End(0, 1, kA, kB);
  const uint32_t b = End(1, 1, kB, kA);
  matcher_.OnSend(a, 0, 10, At(100), 7);
  matcher_.OnDoubt(a, false);
  matcher_.OnSend(a, 50, 10, At(200), 7);
  matcher_.OnSend(a, 60, 10, At(40'000'000), 7);
  matcher_.OnSend(a, 70, 10, At(60'000'000), 7);  // the kernel may not have been asked since
  matcher_.OnReceive(b, 0, 90, At(250), 8);
  const MessageMatcher::Result result = matcher_.Match();
  ASSERT_EQ(result.streams.size(), 1u);
  ASSERT_EQ(result.streams[0].messages.size(), 1u);
  EXPECT_EQ(result.streams[0].messages[0].sent_ns, 200);
  EXPECT_EQ(result.streams[0].unplaced_bytes, 30u);
  EXPECT_EQ(result.nodes[0].doubted, 1u);
}

TEST(MessagesMemoryTest, IsLimited) {
  MessageMatcher matcher({.transfers_max = 3});
  const uint32_t a = matcher.EndOf(0, 0, 1, {0});
  const uint32_t b = matcher.EndOf(1, 0, 1, {1});
  matcher.OnConnection(a, kA, kB);
  matcher.OnConnection(b, kB, kA);
  matcher.OnReceive(b, 0, 30, At(200), 8);
  for (uint64_t i = 0; i < 3; ++i) matcher.OnSend(a, 10 * i, 10, At(100), 7);
  const MessageMatcher::Result result = matcher.Match();
  ASSERT_EQ(result.streams.size(), 1u);
  EXPECT_EQ(result.streams[0].messages.size(), 2u);
  EXPECT_EQ(result.streams[0].sent_bytes, 30u);
  EXPECT_EQ(result.nodes[0].left_out, 1u);
}

}  // namespace
}  // namespace syncline::timeline
