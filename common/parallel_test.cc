// SPDX-License-Identifier: Apache-2.0
#include "common/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace syncline {
namespace {

TEST(ParallelTest, EveryPieceIsWorkedOnOnce) {
  for (const size_t threads : {size_t{0}, size_t{1}, size_t{3}, kThreadForEach}) {
    std::vector<int> calls(20, 0);
    InParallel(calls.size(), threads, [&](size_t i) { ++calls[i]; });
    EXPECT_THAT(calls, ::testing::Each(1)) << threads << " threads";
  }
  InParallel(0, 4, [](size_t) { FAIL() << "there is no piece"; });
}

TEST(ParallelTest, WhatBelongsToAThreadNeedsNoLock) {
  constexpr size_t kCount = 10'000;
  std::vector<size_t> sums(3, 0);
  InParallelByThread(kCount, sums.size(), [&](size_t i, size_t thread) { sums.at(thread) += i; });
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), size_t{0}), kCount * (kCount - 1) / 2);
}

TEST(ParallelTest, WhereOneIsEnoughItIsTheCaller) {
  const std::thread::id caller = std::this_thread::get_id();
  InParallel(1, 8, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  InParallel(8, 1, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

}  // namespace
}  // namespace syncline
