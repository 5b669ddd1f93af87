// SPDX-License-Identifier: Apache-2.0
#include "clocksync/reach.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "clocksync/builder.h"

namespace syncline::clocksync {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kZero = 100 * kSecond;
constexpr int64_t kAhead = 500 * kSecond;  // worker's RAW - master's

// Ten seconds of two nodes that drift apart and answer after times that vary much; MONOTONIC is
// slewed now and then, REALTIME is set once.
ClockModel Model() {
  std::mt19937_64 random(7);
  BuildInput input;
  input.nodes = {"master", "worker"};
  Edge edge{.local = "master", .remote = "worker"};
  HostClocks master{.node = "master"}, worker{.node = "worker"};
  int64_t slewed_ns = 0;
  for (int64_t at = 0; at < 10 * kSecond; at += kSecond / 50) {
    const int64_t t = kZero + at;
    const int64_t there = t + kAhead + at / 50'000;  // 20 ppm
    const auto delay = [&] { return static_cast<int64_t>(8'000 + random() % 40'000); };
    const int64_t out = delay(), back = delay();
    edge.samples.push_back(
        {t, there + out, there + out + 5'000, t + out + 5'000 + back, StampSource::kKernel});
    if (at / (2 * kSecond) % 2 == 1) slewed_ns += 10'000;  // 500 ppm
    const int64_t set_ns = at > 6 * kSecond ? 3 * kSecond : 0;
    for (auto* host : {&master, &worker}) {
      const int64_t raw = host == &master ? t : there;
      const auto wide = static_cast<int64_t>(40 + random() % 200);
      host->tuples.push_back({raw, raw + slewed_ns + wide / 2, raw + 900 * kSecond + set_ns,
                              raw + slewed_ns + wide / 2, raw + wide, 0, 10'000, 0});
    }
  }
  input.hosts = {master, worker};
  input.edges = {edge};
  auto result = BuildModel(input, {.reference = "master", .zero_reference_raw_ns = kZero});
  EXPECT_TRUE(result.ok()) << result.status();
  return std::move(result->model);
}

std::optional<Reach> Exact(const ClockModel& model, NodeTime time) {
  const TimelineEstimate where = model.Locate(time);
  if (!where.bounded()) return std::nullopt;
  return Reach{where.est.ns - where.lo.ns, where.hi.ns - where.est.ns};
}

// Of the instants around `time`, as far as a piece may reach, the largest.
Reach LargestAround(const ClockModel& model, NodeTime time) {
  constexpr int64_t kPieceNs = int64_t{1} << 18;
  Reach largest;
  for (int64_t ns = time.ns - kPieceNs; ns <= time.ns + kPieceNs; ns += kPieceNs / 64) {
    const std::optional<Reach> reach = Exact(model, {time.clock, ns});
    if (!reach.has_value()) continue;
    largest = {std::max(largest.lo_ns, reach->lo_ns), std::max(largest.hi_ns, reach->hi_ns)};
  }
  return largest;
}

TEST(ReachTest, IsNeverLessThanLocateSaysAndHardlyMore) {
  const ClockModel model = Model();
  ReachFinder finder(&model);
  std::mt19937_64 random(11);
  uint64_t bounded = 0, more = 0;
  for (const uint32_t node : {0u, 1u}) {
    for (const ClockKind kind : {ClockKind::kMonotonic, ClockKind::kRaw, ClockKind::kRealtime}) {
      const int64_t begin =
          kZero + (node == 1 ? kAhead : 0) + (kind == ClockKind::kRealtime ? 900 * kSecond : 0);
      for (int i = 0; i < 5'000; ++i) {
        // From before the first sample to behind the last.
        const auto at = static_cast<int64_t>(random() % (12 * kSecond)) - kSecond;
        const NodeTime time{{node, kind}, begin + at};
        const std::optional<Reach> exact = Exact(model, time), found = finder.At(time);
        ASSERT_EQ(found.has_value(), exact.has_value()) << time.ns;
        if (!exact.has_value()) continue;
        ++bounded;
        ASSERT_GE(found->lo_ns, exact->lo_ns) << time.ns;
        ASSERT_GE(found->hi_ns, exact->hi_ns) << time.ns;
        more += found->lo_ns > exact->lo_ns ? 1 : 0;
        const Reach largest = LargestAround(model, time);
        // Where it is largest no instant of the grid need lie: a little more than is seen there.
        ASSERT_LE(found->lo_ns, largest.lo_ns + 100) << time.ns;
        ASSERT_LE(found->hi_ns, largest.hi_ns + 100) << time.ns;
      }
    }
  }
  EXPECT_GT(bounded, 20'000u);
  EXPECT_GT(more, 1'000u);  // that it was found and not asked for
}

// At the bends themselves, where the ends of a piece alone would say too little.
TEST(ReachTest, CountsBendsInsideAPiece) {
  const ClockModel model = Model();
  ReachFinder finder(&model);
  uint64_t asked = 0;
  for (const uint32_t node : {0u, 1u}) {
    const ClockId clock{node, ClockKind::kMonotonic};
    const auto bends = model.BendsOf(clock);
    ASSERT_TRUE(bends.has_value());
    for (const int64_t bend : *bends) {
      for (int64_t ns = bend - 2; ns <= bend + 2; ++ns) {
        const std::optional<Reach> exact = Exact(model, {clock, ns}),
                                   found = finder.At({clock, ns});
        ASSERT_EQ(found.has_value(), exact.has_value()) << ns;
        if (!exact.has_value()) continue;
        ++asked;
        ASSERT_GE(found->lo_ns, exact->lo_ns) << ns;
        ASSERT_GE(found->hi_ns, exact->hi_ns) << ns;
      }
    }
  }
  EXPECT_GT(asked, 1'000u);
}

TEST(ReachTest, KnowsNothingWithoutAModelOrOfWhatTheModelDoesNotKnow) {
  ReachFinder none(nullptr);
  EXPECT_FALSE(none.At({{0, ClockKind::kRaw}, 5}).has_value());
  const ClockModel identity = ClockModel::Identity({"a"});
  ReachFinder finder(&identity);
  EXPECT_FALSE(finder.At({{0, ClockKind::kRaw}, 5}).has_value());
  EXPECT_FALSE(finder.At({{7, ClockKind::kRaw}, 5}).has_value());
  EXPECT_FALSE(finder.At({{0, ClockKind::kDevice, 1}, 5}).has_value());
}

TEST(ReachTest, TakesTimesAtTheEndsOfTheRange) {
  const ClockModel model = Model();
  ReachFinder finder(&model);
  for (const int64_t ns : {kUnknownLo, kUnknownLo + 1, kUnknownHi - 1, kUnknownHi}) {
    const NodeTime time{{1, ClockKind::kMonotonic}, ns};
    EXPECT_EQ(finder.At(time).has_value(), Exact(model, time).has_value()) << ns;
  }
}

}  // namespace
}  // namespace syncline::clocksync
