// SPDX-License-Identifier: Apache-2.0
#include "control_block/cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::control_block {
namespace {

// Calls of threads, sampled as instrumentation/block/cost.c does it.
struct Sampled {
  GateAnswer gate;
  double truth_ns = 0;

  template <class Random>
  void Thread(Random& random, uint64_t calls, const std::function<double(uint64_t)>& call_ns) {
    CostSums& cost = gate.cost_since_on;
    uint64_t stride = 7;
    uint64_t stands_for = 7;
    uint64_t left = stands_for;
    uint64_t at_stride = 0;
    for (uint64_t i = 0; i < calls; ++i) {
      const auto ns = static_cast<uint64_t>(std::min(call_ns(i), 50'000.0));
      truth_ns += static_cast<double>(ns);
      if (--left != 0) continue;
      ++cost.samples;
      cost.calls += stands_for;
      cost.sampled_ns += ns * stands_for;
      cost.squares += (ns * stands_for * ns * stands_for + 1023) / 1024;
      cost.timed_ns += ns;
      gate.cost_ns_since_on += ns * stands_for;
      if (++at_stride == 8 && stride < 251) {
        ++stride;
        at_stride = 0;
      }
      stands_for = stride - stride / 4 + random() % (2 * (stride / 4) + 1);
      left = stands_for;
    }
    gate.events_since_on += calls;
  }
};

using Draw = std::function<double(std::mt19937_64&, uint64_t)>;

struct Case {
  const char* name;
  uint64_t threads;
  uint64_t calls;
  double width_max;  // of the interval, as a part of the estimate: it says something, too
  Draw draw;
};

double Lognormal(std::mt19937_64& random, double median_ns, double sigma) {
  return std::lognormal_distribution<double>(std::log(median_ns), sigma)(random);
}

// In how many of `tries` the truth lies outside, and how wide the interval is at the median.
struct Outcome {
  int misses = 0;
  double width = 0;
};

Outcome Try(const Case& one, int tries) {
  Outcome outcome;
  std::vector<double> widths;
  for (int seed = 0; seed < tries; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    Sampled sampled;
    for (uint64_t thread = 0; thread < one.threads; ++thread) {
      sampled.Thread(random, one.calls, [&](uint64_t i) { return one.draw(random, i); });
    }
    const DurationEstimate cost = CostOf(sampled.gate);
    EXPECT_TRUE(cost.bounded());
    EXPECT_LE(cost.lo_ns, cost.est_ns);
    EXPECT_LE(cost.est_ns, cost.hi_ns);
    const auto lo = static_cast<double>(cost.lo_ns);
    const auto hi = static_cast<double>(cost.hi_ns);
    outcome.misses += sampled.truth_ns < lo || sampled.truth_ns > hi ? 1 : 0;
    widths.push_back((hi - lo) / static_cast<double>(cost.est_ns));
  }
  std::sort(widths.begin(), widths.end());
  outcome.width = widths[widths.size() / 2];
  return outcome;
}

TEST(CostTest, TheTruthIsInsideHoweverCallsAreDistributed) {
  const Case cases[] = {
      {"alike", 2, 50'000, 0.2, [](auto&, uint64_t) { return 300.0; }},
      {"in turn", 1, 50'000, 0.4, [](auto&, uint64_t i) { return i % 2 == 0 ? 150.0 : 450.0; }},
      {"by step", 1, 60'000, 1.5, [](auto&, uint64_t i) { return i % 185 < 5 ? 8e3 : 2e2; }},
      {"heavy tail", 4, 20'000, 0.6, [](auto& r, uint64_t) { return Lognormal(r, 300, 1.2); }},
      {"cold, then warm", 2, 40'000, 0.4,
       [](auto& r, uint64_t i) { return Lognormal(r, i < 4'000 ? 3000 : 250, 0.3); }},
      {"few", 200, 40, 2, [](auto& r, uint64_t) { return Lognormal(r, 2e3, 1); }},
  };
  for (const Case& one : cases) {
    const Outcome outcome = Try(one, 60);
    EXPECT_LE(outcome.misses, 3) << one.name;
    EXPECT_LE(outcome.width, one.width_max) << one.name;
  }
}

TEST(CostTest, WorkedExample) {
  GateAnswer gate;
  gate.cost_since_on = {100, 1000, 200'000, 500'000'000 / 1024, 20'000, 0, 0};
  gate.cost_ns_since_on = 200'000;
  gate.events_since_on = 1000;
  const DurationEstimate cost = CostOf(gate);
  EXPECT_EQ(cost.est_ns, 200'000);
  EXPECT_NEAR(static_cast<double>(cost.lo_ns), 155'000, 200);
  EXPECT_NEAR(static_cast<double>(cost.hi_ns), 245'000, 200);
}

TEST(CostTest, WithFewSamplesOnlyWhatIsCertain) {
  Sampled sampled;
  std::mt19937_64 random(1);
  sampled.Thread(random, 6, [](uint64_t) { return 1000.0; });
  EXPECT_FALSE(CostOf(sampled.gate).bounded()) << "nothing was timed";
  sampled.Thread(random, 20, [](uint64_t) { return 1000.0; });
  const DurationEstimate cost = CostOf(sampled.gate);
  EXPECT_EQ(cost.lo_ns, 2000);
  EXPECT_EQ(cost.hi_ns, 2000 + 24 * 50'000);
}

TEST(CostTest, WhatWasTimedWholeHasNoInterval) {
  GateAnswer gate;
  gate.cost_since_on.timed_ns = gate.cost_ns_since_on = 123'456;
  const DurationEstimate cost = CostOf(gate);
  EXPECT_EQ(cost.lo_ns, 123'456);
  EXPECT_EQ(cost.hi_ns, 123'456);
}

TEST(CostTest, DamagedSumsGiveAnIntervalAllTheSame) {
  GateAnswer gate;
  gate.cost_since_on = {3, UINT64_MAX, UINT64_MAX, 1, UINT64_MAX, UINT64_MAX, 7};
  gate.cost_ns_since_on = 5;
  gate.events_since_on = gate.lost_since_on = UINT64_MAX;
  const DurationEstimate cost = CostOf(gate);
  EXPECT_LE(cost.lo_ns, cost.est_ns);
  EXPECT_LE(cost.est_ns, cost.hi_ns);
}

}  // namespace
}  // namespace syncline::control_block
