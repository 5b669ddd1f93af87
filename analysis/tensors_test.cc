// SPDX-License-Identifier: Apache-2.0
#include "analysis/tensors.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncline::analysis {
namespace {

timeline::TensorTransfer Transfer(uint32_t from, uint32_t to, int64_t sent_ns, int64_t received_ns,
                                  int64_t wall_shift_ns) {
  timeline::TensorTransfer transfer;
  transfer.edge = {"/job:a/device:CPU:0", "1", "/job:b/device:CPU:0", "edge_1_x"};
  transfer.send_node = from;
  transfer.receive_node = to;
  transfer.send_begin = {{from, ClockKind::kRealtime}, sent_ns};
  transfer.received = {{to, ClockKind::kRealtime}, received_ns + wall_shift_ns};
  transfer.posted = NodeTime{transfer.received.clock, transfer.received.ns - 50};
  transfer.sent_at = TimelineTime{sent_ns};
  transfer.received_at = TimelineTime{received_ns};
  transfer.bytes = 100;
  return transfer;
}

TEST(TensorsTest, CountsWhatAMergeByWallClockGetsWrong) {
  std::vector<timeline::NodeResult> nodes(2);
  nodes[1].received.push_back(Transfer(0, 1, 1000, 1300, -500));  // by wall clock backwards
  nodes[1].received.push_back(Transfer(0, 1, 2000, 2100, 0));
  nodes[1].received.push_back(Transfer(0, 1, 3000, 2900, 500));   // here backwards
  nodes[1].received.push_back(Transfer(1, 1, 1000, 1300, -500));  // on one node: no matter
  nodes[0].tensor_ends.unmatched_sends = 2;
  nodes[1].tensor_ends.unmatched_receives = 1;
  const TensorReport report = SummariseTensors(nodes, {});
  EXPECT_EQ(report.tensors, 4u);
  EXPECT_EQ(report.across_nodes, 3u);
  EXPECT_EQ(report.backwards_by_wall_clock, 1u);
  EXPECT_EQ(report.backwards_here, 1u);
  EXPECT_EQ(report.contradictions, 0u);  // nothing is proven without a model
  EXPECT_EQ(report.unmatched.unmatched_sends, 2u);
  EXPECT_EQ(report.unmatched.unmatched_receives, 1u);
  ASSERT_EQ(report.edges.size(), 2u);
  EXPECT_EQ(report.edges[0].count, 3u);
  EXPECT_EQ(report.edges[0].bytes(), 100u);
  EXPECT_EQ(report.edges[0].waiting_ns, 50);
  EXPECT_EQ(report.edges[0].flight.est_ns, 100);
  EXPECT_FALSE(report.edges[0].flight.bounded());
}

TEST(TensorsTest, ASizeThatIsKnownOfAPartIsNotThatOfAll) {
  std::vector<timeline::NodeResult> nodes(2);
  nodes[1].received.push_back(Transfer(0, 1, 1000, 1300, 0));
  nodes[1].received.push_back(Transfer(0, 1, 2000, 2300, 0));
  nodes[1].received.back().bytes.reset();
  const TensorReport report = SummariseTensors(nodes, {});
  ASSERT_EQ(report.edges.size(), 1u);
  EXPECT_EQ(report.edges[0].bytes(), std::nullopt);
  EXPECT_EQ(report.edges[0].sized, 1u);
  EXPECT_EQ(report.edges[0].sized_bytes, 100u);
}

}  // namespace
}  // namespace syncline::analysis
