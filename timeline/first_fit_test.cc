// SPDX-License-Identifier: Apache-2.0
#include "timeline/first_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace syncline::timeline {
namespace {

TEST(FirstFit, TakesTheFirstThatIsFree) {
  FirstFit lanes;
  EXPECT_EQ(lanes.Find({100}), 0u);
  lanes.Add();
  EXPECT_EQ(lanes.Find({100}), 1u);  // in use
  lanes.Add();
  lanes.Set(1, {50});
  EXPECT_EQ(lanes.Find({49}), 2u);
  EXPECT_EQ(lanes.Find({50}), 1u);
  lanes.Set(0, {60});
  EXPECT_EQ(lanes.Find({59}), 1u);
  EXPECT_EQ(lanes.Find({60}), 0u);
  lanes.Set(0, FirstFit::kInUse);
  EXPECT_EQ(lanes.Find({kUnknownHi}), 1u);
  lanes.Set(1, FirstFit::kInUse);
  EXPECT_EQ(lanes.Find({kUnknownHi}), 2u);
}

// As one after the other would be looked at.
TEST(FirstFit, IsTheSameAsLookingAtEach) {
  std::mt19937 random(1);
  FirstFit lanes;
  std::vector<int64_t> used;
  size_t found_free = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto time_ns = static_cast<int64_t>(random() % 1000);
    const auto expected = static_cast<size_t>(
        std::find_if(used.begin(), used.end(), [&](int64_t ns) { return ns <= time_ns; }) -
        used.begin());
    ASSERT_EQ(lanes.Find({time_ns}), expected);
    found_free += expected < used.size();
    if (expected == used.size() && (used.empty() || random() % 4 == 0)) {
      lanes.Add();
      used.push_back(kUnknownHi);
      continue;
    }
    const size_t lane = expected < used.size() ? expected : random() % used.size();
    used[lane] = random() % 3 == 0 ? kUnknownHi : static_cast<int64_t>(random() % 1000);
    lanes.Set(lane, {used[lane]});
  }
  EXPECT_GT(found_free, 1000u);
  EXPECT_GT(used.size(), 100u);
}

}  // namespace
}  // namespace syncline::timeline
