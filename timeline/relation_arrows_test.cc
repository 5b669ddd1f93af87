// SPDX-License-Identifier: Apache-2.0
#include "timeline/relation_arrows.h"

#include <gtest/gtest.h>

namespace syncline::timeline {
namespace {

NewestTasks::Task At(int64_t ns) { return {1, {ns + 1000}, ns}; }

TEST(NewestTasksTest, TheNewestOfItsDomainCounts) {
  NewestTasks tasks;
  EXPECT_EQ(tasks.Find(5, {1, 2, 3}), std::nullopt);
  tasks.Began(5, {1, 2, 3}, At(10));
  tasks.Began(6, {1, 2, 3}, At(20));
  tasks.Began(5, {1, 2, 4}, At(30));
  tasks.Began(5, {1, 2, 3}, At(40));
  EXPECT_EQ(tasks.Find(5, {1, 2, 3}), At(40));
  EXPECT_EQ(tasks.Find(6, {1, 2, 3}), At(20));
  EXPECT_EQ(tasks.Find(5, {1, 2, 4}), At(30));
}

TEST(NewestTasksTest, WhatBeganBeforeADoubtIsNotKnown) {
  NewestTasks tasks;
  tasks.Began(5, {1, 0, 0}, At(10));
  tasks.Began(5, {2, 0, 0}, At(20));
  tasks.DoubtUntil(15);
  tasks.DoubtUntil(10);
  EXPECT_EQ(tasks.Find(5, {1, 0, 0}), std::nullopt);
  EXPECT_EQ(tasks.Find(5, {2, 0, 0}), At(20));
  tasks.Began(5, {1, 0, 0}, At(30));
  EXPECT_EQ(tasks.Find(5, {1, 0, 0}), At(30));
}

TEST(NewestTasksTest, IdsThatWereNotUsedForLongAreForgotten) {
  NewestTasks tasks;
  tasks.Began(5, {1, 0, 0}, At(1));
  tasks.Began(5, {2, 0, 0}, At(2));
  const auto begin_others = [&](uint64_t from) {
    for (uint64_t i = 0; i < NewestTasks::kIdsLeast; ++i) {
      tasks.Began(5, {from + i, 0, 0}, At(static_cast<int64_t>(from + i)));
    }
  };
  begin_others(1'000'000);
  EXPECT_EQ(tasks.Find(5, {1, 0, 0}), At(1));
  tasks.Began(5, {2, 0, 0}, At(3));
  EXPECT_EQ(tasks.Find(5, {2, 0, 0}), At(3));
  begin_others(2'000'000);
  EXPECT_EQ(tasks.Find(5, {1, 0, 0}), std::nullopt);
  EXPECT_EQ(tasks.Find(5, {2, 0, 0}), At(3));
  EXPECT_EQ(tasks.Find(5, {2'000'000, 0, 0}), At(2'000'000));
}

}  // namespace
}  // namespace syncline::timeline
