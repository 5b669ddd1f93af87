// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/carried.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::analysis::why {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Of one collective of so many ranks, by rank: whom it waits for.
std::vector<std::set<size_t>> AwaitedIn(size_t ranks, const Arrival& arrival) {
  JobInput input;
  for (size_t rank = 0; rank < ranks; ++rank) {
    CollectiveEntry entry;
    entry.group = arrival.group;
    entry.number = arrival.number;
    // Of another one.
    input.ranks.emplace_back().collectives = {{}, entry};
  }
  input.arrivals = {arrival};
  const Circles circles(input);
  std::vector<std::set<size_t>> awaited(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(circles.Of({rank, 0}), Circles::kNone);
    const uint32_t circle = circles.Of({rank, 1});
    if (circle == Circles::kNone) continue;
    for (const Member& one : circles.all()[circle].awaited) {
      EXPECT_EQ(one.entry, 1u);
      if (one.rank != rank) awaited[rank].insert(one.rank);
    }
  }
  return awaited;
}

Arrival ArrivalOf(bool everybody_waits, std::optional<size_t> root) {
  Arrival arrival;
  arrival.group = 3;
  arrival.number = 7;
  arrival.everybody_waits = everybody_waits;
  arrival.root = root;
  return arrival;
}

TEST(Circles, WhereEverybodyWaitsAllAreOne) {
  EXPECT_THAT(AwaitedIn(3, ArrivalOf(true, std::nullopt)),
              ElementsAre(UnorderedElementsAre(1, 2), UnorderedElementsAre(0, 2),
                          UnorderedElementsAre(0, 1)));
}

TEST(Circles, WithoutARootNobodyKnows) {
  EXPECT_THAT(AwaitedIn(2, ArrivalOf(false, std::nullopt)),
              ElementsAre(UnorderedElementsAre(), UnorderedElementsAre()));
}

TEST(Circles, OfTwoRanksEachWaitsForTheOther) {
  for (const size_t root : {0, 1}) {
    EXPECT_THAT(AwaitedIn(2, ArrivalOf(false, root)),
                ElementsAre(UnorderedElementsAre(1), UnorderedElementsAre(0)));
  }
}

// torch 2.13 over Gloo: eight ranks, of which each in turn began a broadcast of rank 3's 0.3 s
// late; whose broadcasts then lasted as long.
TEST(Circles, ABroadcastIsWaitedForAsGlooDid) {
  const std::vector<std::set<size_t>> waited = {{4},          {5},    {6},    {0, 1, 2, 4, 5, 6, 7},
                                                {0, 2, 3, 6}, {1, 3}, {2, 4}, {3}};
  const std::vector<std::set<size_t>> awaited = AwaitedIn(8, ArrivalOf(false, 3));
  for (size_t late = 0; late < 8; ++late) {
    for (size_t rank = 0; rank < 8; ++rank) {
      EXPECT_EQ(awaited[rank].contains(late), waited[late].contains(rank)) << rank << " " << late;
    }
  }
}

}  // namespace
}  // namespace syncline::analysis::why
