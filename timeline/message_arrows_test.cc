// SPDX-License-Identifier: Apache-2.0
#include "timeline/message_arrows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace syncline::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// `count` messages of `bytes`, one each `period_ns` from `begin_ns` on.
MessageStream StreamOf(size_t count, uint64_t bytes, int64_t period_ns, int64_t begin_ns = 0) {
  MessageStream stream;
  for (size_t i = 0; i < count; ++i) {
    Message message;
    message.bytes = bytes;
    message.sent = {begin_ns + static_cast<int64_t>(i) * period_ns};
    stream.messages.push_back(message);
  }
  return stream;
}

MessageChoice Choose(const std::vector<MessageStream>& streams,
                     size_t arrows_max = kMessageArrowsMax) {
  return ChooseArrows(streams, Drawable(streams, std::nullopt), arrows_max);
}

size_t CountOf(const std::vector<std::vector<size_t>>& chosen) {
  size_t count = 0;
  for (const auto& one : chosen) count += one.size();
  return count;
}

TEST(MessageArrows, AllOfAFew) {
  const std::vector<MessageStream> streams = {StreamOf(3, 10, 5), StreamOf(0, 0, 0)};
  EXPECT_THAT(Choose(streams, 3), ElementsAre(ElementsAre(0, 1, 2), IsEmpty()));
}

// Once all messages of the size at the limit were dropped: 845,833 of one size were none.
TEST(MessageArrows, OfMessagesOfOneSizeAsManyAsAreAllowed) {
  const std::vector<MessageStream> streams = {StreamOf(400'000, 4096, 11),
                                              StreamOf(445'833, 4096, 10)};
  const auto chosen = Choose(streams);
  EXPECT_EQ(chosen[0].size(), kMessageArrowsMax / 2);
  EXPECT_EQ(chosen[1].size(), kMessageArrowsMax / 2);
}

TEST(MessageArrows, AreSpreadOverTime) {
  const std::vector<MessageStream> streams = {StreamOf(100'000, 64, 1'000)};
  const auto chosen = Choose(streams, 1'000).front();
  ASSERT_EQ(chosen.size(), 1'000u);
  size_t last = 0;
  for (const size_t index : chosen) {
    EXPECT_LE(index - last, 200u);
    last = index;
  }
  EXPECT_GE(last, 99'800u);
}

// A second of bursts between long pauses: every burst has its share, and no arrow is given away.
TEST(MessageArrows, PausesLeaveTheirsToTheRest) {
  MessageStream stream;
  for (int64_t burst = 0; burst < 10; ++burst) {
    const MessageStream one = StreamOf(1'000, 64, 10, burst * 1'000'000'000);
    stream.messages.insert(stream.messages.end(), one.messages.begin(), one.messages.end());
  }
  const auto chosen = Choose({stream}, 500).front();
  ASSERT_EQ(chosen.size(), 500u);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  EXPECT_EQ(std::adjacent_find(chosen.begin(), chosen.end()), chosen.end());
  for (size_t burst = 0; burst < 10; ++burst) {
    const auto of_burst = std::count_if(chosen.begin(), chosen.end(),
                                        [&](size_t index) { return index / 1'000 == burst; });
    EXPECT_NEAR(static_cast<double>(of_burst), 50, 3) << burst;
  }
}

TEST(MessageArrows, AreSpreadOverConnections) {
  const std::vector<MessageStream> streams = {StreamOf(100'000, 1'000'000, 10),
                                              StreamOf(50, 8, 10'000),  // small, and few
                                              StreamOf(100'000, 8, 10)};
  const auto chosen = Choose(streams, 450);
  EXPECT_EQ(chosen[0].size(), 200u);
  EXPECT_EQ(chosen[1].size(), 50u);
  EXPECT_EQ(chosen[2].size(), 200u);
}

TEST(MessageArrows, OfEachPartOfTheTimeTheLargest) {
  MessageStream stream = StreamOf(1'000, 64, 1'000);
  for (const size_t large : {3, 517, 999}) stream.messages[large].bytes = 1'000'000;
  const auto chosen = Choose({stream}, 10).front();
  EXPECT_THAT(chosen, ::testing::IsSupersetOf({size_t{3}, size_t{517}, size_t{999}}));
  EXPECT_EQ(chosen.size(), 10u);
}

TEST(MessageArrows, MoreConnectionsThanArrows) {
  std::vector<MessageStream> streams(50, StreamOf(20, 64, 10));
  const auto chosen = Choose(streams, 30);
  EXPECT_EQ(CountOf(chosen), 30u);
  for (const auto& one : chosen) EXPECT_LE(one.size(), 1u);
}

// Only what the cut shows: the others would take the arrows of those.
TEST(MessageArrows, OfACutOnlyWhatLiesInIt) {
  std::vector<MessageStream> streams = {StreamOf(1'000, 64, 10)};
  for (Message& message : streams[0].messages) message.last = {message.sent.ns + 5};
  const MessageChoice drawable = Drawable(streams, Interval{{2'000}, {2'100}});
  EXPECT_THAT(drawable.front(), ElementsAre(200, 201, 202, 203, 204, 205, 206, 207, 208, 209));
  EXPECT_THAT(ChooseArrows(streams, drawable, 5).front(), ElementsAre(200, 202, 204, 206, 208));
}

TEST(MessageArrows, AllAtOneInstant) {
  EXPECT_EQ(Choose({StreamOf(1'000, 64, 0)}, 7).front().size(), 7u);
}

}  // namespace
}  // namespace syncline::timeline
