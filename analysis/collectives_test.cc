// SPDX-License-Identifier: Apache-2.0
#include "analysis/collectives.h"

#include <gtest/gtest.h>

#include <string>

namespace syncline::analysis {
namespace {

using timeline::Collective;
using timeline::CollectiveMember;
using timeline::Collectives;

constexpr ClockId kClock{0, ClockKind::kMonotonic};

CollectiveMember Member(int32_t rank, int64_t entered_ns, int64_t left_ns) {
  CollectiveMember member{.node = 0, .rank = rank};
  member.entered = {kClock, entered_ns};
  member.entered_at = {entered_ns};
  member.left = NodeTime{kClock, left_ns};
  member.left_at = TimelineTime{left_ns};
  return member;
}

// Two ranks on one node, whose clock is certain: the first leaves before the second enters.
CollectiveReport EarlyLeaver(const std::string& name, bool may_be_empty = false) {
  Collectives found;
  found.groups.push_back({.name = "0", .ranks = "0-1", .size = 2});
  Collective collective{.group = 0, .number = 1, .name = name, .may_be_empty = may_be_empty};
  collective.members = {Member(0, 10, 20), Member(1, 30, 40)};
  found.collectives.push_back(collective);
  const clocksync::ClockModel model = clocksync::ClockModel::Identity({"a"});
  return SummariseCollectives(found, {.proven = &model});
}

TEST(CollectivesTest, OnlyWhereEverybodyWaitsAnEarlyLeaverContradicts) {
  EXPECT_EQ(EarlyLeaver("allreduce").contradictions, 1u);
  EXPECT_EQ(EarlyLeaver("barrier", /*may_be_empty=*/true).contradictions, 1u);
  EXPECT_EQ(EarlyLeaver("broadcast").contradictions, 0u);
  EXPECT_EQ(EarlyLeaver("allreduce", /*may_be_empty=*/true).contradictions, 0u);
}

TEST(CollectivesTest, SaysWhoEnteredFirstAndThatItIsProven) {
  const CollectiveReport report = EarlyLeaver("allreduce");
  ASSERT_EQ(report.kinds.size(), 1u);
  EXPECT_EQ(report.kinds[0].order.proven, 1u);
  EXPECT_EQ(report.kinds[0].order.all(), 1u);
  ASSERT_TRUE(report.kinds[0].spread.has_value());
  EXPECT_EQ(report.kinds[0].spread->est_ns, 20);
  EXPECT_EQ(report.kinds[0].spread->bound_ns(), 0);
}

}  // namespace
}  // namespace syncline::analysis
