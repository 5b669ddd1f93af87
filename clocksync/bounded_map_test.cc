// SPDX-License-Identifier: Apache-2.0
#include "clocksync/bounded_map.h"

#include <gtest/gtest.h>

#include <limits>

namespace syncline::clocksync {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(BoundedMap, IsShifted) {
  const BoundedMap map({{0, 5, 10, kUnknownHi}, {100, 105, 110, kUnknownHi}}, 7);
  const BoundedMap shifted = Shifted(map, -3);
  EXPECT_EQ(shifted.knots(),
            (std::vector<BoundedMap::Knot>{{0, 2, 7, kUnknownHi}, {100, 102, 107, kUnknownHi}}));
  EXPECT_EQ(shifted.rate_ppb_outside(), 7);
}

TEST(BoundedMap, KeepsWhatCanBeSaidAfterAShiftByMuch) {
  const BoundedMap map({{0, -50, -40, -30}, {100, 50, 60, 70}, {200, 150, 160, 170}}, 0);
  for (const int64_t by : {kMax - 100, kMax - 65, kMax, -kMax, -kMax + 45, -kMax - 1}) {
    const BoundedMap shifted = Shifted(map, by);
    EXPECT_TRUE(BoundedMap::IsValid(shifted.knots())) << by;
    EXPECT_LT(shifted.knots().size(), 3) << by;
    for (const BoundedMap::Knot& knot : shifted.knots()) {
      const auto was = static_cast<size_t>(knot.x / 100);
      EXPECT_EQ(knot.est - by, map.knots()[was].est) << by;
    }
  }
  EXPECT_EQ(Shifted(map, kMax - 65).knots().size(), 1u);
  EXPECT_TRUE(Shifted(BoundedMap(), kMax).empty());
}

}  // namespace
}  // namespace syncline::clocksync
