// SPDX-License-Identifier: Apache-2.0
#include "analysis/messages.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncline::analysis {
namespace {

timeline::MessageStream Stream(uint32_t from, uint32_t to) {
  timeline::MessageStream stream;
  stream.send_node = from;
  stream.receive_node = to;
  stream.sender_clock = {from};
  stream.receiver_clock = {to};
  return stream;
}

// The receiver's clock is 5000 ns behind; its wall clock is right, and then `wall_error_ns` off.
timeline::Message Sent(int64_t at_ns, int64_t flight_ns) {
  timeline::Message message;
  message.bytes = 10;
  message.sent_ns = at_ns;
  message.first_ns = message.last_ns = at_ns + flight_ns - 5000;
  message.sent = {at_ns};
  message.first = message.last = {at_ns + flight_ns};
  return message;
}

TEST(MessagesTest, CountsWhatAMergeByWallClockGetsWrong) {
  std::vector<timeline::NodeResult> nodes(2);
  timeline::MessageStream stream = Stream(0, 1);
  stream.messages = {Sent(1000, 300), Sent(2000, 100), Sent(3000, 500), Sent(4000, -1)};
  stream.sent_bytes = 40;
  nodes[1].message_streams = {stream, Stream(1, 1)};
  nodes[1].message_streams[1].messages = {Sent(1000, -100)};  // on one node: no matter
  nodes[0].message_ends.alone = 2;
  nodes[1].message_ends.alone = 1;
  const std::vector<std::optional<int64_t>> walls = {100'000, 105'000 - 200};
  const MessageReport report = SummariseMessages(nodes, walls, {});
  EXPECT_EQ(report.messages, 5u);
  EXPECT_EQ(report.across_nodes, 4u);
  EXPECT_EQ(report.backwards_by_wall_clock, 2u);  // flights shorter than the 200 ns of error
  EXPECT_EQ(report.backwards_here, 1u);
  EXPECT_EQ(report.checked, 0u);  // nothing is proven without a model
  EXPECT_EQ(report.ends.alone, 3u);
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].messages, 4u);
  EXPECT_EQ(report.rows[0].sent_bytes, 40u);
  ASSERT_TRUE(report.rows[0].flight.has_value());
  EXPECT_EQ(report.rows[0].flight->est_ns, 300);
  EXPECT_FALSE(report.rows[0].flight->bounded());
}

// Where not all are looked at, a program's rhythm must not decide which.
TEST(MessagesTest, TheMedianOfManyIsThatOfAll) {
  std::vector<timeline::NodeResult> nodes(2);
  timeline::MessageStream stream = Stream(0, 1);
  for (const size_t period : {3, 8}) {
    stream.messages.clear();
    for (size_t i = 0; i < period * kFlightsMax - 1; ++i) {
      // The first of each period takes long, like every period-th message.
      stream.messages.push_back(Sent(static_cast<int64_t>(i) * 1000, i % period == 0 ? 900 : 300));
    }
    nodes[1].message_streams = {stream};
    const std::vector<std::optional<int64_t>> walls(2);
    const MessageReport report = SummariseMessages(nodes, walls, {});
    ASSERT_EQ(report.rows.size(), 1u);
    EXPECT_EQ(report.rows[0].flight->est_ns, 300) << period;
  }
}

TEST(MessagesTest, WithoutWallClocksNothingIsSaidOfThem) {
  std::vector<timeline::NodeResult> nodes(1);
  nodes[0].message_streams = {Stream(0, 0)};
  const std::vector<std::optional<int64_t>> walls(1);
  const MessageReport report = SummariseMessages(nodes, walls, {});
  EXPECT_FALSE(report.backwards_by_wall_clock.has_value());
  EXPECT_FALSE(report.rows[0].flight.has_value());
}

}  // namespace
}  // namespace syncline::analysis
