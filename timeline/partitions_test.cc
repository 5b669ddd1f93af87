// SPDX-License-Identifier: Apache-2.0
#include "timeline/partitions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::timeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kCut = "/job:a/d:0;1f;/job:b/d:0;edge_1_x;0:0";
constexpr std::string_view kFeed = "/job:a/d:0;1f;/job:a/d:0;x:0;0:0";

// A step as level 3 shows it.
void RunStep(PartitionBuilder* builder, int64_t id, std::initializer_list<const char*> nodes,
             bool to_the_end = true) {
  builder->OnStep(id);
  builder->OnExecuted(id, "_SOURCE", 0, 3);
  for (const char* node : nodes) builder->OnExecuted(id, node, 1, 0);
  if (to_the_end) builder->OnDone(id);
}

std::vector<std::string> NamesOf(const Partition& partition, const PartitionGraph& graph) {
  std::vector<std::string> names;
  for (const uint32_t node : graph.nodes) names.push_back(partition.nodes[node].name);
  return names;
}

TEST(PartitionBuilderTest, StepsThatRunTheSameNodesRunTheSameGraph) {
  PartitionBuilder builder;
  RunStep(&builder, 1, {"b", "a", "zero"});
  RunStep(&builder, 2, {"init"});
  RunStep(&builder, 3, {"a", "zero", "b", "a"});  // in any order; a loop runs one again
  builder.OnOperator("a", "MatMul", 100);
  builder.OnOperator("a", "MatMul", 50);
  const Partition found = builder.Take();
  ASSERT_THAT(found.graphs, SizeIs(2));
  EXPECT_EQ(found.graphs[0].steps, 2u);
  EXPECT_THAT(NamesOf(found, found.graphs[0]), ElementsAre("a", "b", "zero"));
  EXPECT_EQ(found.graphs[1].steps, 1u);
  EXPECT_THAT(NamesOf(found, found.graphs[1]), ElementsAre("init"));
  EXPECT_EQ(found.nodes[0].type, "MatMul");
  EXPECT_EQ(found.nodes[0].executions, 3u);
  EXPECT_EQ(found.nodes[0].total_ns, 150);
  EXPECT_EQ(found.nodes[0].data_edges, 1u);
  EXPECT_EQ(found.nodes[1].type, "");  // a constant or a no-op has no event
}

TEST(PartitionBuilderTest, OnlyStepsThatWereSeenFromBeginToEndCount) {
  PartitionBuilder builder;
  builder.OnExecuted(1, "a", 1, 0);  // begun before the profile
  builder.OnDone(1);
  RunStep(&builder, 2, {"a", "b"});
  RunStep(&builder, 3, {"a"}, /*to_the_end=*/false);
  builder.EndPiece();
  builder.OnExecuted(3, "b", 1, 0);
  builder.OnDone(3);
  const Partition found = builder.Take();
  ASSERT_THAT(found.graphs, SizeIs(1));
  EXPECT_EQ(found.graphs[0].steps, 1u);
  EXPECT_EQ(found.nodes[0].executions, 3u);  // those of all steps
}

TEST(PartitionBuilderTest, AStepOfTwoExecutorsEndsWithBoth) {
  PartitionBuilder builder;
  builder.OnStep(1);
  for (const char* name : {"a", "b"}) {
    builder.OnExecuted(1, "_SOURCE", 0, 1);
    builder.OnExecuted(1, name, 1, 0);
    builder.OnDone(1);
  }
  builder.OnStep(2);
  builder.OnExecuted(2, "_SOURCE", 0, 1);
  builder.OnExecuted(2, "_SOURCE", 0, 1);
  builder.OnDone(2);
  const Partition found = builder.Take();
  ASSERT_THAT(found.graphs, SizeIs(1));
  EXPECT_EQ(found.graphs[0].steps, 1u);
  EXPECT_THAT(found.graphs[0].nodes, SizeIs(2));
}

TEST(PartitionBuilderTest, ManyStepsAreCountedThoughFewAreKept) {
  PartitionBuilder builder;
  for (int64_t id = 0; id < 1000; ++id) RunStep(&builder, id, {"a"});
  const Partition found = builder.Take();
  ASSERT_THAT(found.graphs, SizeIs(1));
  EXPECT_EQ(found.graphs[0].steps, 1000u);
}

TEST(PartitionBuilderTest, EndsOfCutEdgesAreKnownByTheirKeys) {
  PartitionBuilder builder;
  builder.OnOperator("x_S4", "_Send", 10);
  builder.OnEnd("x_S4", kCut, true);
  builder.OnEnd("_recv_x_0", kFeed, false);
  builder.OnEnd("strange", "no key", true);
  const Partition found = builder.Take();
  ASSERT_THAT(found.nodes, SizeIs(3));
  EXPECT_FALSE(found.nodes[0].crosses());
  EXPECT_EQ(found.nodes[0].tensor, "x:0");
  EXPECT_FALSE(found.nodes[1].crosses());
  EXPECT_TRUE(found.nodes[2].crosses());
  EXPECT_EQ(found.nodes[2].tensor, "edge_1_x");
  EXPECT_EQ(found.nodes[2].receive_device, "/job:b/d:0");
  EXPECT_EQ(found.nodes[2].executions, 1u);  // below level 3: as many as there are events
  EXPECT_THAT(found.devices, ElementsAre("/job:a/d:0"));
  EXPECT_THAT(found.graphs, IsEmpty());
}

}  // namespace
}  // namespace syncline::timeline
