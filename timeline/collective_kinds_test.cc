// SPDX-License-Identifier: Apache-2.0
#include "timeline/collective_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timeline/collectives.h"

namespace syncline::timeline {
namespace {

using ::testing::SizeIs;

TEST(CollectiveNamesTest, AreFoundInTasks) {
  EXPECT_EQ(CollectiveOfLaunch("c10d::allreduce_"), "allreduce");
  EXPECT_EQ(CollectiveOfLaunch("c10d::_allgather_base_"), "allgather_base");
  EXPECT_EQ(CollectiveOfLaunch("c10d::reduce_scatter_single_"), "reduce_scatter_base");
  EXPECT_EQ(CollectiveOfLaunch("c10d::send"), "");
  EXPECT_EQ(CollectiveOfLaunch("aten::add"), "");
  EXPECT_EQ(CollectiveOfWork("gloo:all_reduce"), "all_reduce");
  EXPECT_EQ(CollectiveOfWork("gloo:send"), "");
}

// A rank whose operators are not recorded shows what its program calls, the other what PyTorch
// launches.
TEST(CollectiveNamesTest, OneOperationUnderTwoNamesIsOne) {
  CollectiveMatcher matcher;
  for (const uint32_t node : {0U, 1U}) {
    const uint32_t process = matcher.AddProcess(node);
    CollectiveMatcher::GroupState state;
    state.group.name = "0";
    state.group.ranks = "0-1";
    state.group.size = 2;
    state.rank = static_cast<int32_t>(node);
    matcher.OnGroup(process, 1, state);
    for (uint64_t i = 1; i <= 5; ++i) {
      const int64_t at_ns = static_cast<int64_t>(i * 1'000 + node);
      const CollectiveMatcher::Place place{{{node, ClockKind::kMonotonic}, at_ns}, {at_ns}, 0};
      const char* const name = node == 0 ? "reduce_scatter_single" : "reduce_scatter_base";
      matcher.OnCall(process, 1, "0", name, i, 100, place);
    }
  }
  const Collectives found = matcher.Match();
  ASSERT_THAT(found.collectives, SizeIs(5));
  for (const Collective& collective : found.collectives) {
    EXPECT_EQ(collective.name, "reduce_scatter_base");
    EXPECT_THAT(collective.members, SizeIs(2));
  }
}

}  // namespace
}  // namespace syncline::timeline
