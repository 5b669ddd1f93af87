// SPDX-License-Identifier: Apache-2.0
#include "clocksync/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clocksync/clock_model.h"

namespace syncline::clocksync {
namespace {

using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kAhead = 500 * kSecond;  // worker's RAW - master's

// Two nodes, 10 us each way, no drift; worker's MONOTONIC is 7 s ahead of its RAW.
BuildInput TwoNodes() {
  BuildInput input;
  input.nodes = {"master", "worker"};
  Edge edge{.local = "master", .remote = "worker"};
  HostClocks master{.node = "master"}, worker{.node = "worker"};
  for (int64_t t = 100 * kSecond; t < 110 * kSecond; t += kSecond / 10) {
    edge.samples.push_back(
        {t, t + kAhead + 10'000, t + kAhead + 15'000, t + 25'000, StampSource::kKernel});
    master.tuples.push_back({t, t + 20, t + 900 * kSecond + 20, t + 20, t + 40, 0, 10'000, 0});
    worker.tuples.push_back({t + kAhead, t + kAhead + 7 * kSecond + 20, t + 20,
                             t + kAhead + 7 * kSecond + 20, t + kAhead + 40, 0, 10'000, 0});
  }
  input.hosts = {master, worker};
  input.edges = {edge};
  return input;
}

BuildOptions Options() { return {.reference = "master", .zero_reference_raw_ns = 102 * kSecond}; }

TEST(BuilderTest, PlacesBothNodesOnTheTimeline) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok()) << result.status();
  const ClockModel& model = result->model;
  EXPECT_EQ(model.nodes(), (std::vector<std::string>{"master", "worker"}));
  EXPECT_EQ(model.epoch_unix_ns(), 1002 * kSecond);
  const int64_t t = 105 * kSecond;
  const auto at_master = model.Locate({{0, ClockKind::kRaw}, t});
  EXPECT_EQ(at_master.est.ns, 3 * kSecond);
  EXPECT_EQ(at_master.bound_ns(), 0);
  const auto at_worker = model.Locate({{1, ClockKind::kMonotonic}, t + kAhead + 7 * kSecond});
  EXPECT_NEAR(at_worker.est.ns, 3 * kSecond, 100);
  EXPECT_LE(at_worker.lo.ns, 3 * kSecond);
  EXPECT_GE(at_worker.hi.ns, 3 * kSecond);
  EXPECT_NEAR(at_worker.bound_ns(), 10'000, 200);
}

// A question takes 10 us, its answer 6: the answers to both count, and lie on either side.
TEST(BuilderTest, AskedFromBothSidesTheirDifferenceCancels) {
  BuildInput input = TwoNodes();
  Edge asked_by_worker{.local = "worker", .remote = "master"};
  for (ProbeSample& s : input.edges[0].samples) {
    s.t4_local_ns = s.t1_local_ns + 21'000;
    const int64_t t = s.t1_local_ns + kSecond / 20;  // by the master
    asked_by_worker.samples.push_back({t + kAhead, t + 10'000, t + 15'000, t + 21'000 + kAhead});
  }
  const auto interval = [](const BuildInput& in) {
    const auto result = BuildModel(in, Options());
    EXPECT_TRUE(result.ok()) << result.status();
    return result->model.Difference({{0, ClockKind::kRaw}, 105 * kSecond},
                                    {{1, ClockKind::kRaw}, 105 * kSecond + kAhead});
  };
  const DurationEstimate one_side = interval(input);
  EXPECT_NEAR(static_cast<double>(one_side.est_ns), -2'000, 50);  // half of the difference
  EXPECT_NEAR(static_cast<double>(one_side.hi_ns - one_side.lo_ns), 16'000, 300);
  input.edges.push_back(asked_by_worker);
  const DurationEstimate both = interval(input);
  EXPECT_NEAR(static_cast<double>(both.est_ns), 0, 50);
  EXPECT_NEAR(static_cast<double>(both.hi_ns - both.lo_ns), 12'000, 300);

  const auto result = BuildModel(input, Options());
  ASSERT_EQ(result->edges.size(), 1u);
  EXPECT_EQ(result->edges[0].samples, 200u);
  EXPECT_EQ(result->edges[0].round_trip_min_ns, 16'000);
  const auto stored = ClockModel::FromJson(result->model.ToJson());
  ASSERT_TRUE(stored.ok());
  ASSERT_EQ(stored->sources().size(), 2u);
  EXPECT_EQ(stored->sources()[1].local, "worker");
  EXPECT_EQ(stored->sources()[1].samples, 100u);
}

// The samples' ways are 10 us long each; the interval does not know that, an assumption may say so.
TEST(BuilderTest, AnAssumptionAboutAsymmetryNarrowsAndIsOnlyTrueIfItHolds) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok());
  const auto interval = [](const ClockModel& model) {
    return model.Difference({{0, ClockKind::kRaw}, 105 * kSecond},
                            {{1, ClockKind::kRaw}, 105 * kSecond + kAhead});
  };
  const DurationEstimate proven = interval(result->model);
  const DurationEstimate half = interval(*result->model.AssumingAsymmetry(50));
  const DurationEstimate all = interval(*result->model.AssumingAsymmetry(100));
  EXPECT_NEAR(static_cast<double>(proven.hi_ns - proven.lo_ns), 20'000, 300);
  EXPECT_NEAR(static_cast<double>(half.hi_ns - half.lo_ns), 10'000, 300);
  EXPECT_LE(half.lo_ns, 0);
  EXPECT_GE(half.hi_ns, 0);
  // That one way takes no time at all is no assumption.
  EXPECT_EQ(all.lo_ns, proven.lo_ns);
  EXPECT_EQ(all.hi_ns, proven.hi_ns);
  // Of ways of 2 and 18 us it is false, and the truth outside; what is proven holds all the same.
  BuildInput lopsided = TwoNodes();
  for (ProbeSample& sample : lopsided.edges[0].samples) {
    sample.t2_remote_ns -= 8'000;
    sample.t3_remote_ns -= 8'000;
  }
  const auto other = BuildModel(lopsided, Options());
  ASSERT_TRUE(other.ok());
  EXPECT_LE(interval(other->model).lo_ns, 0);
  EXPECT_GT(interval(*other->model.AssumingAsymmetry(50)).lo_ns, 0);
  EXPECT_LE(interval(*other->model.AssumingAsymmetry(90)).lo_ns, 0);
}

TEST(BuilderTest, OrdersOnlyWhatIsFartherApartThanTheBound) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok());
  const ClockModel& model = result->model;
  const NodeTime a{{0, ClockKind::kRaw}, 105 * kSecond};
  const auto worker = [](int64_t later) {
    return NodeTime{{1, ClockKind::kRaw}, 105 * kSecond + kAhead + later};
  };
  EXPECT_EQ(model.Order(a, worker(11'000)), Ordering::kBefore);
  EXPECT_EQ(model.Order(a, worker(-11'000)), Ordering::kAfter);
  EXPECT_EQ(model.Order(a, worker(9'000)), Ordering::kUndecided);
  EXPECT_NEAR(model.Difference(a, worker(11'000)).est_ns, 11'000, 20);
}

TEST(BuilderTest, OneClockIsExact) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok());
  const ClockId clock{1, ClockKind::kMonotonic};
  const auto d = result->model.Difference({clock, 1000}, {clock, 1001});
  EXPECT_EQ(d.est_ns, 1);
  EXPECT_EQ(d.bound_ns(), 0);
  EXPECT_EQ(result->model.Order({clock, 1000}, {clock, 1001}), Ordering::kBefore);
  // Two clocks of one node: the host's own chain, tens of nanoseconds.
  const auto chain = result->model.Difference({clock, 605 * kSecond + 7 * kSecond},
                                              {{1, ClockKind::kRaw}, 605 * kSecond + 500});
  EXPECT_NEAR(chain.est_ns, 500, 25);
  EXPECT_LE(chain.bound_ns(), 40);
}

TEST(BuilderTest, UnlocateInvertsLocate) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok());
  for (ClockKind kind : {ClockKind::kMonotonic, ClockKind::kRaw, ClockKind::kRealtime}) {
    for (int64_t ns : {int64_t{0}, kSecond, 2 * kSecond + 1, -50 * kSecond, 70 * kSecond}) {
      const NodeTime t = result->model.Unlocate({1, kind}, {ns});
      EXPECT_NEAR(result->model.Locate(t).est.ns, ns, 1) << static_cast<int>(kind);
    }
  }
}

TEST(BuilderTest, MapperAgreesWithLocateAndNeverGoesBack) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok());
  const ClockId clock{1, ClockKind::kMonotonic};
  auto mapper = result->model.MapperFor(clock);
  int64_t last = kUnknownLo;
  for (int64_t t = 595 * kSecond; t < 625 * kSecond; t += 7'654'321) {
    const TimelineTime at = mapper.At(t);
    EXPECT_EQ(at, result->model.Locate({clock, t}).est);
    EXPECT_GE(at.ns, last);
    last = at.ns;
  }
  EXPECT_EQ(mapper.At(600 * kSecond), result->model.Locate({clock, 600 * kSecond}).est);
}

TEST(BuilderTest, WithoutSamplesNothingIsClaimed) {
  BuildInput input = TwoNodes();
  input.edges.clear();
  const auto result = BuildModel(input, Options());
  ASSERT_TRUE(result.ok()) << result.status();
  // The wall clocks differ by 900 s: worker's says 105 where master's says 1005.
  const NodeTime worker{{1, ClockKind::kRaw}, 605 * kSecond};
  const auto at = result->model.Locate(worker);
  EXPECT_FALSE(at.bounded());
  EXPECT_NEAR(at.est.ns, -897 * kSecond, 100'000);  // far outside the tuples
  const NodeTime master{{0, ClockKind::kRaw}, 0};
  EXPECT_EQ(result->model.Order(master, worker), Ordering::kUndecided);
  // The way over the reference's own clock, which is exact everywhere, knows no more.
  EXPECT_EQ(result->model.Order(worker, master), Ordering::kUndecided);
  EXPECT_EQ(result->model.Difference(worker, master).lo_ns, kUnknownLo);
  EXPECT_EQ(result->model.Difference(worker, master).hi_ns, kUnknownHi);
  ASSERT_FALSE(result->events.empty());
  EXPECT_EQ(result->events.back().kind, ClockEvent::Kind::kNoSamples);
}

TEST(BuilderTest, WithoutTuplesMonotonicIsNotClaimed) {
  BuildInput input = TwoNodes();
  input.hosts.clear();
  const auto result = BuildModel(input, Options());
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->model.Locate({{1, ClockKind::kMonotonic}, 600 * kSecond}).bounded());
  EXPECT_TRUE(result->model.Locate({{1, ClockKind::kRaw}, 605 * kSecond}).bounded());
  EXPECT_FALSE(result->model.Knows({1, ClockKind::kRealtime}));
  EXPECT_FALSE(result->model.Knows({2, ClockKind::kRaw}));
}

TEST(BuilderTest, EdgeQualityIsForPeople) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->edges.size(), 1u);
  const EdgeQuality& quality = result->edges[0];
  EXPECT_EQ(quality.samples, 100u);
  EXPECT_EQ(quality.source, StampSource::kKernel);
  EXPECT_EQ(quality.round_trip_min_ns, 20'000);
  EXPECT_NEAR(quality.offset_ns, kAhead, 50);
  EXPECT_NEAR(quality.drift_ppb, 0, 20);
  EXPECT_NEAR(quality.bound_median_ns, 10'000, 100);
}

TEST(BuilderTest, ContradictionsInFormAreErrors) {
  BuildInput input = TwoNodes();
  EXPECT_THAT(std::string(BuildModel(input, {.reference = "x"}).status().message()),
              HasSubstr("reference \"x\""));
  input.edges[0].remote = "stranger";
  EXPECT_THAT(std::string(BuildModel(input, Options()).status().message()), HasSubstr("stranger"));
  input = TwoNodes();
  input.nodes = {"master", "master"};
  EXPECT_EQ(BuildModel(input, Options()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(BuildModel({}, Options()).ok());
}

TEST(BuilderTest, EdgesThatContradictEachOtherAreToldAndCovered) {
  BuildInput input = TwoNodes();
  // The coordinator sees the worker 1 ms away from where the direct edge sees it.
  Edge to_master{.local = "coordinator", .remote = "master"};
  Edge to_worker{.local = "coordinator", .remote = "worker"};
  for (const ProbeSample& s : input.edges[0].samples) {
    to_master.samples.push_back({s.t1_local_ns, s.t1_local_ns + 10'000, s.t1_local_ns + 15'000,
                                 s.t4_local_ns, StampSource::kGrpc});
    ProbeSample shifted = s;
    shifted.t2_remote_ns += 1'000'000;
    shifted.t3_remote_ns += 1'000'000;
    to_worker.samples.push_back(shifted);
  }
  input.edges.push_back(to_master);
  input.edges.push_back(to_worker);
  const auto result = BuildModel(input, Options());
  ASSERT_TRUE(result.ok()) << result.status();
  bool told = false;
  for (const ClockEvent& event : result->events)
    told |= event.kind == ClockEvent::Kind::kInfeasible;
  EXPECT_TRUE(told);
  const auto at = result->model.Locate({{1, ClockKind::kRaw}, 605 * kSecond});
  EXPECT_LE(at.lo.ns, 2 * kSecond + kSecond - 1'000'000 + 10'000);
  EXPECT_GE(at.hi.ns, 3 * kSecond);
}

TEST(ClockModelTest, IdentityClaimsNothingAcrossNodes) {
  const ClockModel model = ClockModel::Identity({"a", "b"});
  EXPECT_EQ(model.Locate({{0, ClockKind::kMonotonic}, 42}).est.ns, 42);
  EXPECT_FALSE(model.Locate({{0, ClockKind::kMonotonic}, 42}).bounded());
  EXPECT_EQ(model.Difference({{0}, 5}, {{0}, 8}).bound_ns(), 0);
  EXPECT_EQ(model.Order({{0}, 5}, {{1}, 8}), Ordering::kUndecided);
  EXPECT_EQ(model.Unlocate({1}, {7}).ns, 7);
  const auto again = ClockModel::FromJson(model.ToJson());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToJson(), model.ToJson());
}

TEST(ClockModelTest, AFileGivesTheSameAnswers) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok());
  const auto again = ClockModel::FromJson(result->model.ToJson());
  ASSERT_TRUE(again.ok()) << again.status();
  for (int64_t t = 590 * kSecond; t < 640 * kSecond; t += 123'456'789) {
    const NodeTime time{{1, ClockKind::kMonotonic}, t};
    EXPECT_EQ(again->Locate(time).lo, result->model.Locate(time).lo);
    EXPECT_EQ(again->Locate(time).est, result->model.Locate(time).est);
    EXPECT_EQ(again->Locate(time).hi, result->model.Locate(time).hi);
  }
}

TEST(ClockModelTest, BadFilesAreRefusedWithThePlace) {
  const auto result = BuildModel(TwoNodes(), Options());
  ASSERT_TRUE(result.ok());
  const std::string good = result->model.ToJson();
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    const auto model = ClockModel::FromJson(bad);
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << to;
    return std::string(model.status().message());
  };
  EXPECT_THAT(message("\"format_version\":1", "\"format_version\":2"),
              HasSubstr("format_version 2"));
  EXPECT_THAT(message("\"reference\":0", "\"reference\":2"), HasSubstr("models.json.reference"));
  EXPECT_THAT(message("\"knots\":[[", "\"knots\":[[9223372036854775807,0,0,0],["),
              HasSubstr("not monotone"));
  EXPECT_THAT(message("\"knots\":[[", "\"knots\":[[1.5,0,0,0],["), HasSubstr("not an integer"));
  EXPECT_THAT(message("\"bend_ns\"", "\"bent\""), HasSubstr("has no \"bend_ns\""));
  EXPECT_FALSE(ClockModel::FromJson("{").ok());
  EXPECT_FALSE(ClockModel::FromJson("[]").ok());
}

}  // namespace
}  // namespace syncline::clocksync
