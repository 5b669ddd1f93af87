// SPDX-License-Identifier: Apache-2.0
#include "analysis/against/edges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis::against {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

NetworkLink Link(int32_t from, int32_t to, int64_t bytes) {
  NetworkLink link;
  link.from = {"node", "process", from};
  link.to = NetworkEnd{"node", "process", to};
  link.sums.sent_bytes = bytes;
  link.sums.sent_segments = 100;
  link.sums.retransmitted_segments = 2;
  link.sums.retransmitted_bytes = bytes / 50;
  link.median_rtt_us = 120;
  return link;
}

// 100 steps of 10 ms each in a window of 2 s.
TEST(Edges, AreOfAStepAndWithoutWhatWasSentAgain) {
  Report report;
  report.window_end.ns = 2'000'000'000;
  report.network = {Link(0, 1, 1'000'000)};
  NetworkLink elsewhere = Link(0, 1, 5);
  elsewhere.to.reset();
  report.network.push_back(elsewhere);
  Units units;
  units.per = Per::kStep;
  units.steps = 1;
  for (int64_t i = 0; i < 100; ++i) {
    units.intervals.push_back({{i * 10'000'000}, {(i + 1) * 10'000'000}});
    units.lengths_ns.push_back(10'000'000);
  }
  const std::vector<Edge> edges = EdgesOf(report, units);
  ASSERT_THAT(edges, SizeIs(1));
  EXPECT_EQ(edges[0].from, "rank 0");
  EXPECT_EQ(edges[0].to, "rank 1");
  EXPECT_NEAR(edges[0].bytes, 980'000 / 200.0, 1e-6);
  EXPECT_NEAR(edges[0].retransmitted, 0.02, 1e-9);
}

TEST(Edges, ChangeWhereAllBeforeHadFewerOrMoreBytes) {
  const std::vector<Edge> once = {{"rank 0", "rank 1", 1000, 0, 100}, {"rank 1", "rank 0", 1000}};
  const std::vector<Edge> again = {{"rank 0", "rank 1", 1300, 0.02, 100},
                                   {"rank 1", "rank 0", 1000}};
  const std::vector<Edge> now = {{"rank 0", "rank 1", 1400, 0.1, 300},
                                 {"rank 1", "rank 0", 1005},
                                 {"rank 1", "rank 2", 500},
                                 {"rank 2", "rank 0", 2}};
  const std::vector<std::vector<Edge>> one = {once};
  std::vector<EdgeChange> changes = CompareEdges(one, now);
  ASSERT_THAT(changes, SizeIs(3));  // 2 bytes are too few
  EXPECT_EQ(changes[0].now.to, "rank 2");
  EXPECT_TRUE(changes[0].changed);
  EXPECT_TRUE(changes[1].changed);
  EXPECT_EQ(changes[1].before.bytes, 1000);
  EXPECT_FALSE(changes[2].changed);
  const std::vector<std::vector<Edge>> both = {once, again};
  changes = CompareEdges(both, now);
  ASSERT_THAT(changes, SizeIs(3));
  EXPECT_TRUE(changes[0].changed);
  EXPECT_FALSE(changes[1].changed);  // 1,300 were sent before, too
  EXPECT_EQ(changes[1].before.bytes, 1150);
  EXPECT_NEAR(changes[1].before.retransmitted, 0.01, 1e-9);
  const std::vector<std::vector<Edge>> unknown = {{}};
  EXPECT_THAT(CompareEdges(unknown, now), IsEmpty());
}

}  // namespace
}  // namespace syncline::analysis::against
