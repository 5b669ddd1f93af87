// SPDX-License-Identifier: Apache-2.0
// Small collectives, by pieces of a path that are made by hand.
#include "analysis/why/small_collectives.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncline::analysis::why {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr size_t kSteps = 80;

struct Sent {
  int64_t bytes = 0;
  int64_t length_ns = 0;
  size_t count = 1;  // a step
};

std::vector<PathPiece> PiecesOf(const std::vector<Sent>& a_step) {
  std::vector<PathPiece> pieces;
  for (size_t step = 0; step < kSteps; ++step) {
    for (const Sent& one : a_step) {
      for (size_t i = 0; i < one.count; ++i) {
        PathPiece piece;
        piece.kind = PathPiece::Kind::kCollective;
        piece.name = "allreduce";
        piece.step = static_cast<int32_t>(step);
        piece.bytes = one.bytes;
        piece.own_length_ns = one.length_ns;
        pieces.push_back(piece);
      }
    }
  }
  return pieces;
}

std::optional<SmallCollectives> Found(const std::vector<PathPiece>& pieces, int64_t step_ns) {
  return SmallCollectivesOf(pieces, kSteps, step_ns, step_ns);
}

// 40 take 0.2 ms, 10 take 0.3, of which 0.2 whatever they carry; of these 50 one is left. 2 MiB are
// not small.
TEST(SmallCollectives, WhatIsTakenWhateverTheyCarryIsSaved) {
  const auto pieces = PiecesOf(
      {{4, 200 * kUs, 20}, {8192, 200 * kUs, 20}, {32768, 300 * kUs, 10}, {1 << 21, 3 * kMs, 2}});
  const auto small = Found(pieces, 50 * kMs);
  ASSERT_TRUE(small.has_value());
  EXPECT_DOUBLE_EQ(small->count, 50);
  EXPECT_DOUBLE_EQ(small->all, 52);
  EXPECT_EQ(small->largest_bytes, 32768);
  EXPECT_EQ(small->each_ns, 200 * kUs);
  EXPECT_EQ(small->total.est_ns, 11 * kMs);
  EXPECT_NEAR(static_cast<double>(small->saved.est_ns), 49 * 0.2e6, 1e3);
}

TEST(SmallCollectives, NoMoreIsSavedThanThereIs) {
  const auto pieces = PiecesOf({{4, 200 * kUs, 50}});
  const auto small = SmallCollectivesOf(pieces, kSteps, 50 * kMs, 4 * kMs);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->saved.est_ns, 4 * kMs);
  EXPECT_EQ(small->saved.hi_ns, 4 * kMs);
}

// Each length is rare: they are looked at together.
TEST(SmallCollectives, RareSizesAreNotTakenForSmall) {
  std::vector<PathPiece> pieces = PiecesOf({{4, 200 * kUs, 20}, {100'000, kMs, 1}});
  int64_t more = 0;
  for (PathPiece& piece : pieces) {
    if (piece.bytes > 4) piece.bytes += 1000 * more++;
  }
  const auto small = Found(pieces, 20 * kMs);
  ASSERT_TRUE(small.has_value());
  EXPECT_DOUBLE_EQ(small->count, 20);
  EXPECT_EQ(small->largest_bytes, 4);
}

TEST(SmallCollectives, WhatTheyCarryIsNotSaved) {
  // As long as they carry: four times as much takes four times as long.
  const auto pieces = PiecesOf({{4, 50 * kUs, 2}, {1 << 18, kMs, 30}, {1 << 20, 4 * kMs, 5}});
  EXPECT_FALSE(Found(pieces, 60 * kMs).has_value());
}

TEST(SmallCollectives, WithoutSurelySmallOnesNothingIsSaid) {
  EXPECT_FALSE(Found(PiecesOf({{16384, 200 * kUs, 50}}), 50 * kMs).has_value());
  EXPECT_TRUE(Found(PiecesOf({{8192, 200 * kUs, 50}}), 50 * kMs).has_value());
}

TEST(SmallCollectives, FewOrShortOnesAreNotWorthAWord) {
  EXPECT_FALSE(Found(PiecesOf({{4, kMs, 7}}), 10 * kMs).has_value());
  EXPECT_TRUE(Found(PiecesOf({{4, kMs, 8}}), 10 * kMs).has_value());
  EXPECT_FALSE(Found(PiecesOf({{4, 100 * kUs, 9}}), 17 * kMs).has_value());
  EXPECT_TRUE(Found(PiecesOf({{4, 100 * kUs, 9}}), 15 * kMs).has_value());
}

// One of each kind is left: two names, or two groups.
TEST(SmallCollectives, KindsAreNotJoined) {
  std::vector<PathPiece> pieces = PiecesOf({{4, 200 * kUs, 20}});
  for (size_t i = 0; i < pieces.size(); i += 2) pieces[i].group = 1;
  const auto small = Found(pieces, 20 * kMs);
  ASSERT_TRUE(small.has_value());
  EXPECT_NEAR(static_cast<double>(small->saved.est_ns), 18 * 0.2e6, 1e3);
}

TEST(SmallCollectives, OfWhatIsNotKnownNothingIsMade) {
  std::vector<PathPiece> pieces = PiecesOf({{4, 200 * kUs, 20}});
  for (PathPiece& piece : pieces) piece.bytes = -1;
  EXPECT_FALSE(Found(pieces, 20 * kMs).has_value());
  pieces = PiecesOf({{4, 200 * kUs, 20}});
  for (PathPiece& piece : pieces) piece.kind = PathPiece::Kind::kNotFollowed;
  EXPECT_FALSE(Found(pieces, 20 * kMs).has_value());
}

}  // namespace
}  // namespace syncline::analysis::why
