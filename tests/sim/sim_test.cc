// SPDX-License-Identifier: Apache-2.0
// Truth inside the bound, always: every scenario, several seeds, thousands of instants.
//
// SYNCLINE_SIM_SEEDS  seeds per scenario (default 20, fewer under sanitizers; nights take more)
// SYNCLINE_MUTANT     answers made wrong on purpose (answers.h): then these tests must fail
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "clocksync/thinning.h"
#include "tests/sim/answers.h"
#include "tests/sim/scenario_kit.h"
#include "tests/sim/scenarios.h"

namespace syncline::sim {
namespace {

constexpr int kInstants = 300;
constexpr int64_t kReadingNs = 1;  // the simulator's own rounding of truth
// Instrumented code is some ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSeeds = 2;
#else
constexpr int kSeeds = 20;
#endif

int Seeds() {
  const char* text = std::getenv("SYNCLINE_SIM_SEEDS");
  int seeds = kSeeds;
  if (text != nullptr && !absl::SimpleAtoi(text, &seeds)) seeds = 0;
  return seeds;
}

struct Tally {
  int64_t asked = 0;
  int64_t outside = 0;
  int64_t wrong_order = 0;
  int64_t decided = 0;
  std::vector<int64_t> bounds;  // of Locate, nodes other than the reference; unknown: kUnknownHi
  std::vector<int64_t> errors;
  std::string first_wrong;
};

class Trial {
 public:
  // `both_ask`: over every link its remote end asks, too.
  Trial(const NamedScenario& named, uint64_t seed, bool both_ask = false)
      : random_(seed * 7919 + 17),
        scenario_(named.make(&random_)),
        mutant_(MutantFromEnvironment()) {
    for (size_t i = 0, links = scenario_.links.size(); both_ask && i < links; ++i) {
      LinkSpec reverse = scenario_.links[i];
      std::swap(reverse.local, reverse.remote);
      std::swap(reverse.out, reverse.back);
      scenario_.links.push_back(reverse);
    }
    world_ = Simulate(scenario_.hosts, scenario_.links, scenario_.length_ns, &random_);
  }

  // As the samples of a long recording are kept.
  void Thin() {
    for (clocksync::Edge& edge : world_.edges) edge.samples = clocksync::Thinned(edge.samples);
  }

  const Scenario& scenario() const { return scenario_; }
  const World& world() const { return world_; }

  absl::StatusOr<clocksync::BuildResult> BuildIt() {
    clocksync::BuildInput input{.hosts = world_.tuples, .edges = world_.edges};
    for (const Host& host : world_.hosts) {
      if (host.spec().name != "coordinator") input.nodes.push_back(host.spec().name);
    }
    nodes_ = static_cast<uint32_t>(input.nodes.size());
    if (scenario_.causal) input.causal = scenario_.causal(world_, &random_);
    zero_ = world_.hosts[scenario_.reference].Raw(kSecond);
    return Build(std::move(input),
                 {.reference = input.nodes[scenario_.reference], .zero_reference_raw_ns = zero_},
                 mutant_);
  }

  Tally Ask(const clocksync::ClockModel& model) {
    const Answers answers(model, mutant_);
    Tally tally;
    constexpr ClockKind kKinds[] = {ClockKind::kMonotonic, ClockKind::kMonotonic, ClockKind::kRaw,
                                    ClockKind::kBoottime};
    for (int i = 0; i < kInstants; ++i) {
      const int64_t t = Instant(0, scenario_.length_ns - kSecond);
      const uint32_t a = Pick(nodes_), b = Pick(nodes_);
      const ClockKind kind_a = kKinds[Pick(4)], kind_b = kKinds[Pick(4)];
      // Mostly close to each other, as a message is; sometimes far.
      const int64_t later =
          i % 8 == 0 ? Instant(0, scenario_.length_ns - kSecond) : t + Instant(-2 * kMs, 2 * kMs);
      if (later < 0 || !Askable(a, t) || !Askable(b, later)) continue;
      AskLocate(answers, a, kind_a, t, &tally);
      AskDifference(answers, {a, kind_a}, t, {b, kind_b}, later, &tally);
    }
    return tally;
  }

 private:
  int64_t Instant(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random_);
  }
  uint32_t Pick(uint32_t n) { return static_cast<uint32_t>(Instant(0, n - 1)); }
  bool Askable(uint32_t node, int64_t t) const {
    return scenario_.ask(t) && world_.hosts[node].Awake(t);
  }
  int64_t Truth(int64_t t) const { return world_.hosts[scenario_.reference].Raw(t) - zero_; }

  void AskLocate(const Answers& answers, uint32_t node, ClockKind kind, int64_t t, Tally* tally) {
    const NodeTime time{{node, kind}, world_.hosts[node].Read(kind, t)};
    const TimelineEstimate at = answers.Locate(time);
    ++tally->asked;
    if (node != scenario_.reference) {
      tally->bounds.push_back(at.bound_ns());
      tally->errors.push_back(std::abs(at.est.ns - Truth(t)));
    }
    if (!at.bounded()) return;
    if (Truth(t) >= at.lo.ns - kReadingNs && Truth(t) <= at.hi.ns + kReadingNs) return;
    ++tally->outside;
    Note(tally, "Locate", t, Truth(t), at.lo.ns, at.est.ns, at.hi.ns);
  }

  void AskDifference(const Answers& answers, ClockId a, int64_t t_a, ClockId b, int64_t t_b,
                     Tally* tally) {
    const NodeTime first{a, world_.hosts[a.node].Read(a.kind, t_a)};
    const NodeTime second{b, world_.hosts[b.node].Read(b.kind, t_b)};
    const DurationEstimate d = answers.Difference(first, second);
    // Within one node the difference is that of its own clock.
    const int64_t truth = a == b ? second.ns - first.ns
                          : a.node == b.node
                              ? world_.hosts[a.node].Raw(t_b) - world_.hosts[a.node].Raw(t_a)
                              : Truth(t_b) - Truth(t_a);
    ++tally->asked;
    if (truth < d.lo_ns - (d.bounded() ? kReadingNs : 0) ||
        truth > d.hi_ns - (d.bounded() ? -kReadingNs : 0)) {
      ++tally->outside;
      Note(tally, "Difference", t_a, truth, d.lo_ns, d.est_ns, d.hi_ns);
    }
    const Ordering order = answers.Order(first, second);
    if (order == Ordering::kUndecided || WentBack(a.node, t_a, t_b, b.node)) return;
    ++tally->decided;
    const bool wrong = order == Ordering::kBefore ? t_b < t_a : t_b > t_a;
    if (wrong) ++tally->wrong_order;
  }

  // Two readings of one host have the order of its clocks, also where these went back.
  bool WentBack(uint32_t a, int64_t t_a, int64_t t_b, uint32_t b) const {
    const Host& host = world_.hosts[a];
    return a == b && (host.Raw(t_b) < host.Raw(t_a)) != (t_b < t_a);
  }

  void Note(Tally* tally, const char* what, int64_t t, int64_t truth, int64_t lo, int64_t est,
            int64_t hi) {
    if (!tally->first_wrong.empty()) return;
    tally->first_wrong = std::string(what) + " at " + std::to_string(t) + " ns: truth " +
                         std::to_string(truth) + " lo " + std::to_string(lo - truth) + " est " +
                         std::to_string(est - truth) + " hi " + std::to_string(hi - truth);
  }

  Random random_;
  Scenario scenario_;
  Mutant mutant_;
  World world_;
  uint32_t nodes_ = 0;
  int64_t zero_ = 0;
};

int64_t Median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

using clocksync::ClockEvent;

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the event is about a RAW clock that broke off, whoever's.
bool IsAboutAClock(const ClockEvent& event) {
  return event.kind == ClockEvent::Kind::kInfeasible &&
         (event.cause == ClockEvent::Cause::kStep || event.cause == ClockEvent::Cause::kSuspend ||
          event.cause == ClockEvent::Cause::kRateChange);
}

// Whether the event tells of this break: who, when, how much.
bool Tells(const ClockEvent& event, const Broken& broken, const World& world) {
  if (!IsAboutAClock(event)) return false;
  const Host& host = world.hosts[broken.host];
  const std::string& name = host.spec().name;
  const bool one_of_two = Has(event.between, name);
  if (broken.named ? event.node != name : event.node != name && !one_of_two) return false;
  // Told of an edge it is what the remote clock gained on the local one, by the local clock.
  const std::string local = event.node.substr(0, event.node.find("--"));
  const Host* clock = &host;
  for (const Host& other : world.hosts) {
    if (one_of_two && other.spec().name == local) clock = &other;
  }
  const int64_t before = clock->Raw(broken.at_ns - 1);
  const int64_t after = clock->Raw(broken.at_ns + broken.lasts_ns);
  const int64_t step = one_of_two && local == name ? -broken.by_ns : broken.by_ns;
  // While one clock sleeps the others go on at rates of their own.
  const int64_t slack_ns = kReadingNs + broken.lasts_ns / 10'000;
  return event.begin_ns <= std::min(before, after) && event.end_ns >= std::max(before, after) - 1 &&
         event.step_ns_min - slack_ns <= step && step <= event.step_ns_max + slack_ns;
}

void CheckBreaks(const Scenario& scenario, const World& world,
                 const std::vector<ClockEvent>& events) {
  std::string told;
  for (const ClockEvent& event : events) told += "\n  " + event.node + ": " + event.text;
  for (const Broken& broken : scenario.broken) {
    EXPECT_TRUE(std::any_of(events.begin(), events.end(),
                            [&](const auto& event) { return Tells(event, broken, world); }))
        << world.hosts[broken.host].spec().name << " broke at " << broken.at_ns << " by "
        << broken.by_ns << " ns; told is:" << told;
  }
  for (const ClockEvent& event : events) {
    if (scenario.broken.empty() || !IsAboutAClock(event)) continue;
    EXPECT_TRUE(std::any_of(scenario.broken.begin(), scenario.broken.end(),
                            [&](const Broken& b) {
                              const std::string& name = world.hosts[b.host].spec().name;
                              return event.node == name || (!b.named && Has(event.between, name));
                            }))
        << "wrongly accused: " << event.node << ": " << event.text;
  }
  if (scenario.false_edge.empty()) return;
  EXPECT_TRUE(std::any_of(events.begin(), events.end(),
                          [&](const ClockEvent& event) {
                            return event.kind == ClockEvent::Kind::kInfeasible &&
                                   event.node == scenario.false_edge && event.between.empty();
                          }))
      << scenario.false_edge << " is not named; told is:" << told;
}

class SimTest : public testing::TestWithParam<size_t> {};

TEST_P(SimTest, TruthIsInsideTheBound) {
  const NamedScenario& named = Scenarios()[GetParam()];
  for (int seed = 1; seed <= Seeds(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trial run(named, static_cast<uint64_t>(seed));
    const Scenario& scenario = run.scenario();
    ASSERT_TRUE(scenario.occurred) << "every scenario proves that it occurred";
    ASSERT_TRUE(scenario.occurred(run.world())) << "the situation did not occur";
    const auto result = run.BuildIt();
    ASSERT_TRUE(result.ok()) << result.status();
    const Tally tally = run.Ask(result->model);
    EXPECT_EQ(tally.outside, 0) << "of " << tally.asked << "; first: " << tally.first_wrong;
    EXPECT_EQ(tally.wrong_order, 0) << "of " << tally.decided;
    const int64_t bound = Median(tally.bounds);
    if (scenario.bound_median_max_ns == 0) {
      EXPECT_EQ(bound, kUnknownHi);
    } else if (!tally.bounds.empty()) {
      EXPECT_LE(bound, scenario.bound_median_max_ns);
    }
    if (scenario.error_median_max_ns != 0) {
      EXPECT_LE(Median(tally.errors), scenario.error_median_max_ns);
    }
    for (clocksync::ClockEvent::Kind kind : scenario.reported) {
      EXPECT_TRUE(std::any_of(result->events.begin(), result->events.end(),
                              [kind](const auto& event) { return event.kind == kind; }))
          << "not reported: kind " << static_cast<int>(kind);
    }
    for (const auto& event : result->events) {
      EXPECT_FALSE(scenario.quiet && event.kind == clocksync::ClockEvent::Kind::kInfeasible)
          << event.node << ": " << event.text;
    }
    CheckBreaks(scenario, run.world(), result->events);
    // The same model from its file gives the same answers.
    const auto again = clocksync::ClockModel::FromJson(result->model.ToJson());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->ToJson(), result->model.ToJson());
    RecordProperty("bound_median_ns", std::to_string(bound));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimTest, testing::Range<size_t>(0, Scenarios().size()),
                         [](const auto& info) { return Scenarios()[info.param].name; });

// Whether the world keeps to what "likely" assumes, and to what everything assumes.
bool AssumptionHolds(const Scenario& scenario, const World& world, int64_t percent) {
  if (!scenario.broken.empty() || !scenario.false_edge.empty() || scenario.causal) return false;
  for (size_t edge = 0; edge < world.edges.size(); ++edge) {
    if (scenario.links[edge].false_stamp > 0) return false;
    const std::vector<int64_t> trips = RoundTrips(world, edge);
    if (trips.empty()) continue;
    const int64_t least = std::min(ShortestOut(world, edge), ShortestBack(world, edge));
    if (least * 200 < trips.front() * (100 - percent)) return false;
  }
  return true;
}

TEST(SimLikelyTest, HoldsWhereverItsAssumptionDoes) {
  int held = 0;
  for (const NamedScenario& named : Scenarios()) {
    for (int seed = 1; seed <= std::min(Seeds(), 3); ++seed) {
      SCOPED_TRACE(named.name + ", seed " + std::to_string(seed));
      Trial run(named, static_cast<uint64_t>(seed));
      const auto result = run.BuildIt();
      ASSERT_TRUE(result.ok()) << result.status();
      if (!AssumptionHolds(run.scenario(), run.world(), 50)) continue;
      const auto likely = result->model.AssumingAsymmetry(50);
      ASSERT_TRUE(likely.has_value()) << "is said to be contradicted";
      const Tally tally = run.Ask(*likely);
      EXPECT_EQ(tally.outside, 0) << "of " << tally.asked << "; first: " << tally.first_wrong;
      EXPECT_EQ(tally.wrong_order, 0) << "of " << tally.decided;
      ++held;
      if (named.name != "no_jitter") continue;
      // Of the width of the corridor half is left, and what is added for bends and between hosts.
      const int64_t proven = Median(run.Ask(result->model).bounds);
      EXPECT_LT(Median(tally.bounds), proven * 6 / 10);
    }
  }
  EXPECT_GT(held, 20) << "hardly any scenario keeps to the assumption";
}

// All delay one way: the assumption is false, and nothing but the assumption.
TEST(SimLikelyTest, IsFalseWhereItsAssumptionIsAndTheProofStands) {
  for (const NamedScenario& named : Scenarios()) {
    if (named.name != "all_delay_out" && named.name != "all_delay_back") continue;
    SCOPED_TRACE(named.name);
    Trial run(named, 1);
    ASSERT_FALSE(AssumptionHolds(run.scenario(), run.world(), 50));
    const auto result = run.BuildIt();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(run.Ask(result->model).outside, 0);
    const auto likely = result->model.AssumingAsymmetry(50);
    ASSERT_TRUE(likely.has_value()) << "one path alone cannot contradict it";
    EXPECT_GT(run.Ask(*likely).outside, 0);
    const auto any = result->model.AssumingAsymmetry(clocksync::kAsymmetryPercentAny);
    ASSERT_TRUE(any.has_value());
    EXPECT_EQ(run.Ask(*any).outside, 0);
  }
}

// As in small fleets. Who lies about another's clock would lie about its own: left out.
TEST(SimBothAskTest, TruthIsInsideAndWhoBrokeIsNamed) {
  int asked = 0;
  for (const NamedScenario& named : Scenarios()) {
    for (int seed = 1; seed <= std::min(Seeds(), 3); ++seed) {
      SCOPED_TRACE(named.name + ", seed " + std::to_string(seed));
      Trial run(named, static_cast<uint64_t>(seed), /*both_ask=*/true);
      if (!run.scenario().false_edge.empty()) continue;
      const auto result = run.BuildIt();
      ASSERT_TRUE(result.ok()) << result.status();
      const Tally tally = run.Ask(result->model);
      EXPECT_EQ(tally.outside, 0) << "of " << tally.asked << "; first: " << tally.first_wrong;
      EXPECT_EQ(tally.wrong_order, 0) << "of " << tally.decided;
      CheckBreaks(run.scenario(), run.world(), result->events);
      ++asked;
    }
  }
  EXPECT_GT(asked, 100);
}

// What is forgotten of the samples of a long recording changes neither truth nor width.
TEST(SimThinnedTest, TruthIsInsideAndTheBoundAsNarrow) {
  size_t samples = 0, left = 0;
  for (const NamedScenario& named : Scenarios()) {
    for (int seed = 1; seed <= std::min(Seeds(), 3); ++seed) {
      SCOPED_TRACE(named.name + ", seed " + std::to_string(seed));
      Trial whole(named, static_cast<uint64_t>(seed)), thin(named, static_cast<uint64_t>(seed));
      thin.Thin();
      for (const auto& edge : whole.world().edges) samples += edge.samples.size();
      for (const auto& edge : thin.world().edges) left += edge.samples.size();
      const auto of_all = whole.BuildIt(), of_few = thin.BuildIt();
      ASSERT_TRUE(of_few.ok()) << of_few.status();
      const Tally all = whole.Ask(of_all->model), few = thin.Ask(of_few->model);
      EXPECT_EQ(few.outside, 0) << "of " << few.asked << "; first: " << few.first_wrong;
      EXPECT_EQ(few.wrong_order, 0) << "of " << few.decided;
      if (whole.scenario().causal) continue;  // their places are random, too
      // The same instants were asked of both.
      ASSERT_EQ(few.bounds.size(), all.bounds.size());
      for (size_t i = 0; i < few.bounds.size() && thin.scenario().broken.empty(); ++i) {
        const int64_t was = all.bounds[i];
        EXPECT_LE(few.bounds[i], was == kUnknownHi ? was : was + 10 + was / 50);
      }
      CheckBreaks(thin.scenario(), thin.world(), of_few->events);
    }
  }
  EXPECT_LT(left, samples / 2);
}

// Wall clocks shifted by a constant: byte for byte the same model, but for what says "wall clock".
TEST(SimWallClockTest, NoModelDependsOnAWallClock) {
  for (const NamedScenario& named : Scenarios()) {
    if (named.name != "star_of_two" && named.name != "ntp_slew_500_ppm" &&
        named.name != "wall_step_forward") {
      continue;
    }
    std::vector<std::string> models;
    for (int64_t shift : {int64_t{0}, 86'400 * kSecond + 123'457}) {
      Random random(5);
      const Scenario scenario = named.make(&random);
      World world = Simulate(scenario.hosts, scenario.links, scenario.length_ns, &random);
      for (auto& tuple : world.tuples[1].tuples) tuple.realtime_ns += shift;
      clocksync::BuildInput input{.hosts = world.tuples, .edges = world.edges};
      for (const Host& host : world.hosts) {
        if (host.spec().name != "coordinator") input.nodes.push_back(host.spec().name);
      }
      const auto result = clocksync::BuildModel(input, {.reference = input.nodes[0]});
      ASSERT_TRUE(result.ok()) << result.status();
      models.push_back(result->model.ToJson());
    }
    EXPECT_NE(models[0], models[1]) << named.name << ": the shift reached nothing";
    const auto without_wall = [](const std::string& json) {
      return json.substr(0, json.find("\"wall_clock\""));
    };
    EXPECT_EQ(without_wall(models[0]), without_wall(models[1])) << named.name;
  }
}

}  // namespace
}  // namespace syncline::sim
