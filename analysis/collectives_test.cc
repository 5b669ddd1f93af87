// SPDX-License-Identifier: Apache-2.0
#include "analysis/collectives.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "clocksync/builder.h"

namespace syncline::analysis {
namespace {

using timeline::Collective;
using timeline::CollectiveMember;
using timeline::Collectives;

CollectiveMember Member(int32_t rank, int64_t entered_ns, int64_t left_ns, uint32_t node) {
  const ClockId clock{node, ClockKind::kRaw};
  CollectiveMember member{.node = node, .rank = rank};
  member.entered = {clock, entered_ns};
  member.entered_at = {entered_ns};
  member.left = NodeTime{clock, left_ns};
  member.left_at = TimelineTime{left_ns};
  return member;
}

// Two nodes whose clocks read the same, to 5 ns.
clocksync::ClockModel TwoClocks() {
  clocksync::BuildInput input{.nodes = {"a", "b"}};
  clocksync::Edge edge{"a", "b", {}};
  for (int64_t at_ns = -1'000; at_ns <= 1'000; at_ns += 100) {
    edge.samples.push_back({at_ns, at_ns + 5, at_ns + 6, at_ns + 11});
  }
  input.edges = {edge};
  auto built = clocksync::BuildModel(input, {.reference = "a"});
  EXPECT_TRUE(built.ok()) << built.status();
  return std::move(built->model);
}

// The first of two ranks leaves before the second enters.
CollectiveReport EarlyLeaver(const std::string& name, bool may_be_empty = false,
                             uint32_t second_node = 1) {
  Collectives found;
  found.groups.push_back({.name = "0", .ranks = "0-1", .size = 2});
  Collective collective{.group = 0, .number = 1, .name = name, .may_be_empty = may_be_empty};
  collective.members = {Member(0, 10, 20, 0), Member(1, 130, 140, second_node)};
  found.collectives.push_back(collective);
  const clocksync::ClockModel model = TwoClocks();
  return SummariseCollectives(found, {.proven = &model});
}

TEST(CollectivesTest, OnlyWhereEverybodyWaitsAnEarlyLeaverContradicts) {
  EXPECT_EQ(EarlyLeaver("allreduce").contradictions, 1u);
  EXPECT_EQ(EarlyLeaver("barrier", /*may_be_empty=*/true).contradictions, 1u);
  EXPECT_EQ(EarlyLeaver("broadcast").contradictions, 0u);
  EXPECT_EQ(EarlyLeaver("allreduce", /*may_be_empty=*/true).contradictions, 0u);
  EXPECT_EQ(EarlyLeaver("allreduce", false, /*second_node=*/0).contradictions, 0u)
      << "on one clock it is no matter of the model";
}

TEST(CollectivesTest, SaysWhoEnteredFirstAndThatItIsProven) {
  const CollectiveReport report = EarlyLeaver("allreduce", false, /*second_node=*/0);
  ASSERT_EQ(report.kinds.size(), 1u);
  EXPECT_EQ(report.kinds[0].order.proven, 1u);
  EXPECT_EQ(report.kinds[0].order.all(), 1u);
  ASSERT_TRUE(report.kinds[0].spread.has_value());
  EXPECT_EQ(report.kinds[0].spread->est_ns, 120);
  EXPECT_EQ(report.kinds[0].spread->bound_ns(), 0);
}

}  // namespace
}  // namespace syncline::analysis
