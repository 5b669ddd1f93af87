// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/collective_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "clocksync/builder.h"

namespace syncline::merge {
namespace {

using clocksync::BuildInput;
using clocksync::BuildModel;
using clocksync::BuildResult;
using timeline::Collective;
using timeline::CollectiveMember;
using timeline::Collectives;

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kAhead[] = {0, 777 * kSecond};  // RAW of each node, by true time
constexpr int64_t kBegin = 100 * kSecond;
constexpr int64_t kDelay = 5 * kMs;  // of a probe, one way: so wide is the bound without pairs
constexpr int64_t kWork = 30 * kUs;  // from the last entry to every exit

NodeTime At(uint32_t node, int64_t true_ns) {
  return {{node, ClockKind::kRaw}, true_ns + kAhead[node]};
}
int64_t TrueNs(const NodeTime& time) { return time.ns - kAhead[time.clock.node]; }
bool IsTrue(const CausalPair& pair) { return TrueNs(pair.before) <= TrueNs(pair.after); }

// Two nodes of one rank each.
BuildInput Input() {
  BuildInput input;
  input.nodes = {"a", "b"};
  clocksync::Edge edge{.local = "a", .remote = "b"};
  for (int64_t t = kBegin; t < kBegin + 10 * kSecond; t += kSecond / 10) {
    edge.samples.push_back({At(0, t).ns, At(1, t + kDelay).ns, At(1, t + kDelay + kUs).ns,
                            At(0, t + 2 * kDelay + kUs).ns});
  }
  input.edges = {edge};
  return input;
}

BuildResult Build(std::vector<CausalPair> causal = {}) {
  BuildInput input = Input();
  input.causal = std::move(causal);
  auto built = BuildModel(input, {.reference = "a", .zero_reference_raw_ns = At(0, kBegin).ns});
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

struct Job {
  int count = 40;
  std::string name = "allreduce";
  bool root_leaves_at_once = false;  // rank 0, without the other
  int64_t number_shift = 0;          // of rank 1's numbers, wrongly
  int64_t late_ns = 200 * kUs;       // rank 1's entry, after rank 0's; every other time before
  int64_t period_ns = 50 * kMs;
  bool by_twos = false;  // every second one is begun while the one before is under way
};

Collectives Found(const Job& job) {
  Collectives found;
  found.groups.push_back({.name = "0", .ranks = "0-1", .size = 2});
  for (int k = 0; k < job.count; ++k) {
    const int64_t in_pair_ns = job.by_twos ? k % 2 * (job.period_ns - 10 * kUs) : 0;
    const int64_t t = kBegin + 3 * kSecond + k * job.period_ns - in_pair_ns;
    const bool late = (job.by_twos ? k / 2 : k) % 2 == 0;
    const int64_t enters[] = {t, t + (late ? job.late_ns : -job.late_ns)};
    const int64_t leaves = std::max(enters[0], enters[1]) + kWork;
    for (uint32_t node = 0; node < 2; ++node) {
      const auto number = static_cast<uint64_t>(100 + k + (node == 1 ? job.number_shift : 0));
      auto at = std::find_if(found.collectives.begin(), found.collectives.end(),
                             [number](const auto& c) { return c.number == number; });
      if (at == found.collectives.end()) {
        at = found.collectives.insert(at, {.group = 0, .number = number, .name = job.name});
      }
      CollectiveMember member{.node = node, .rank = static_cast<int32_t>(node)};
      const bool at_once = job.root_leaves_at_once && node == 0;
      const int64_t left = at_once ? enters[0] + kUs : leaves;
      member.entered = At(node, enters[node]);
      member.entered_at = {enters[node] - kBegin};
      member.left = At(node, left);
      member.left_at = TimelineTime{left - kBegin};
      at->members.push_back(member);
    }
  }
  return found;
}

std::vector<CausalPair> Pairs(const Collectives& found) {
  return CollectivePairs(found, Build().model);
}

// The interval of what b's clock reads when a's reads the middle of the collectives.
DurationEstimate Middle(const clocksync::ClockModel& model) {
  const int64_t t = kBegin + 4 * kSecond;
  return model.Difference(At(0, t), At(1, t));
}

TEST(CollectivePairsTest, NarrowTheBoundAndTheTruthStaysInside) {
  const std::vector<CausalPair> pairs = Pairs(Found({}));
  ASSERT_FALSE(pairs.empty());
  EXPECT_TRUE(std::all_of(pairs.begin(), pairs.end(), IsTrue));
  const DurationEstimate without = Middle(Build().model);
  const DurationEstimate with = Middle(Build(pairs).model);
  EXPECT_GT(without.hi_ns - without.lo_ns, 9 * kMs);
  // Whoever enters last leaves 30 us later, at both ends: so far the other's exit is from it.
  EXPECT_LT(with.hi_ns - with.lo_ns, 4 * kWork);
  EXPECT_LE(with.lo_ns, 0);
  EXPECT_GE(with.hi_ns, 0);
}

// The sign matters: turned round the same pairs are false, and the model says so.
TEST(CollectivePairsTest, TurnedRoundTheyAreFalse) {
  std::vector<CausalPair> turned;
  for (const CausalPair& pair : Pairs(Found({}))) turned.push_back({pair.after, pair.before});
  ASSERT_FALSE(turned.empty());
  EXPECT_TRUE(std::none_of(turned.begin(), turned.end(), IsTrue));
  const BuildResult built = Build(turned);
  const DurationEstimate wrong = Middle(built.model);
  const bool contradicted = std::any_of(
      built.events.begin(), built.events.end(),
      [](const auto& event) { return event.kind == clocksync::ClockEvent::Kind::kInfeasible; });
  EXPECT_TRUE(contradicted || wrong.lo_ns > 0 || wrong.hi_ns < 0);
}

// A broadcast's root does not wait: nothing follows. Taken for an all-reduce it would be a lie.
TEST(CollectivePairsTest, KindsInWhichNotEverybodyWaitsSayNothing) {
  for (const char* name : {"broadcast", "reduce", "gather", "scatter", "alltoall"}) {
    EXPECT_TRUE(Pairs(Found({.name = name, .root_leaves_at_once = true})).empty()) << name;
  }
  const std::vector<CausalPair> lies = Pairs(Found({.root_leaves_at_once = true}));
  EXPECT_FALSE(std::all_of(lies.begin(), lies.end(), IsTrue));
}

TEST(CollectivePairsTest, OfNothingNobodyWaits) {
  Collectives found = Found({});
  for (Collective& collective : found.collectives) collective.may_be_empty = true;
  EXPECT_TRUE(Pairs(found).empty());
  found = Found({.name = "barrier"});
  for (Collective& collective : found.collectives) collective.may_be_empty = true;
  EXPECT_FALSE(Pairs(found).empty());
}

// A wrong number pairs one collective's exit with another's entry.
TEST(CollectivePairsTest, NumbersThatMayBeOthersSayNothing) {
  EXPECT_TRUE(Pairs(Found({.number_shift = 1})).empty()) << "the clocks contradict it";
  EXPECT_TRUE(Pairs(Found({.number_shift = 1, .period_ns = kMs})).empty())
      << "5 ms are too wide to tell one from the next";
  EXPECT_TRUE(Pairs(Found({.period_ns = kMs})).empty()) << "also where they are right";
  EXPECT_TRUE(Pairs(Found({.count = 5})).empty()) << "too few to rule out any shift";
  Collectives found = Found({});
  found.undecided.push_back({});
  EXPECT_TRUE(Pairs(found).empty());
}

// While a process is in two collectives, which of them an exit belongs to is a guess.
TEST(CollectivePairsTest, ExitsThatMayBeAnothersSayNothing) {
  EXPECT_TRUE(Pairs(Found({.by_twos = true})).empty());
  Collectives found = Found({.by_twos = true});
  std::erase_if(found.collectives, [](const Collective& c) { return c.number % 2 == 1; });
  for (Collective& collective : found.collectives) collective.number /= 2;
  EXPECT_FALSE(Pairs(found).empty()) << "it is not the overlap that is in the way";
}

}  // namespace
}  // namespace syncline::merge
