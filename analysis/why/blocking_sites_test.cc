// SPDX-License-Identifier: Apache-2.0
// Where ranks wait, by hand-made silences.
#include "analysis/why/blocking_sites.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <vector>

namespace syncline::analysis::why {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;

constexpr NameId kBefore = 1;
constexpr NameId kAfter = 2;

std::vector<Silence> Pause(int64_t begin_ns, int64_t end_ns, std::vector<uint32_t> pending) {
  return {{begin_ns, end_ns, {kNoTask, kBefore, kAfter}, false, std::move(pending)}};
}

TEST(BlockingSites, ASilenceThatEndsAsACollectiveLeavesIsAWait) {
  const std::vector<CollectiveEntry> entries = {{0, 1, 0, 10 * kMs, 40 * kMs}};
  const auto silences = Pause(5 * kMs, 40 * kMs + 100 * kUs, {0});
  const RankSilences rank{silences, entries};
  const std::set<Site> sites = BlockingSites({&rank, 1}, 100 * kMs, false);
  ASSERT_EQ(sites.size(), 1);
  const std::vector<Wait> waits = WaitsOf(rank, sites, 1);
  ASSERT_EQ(waits.size(), 1);
  EXPECT_EQ(waits[0].interval, (OwnInterval{10 * kMs, 40 * kMs + 100 * kUs}));
  EXPECT_EQ(waits[0].awaited, 0);
}

TEST(BlockingSites, ALateWordOfTheLeaveIsStillAWait) {
  const std::vector<CollectiveEntry> entries = {{0, 1, 0, 10 * kMs, 44 * kMs}};
  const auto silences = Pause(5 * kMs, 40 * kMs, {0});
  const RankSilences rank{silences, entries};
  EXPECT_EQ(BlockingSites({&rank, 1}, 100 * kMs, false).size(), 1);
}

// `all_reduce(async_op=True)`, own work that ends whenever it ends, `wait()`.
TEST(BlockingSites, WhereTheProgramSaysThatItWaitsNothingIsLearnt) {
  const std::vector<CollectiveEntry> entries = {{0, 1, 0, 0, 15 * kMs},
                                                {0, 2, 0, 50 * kMs, 51 * kMs}};
  const std::vector<Silence> silences = {
      {1 * kMs, 12 * kMs, {kNoTask, kBefore, kAfter}, false, {0}},
      {12 * kMs, 18 * kMs, {kAfter, kNoTask, kBefore}, true, {0}},
      {60 * kMs, 61 * kMs, {kAfter, kNoTask, kBefore}, true, {}}};
  const RankSilences rank{silences, entries};
  const std::set<Site> sites = BlockingSites({&rank, 1}, 10'000 * kMs, false);
  ASSERT_EQ(sites, std::set<Site>({silences[1].site}));
  const std::vector<Wait> waits = WaitsOf(rank, sites, 1);
  ASSERT_EQ(waits.size(), 1);
  EXPECT_EQ(waits[0].interval, (OwnInterval{12 * kMs, 15 * kMs + 300 * kUs}))
      << "what follows the leave is waiting for a CPU or for the interpreter's lock";
}

// A log behind `all_reduce`, with no operator between them.
TEST(BlockingSites, SilenceBehindTheLeaveIsNoWait) {
  const std::vector<CollectiveEntry> entries = {{0, 1, 0, 10 * kMs, 40 * kMs},
                                                {0, 2, 0, 110 * kMs, 120 * kMs},
                                                {0, 3, 0, 111 * kMs, 190 * kMs}};
  std::vector<Silence> silences = Pause(10 * kMs, 40 * kMs, {0});
  silences.push_back(Pause(110 * kMs, 170 * kMs, {1, 2})[0]);
  const RankSilences rank{silences, entries};
  const std::vector<Wait> waits = WaitsOf(rank, {silences[0].site}, 1);
  ASSERT_EQ(waits.size(), 2);
  EXPECT_EQ(waits[0].interval, (OwnInterval{10 * kMs, 40 * kMs}));
  EXPECT_EQ(waits[1].interval, (OwnInterval{110 * kMs, 120 * kMs + 300 * kUs}))
      << "another one that leaves 20 ms behind the silence did not end it";
  EXPECT_EQ(waits[1].awaited, 1);
}

// Rank 0 logs there in each step, rank 1 never does.
TEST(BlockingSites, OneRankThatAlwaysWaitsThereShowsTheSite) {
  std::vector<CollectiveEntry> entries;
  std::vector<Silence> logging;
  std::vector<Silence> waiting;
  for (uint32_t i = 0; i < 8; ++i) {
    const int64_t at_ns = i * 100 * kMs;
    entries.push_back({0, i, 0, at_ns, at_ns + 5 * kMs});
    logging.push_back(Pause(at_ns, at_ns + 50 * kMs, {i})[0]);
    waiting.push_back(Pause(at_ns, at_ns + 5 * kMs, {i})[0]);
  }
  const RankSilences ranks[] = {{logging, entries}, {waiting, entries}};
  EXPECT_EQ(BlockingSites(ranks, 1'600 * kMs, false).size(), 1);
  EXPECT_TRUE(BlockingSites({ranks, 1}, 800 * kMs, false).empty());
  const std::span<const Silence> seven = std::span(waiting).first(7);
  const RankSilences few[] = {{logging, entries}, {seven, entries}};
  EXPECT_TRUE(BlockingSites(few, 1'600 * kMs, false).empty());
}

TEST(BlockingSites, ASilenceThatEndsAnywhereOrIsShortIsNone) {
  const std::vector<CollectiveEntry> entries = {{0, 1, 0, 10 * kMs, 20 * kMs}};
  const auto far = Pause(5 * kMs, 40 * kMs, {0});
  const RankSilences rank{far, entries};
  EXPECT_TRUE(BlockingSites({&rank, 1}, 100 * kMs, false).empty());
  const auto near = Pause(15 * kMs, 20 * kMs, {0});
  const RankSilences other{near, entries};
  EXPECT_TRUE(BlockingSites({&other, 1}, 10'000 * kMs, false).empty());  // 0.05 % of the time
}

// A collective each 100 ms, entered at its begin, left `left_ms` behind that; silent as long as
// told.
struct Silent {
  std::vector<CollectiveEntry> entries;
  std::vector<Silence> silences;

  void Add(int64_t left_ns, int64_t silent_ns) {
    const auto i = static_cast<uint32_t>(entries.size());
    const int64_t at_ns = i * 100 * kMs;
    entries.push_back({0, i, 0, at_ns, at_ns + left_ns});
    silences.push_back(Pause(at_ns, at_ns + silent_ns, {i})[0]);
  }
  RankSilences ranks() const { return {silences, entries}; }
};

// It logs for about 1 ms behind each.
TEST(BlockingSites, WhatFollowsTheLeavesWaitsForThem) {
  std::mt19937_64 random(1);
  const auto up_to = [&](int64_t ns) {
    return static_cast<int64_t>(random() % 1'000'000) * ns / 1'000'000;
  };
  Silent waiting;
  Silent working;  // beside collectives that it does not wait for
  for (int i = 0; i < 40; ++i) {
    const int64_t left_ns = 20 * kMs + up_to(3 * kMs);
    waiting.Add(left_ns, left_ns + kMs + up_to(200 * kUs));
    working.Add(left_ns, 30 * kMs + up_to(3 * kMs));
  }
  const RankSilences waits = waiting.ranks();
  EXPECT_EQ(BlockingSites({&waits, 1}, 4'000 * kMs, false).size(), 1);
  const RankSilences works = working.ranks();
  EXPECT_TRUE(BlockingSites({&works, 1}, 4'000 * kMs, false).empty());
}

// Of many collectives under way one often ends by chance as a silence does.
TEST(BlockingSites, WhereWaitsAreSaidChanceShowsNone) {
  std::vector<CollectiveEntry> entries;
  std::vector<Silence> silences;
  std::vector<Silence> beside_one;
  for (uint32_t i = 0; i < 20; ++i) {
    const int64_t at_ns = i * 100 * kMs;
    for (uint32_t j = 0; j < 4; ++j) {
      const int64_t left_ns = i % 2 == 0 && j == 0 ? 20 * kMs : 10 * kMs;
      entries.push_back({0, i * 4 + j, 0, at_ns, at_ns + left_ns});
    }
    const uint32_t at = i * 4;
    silences.push_back(Pause(at_ns, at_ns + 20 * kMs, {at, at + 1, at + 2, at + 3})[0]);
    beside_one.push_back(Pause(at_ns, at_ns + 20 * kMs, {at})[0]);
  }
  const RankSilences rank{silences, entries};
  EXPECT_FALSE(SaysWaits(rank));
  EXPECT_EQ(BlockingSites({&rank, 1}, 2'000 * kMs, false).size(), 1);
  EXPECT_TRUE(BlockingSites({&rank, 1}, 2'000 * kMs, true).empty());
  const RankSilences one{beside_one, entries};
  EXPECT_EQ(BlockingSites({&one, 1}, 2'000 * kMs, true).size(), 1);
  silences[0].is_wait = true;
  EXPECT_TRUE(SaysWaits({silences, entries}));
}

// One rank comes 20 ms later than the other, always alike; both compute without operators behind
// it.
TEST(BlockingSites, RanksTogetherShowASiteThatNoneShows) {
  std::mt19937_64 random(1);
  Silent early;
  Silent late;
  for (int i = 0; i < 40; ++i) {
    const auto behind_ns = [&] { return kMs + static_cast<int64_t>(random() % 500'000); };
    early.Add(20 * kMs, 20 * kMs + behind_ns());
    late.Add(kMs, kMs + behind_ns());
  }
  const RankSilences ranks[] = {early.ranks(), late.ranks()};
  EXPECT_EQ(BlockingSites(ranks, 8'000 * kMs, false).size(), 1);
  EXPECT_TRUE(BlockingSites({ranks, 1}, 4'000 * kMs, false).empty());
}

}  // namespace
}  // namespace syncline::analysis::why
