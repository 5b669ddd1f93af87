// SPDX-License-Identifier: Apache-2.0
// Profiles on the timeline: lanes, tensors, and what a wall clock that was set does to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clocksync/builder.h"
#include "timeline/builder.h"
#include "timeline/placement.h"
#include "timeline/profile_lanes.h"
#include "timeline/testing/dump_sink.h"
#include "xspace/space.h"
#include "xspace/testing/space_builder.h"

namespace syncline::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kZeroRaw = 100 * kSecond;         // RAW = MONOTONIC at timeline zero
constexpr int64_t kWall = 1'795'000'000 * kSecond;  // what the wall clock reads then

// One node whose wall clock is set by `step_ns` when RAW reads `step_at_ns`.
clocksync::ClockModel Model(int64_t step_at_ns, int64_t step_ns) {
  clocksync::BuildInput input;
  input.nodes = {"a"};
  clocksync::HostClocks host{.node = "a"};
  for (int64_t t = kZeroRaw - kSecond; t < kZeroRaw + 4 * kSecond; t += kSecond / 10) {
    const int64_t wall = kWall + (t - kZeroRaw) + (t >= step_at_ns ? step_ns : 0);
    host.tuples.push_back({t, t + 20, wall + 20, t + 20, t + 40, 0, 10'000, 0});
  }
  input.hosts = {host};
  auto result = clocksync::BuildModel(input, {.reference = "a", .zero_reference_raw_ns = kZeroRaw});
  EXPECT_TRUE(result.ok()) << result.status();
  return std::move(result->model);
}

struct Built {
  NodeResult node;
  std::string text;
  std::vector<std::string> breaches;
};

// A profile of [kWall, kWall + 3 s], as the only thing of a node, in a window of 4 s.
Built Build(const std::string& bytes, const clocksync::ClockModel& model,
            const std::string& absence = "", const EventPatterns& events = {},
            Profiler profiler = Profiler::kTensorFlow,
            const std::optional<Interval>& cut = std::nullopt) {
  const auto space =
      xspace::Space::Of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "a.pb");
  const auto placement = ModelPlacement(model, {0, ClockKind::kMonotonic});
  WallPlacement wall(&model, placement.get(), std::nullopt);
  NodeInput input;
  input.name = "a";
  input.placement = placement.get();
  input.wall = &wall;
  ProfileInput profile;
  profile.profiler = profiler;
  profile.process.pid = 7;
  profile.task = "/job:worker/replica:0/task:0";
  profile.covered = {kWall, kWall + 3 * kSecond};
  profile.absence = absence;
  if (absence.empty()) profile.reader = space.get();
  input.profiles.push_back(profile);
  testing::DumpSink sink;
  TimelineSink* const sinks[] = {&sink};
  const BuildOptions options{.window = Interval{{0}, {4 * kSecond}}, .cut = cut, .events = events};
  auto result = BuildTimeline({&input, 1}, options, sinks);
  EXPECT_TRUE(result.ok()) << result.status();
  return {result->nodes.at(0), sink.text(), sink.breaches()};
}

std::string OneLine(const std::vector<std::pair<std::string, xspace::EventTimes>>& events) {
  xspace::PlaneBuilder plane("/host:CPU");
  xspace::LineBuilder line("tf_Compute/1", 0);
  for (const auto& [name, times] : events) line.Event(plane.EventId(name), times);
  plane.Add(line);
  return xspace::SpaceBytes({plane.Bytes(), xspace::EnvironmentPlane(kWall, kWall + 3 * kSecond)});
}

TEST(ProfileTest, OperatorsNestOnTheLaneOfTheirThread) {
  const auto model = Model(kZeroRaw + 100 * kSecond, 0);
  const Built built = Build(OneLine({{"ExecutorState::Process", {1000, 500}},
                                     {"conv/a:Conv2D", {1100, 100}},
                                     {"relu:Relu", {1200, 300}}}),
                            model);
  EXPECT_THAT(built.breaches, IsEmpty());
  EXPECT_THAT(built.text, HasSubstr("TensorFlow /job:worker/task:0"));
  EXPECT_THAT(built.text, HasSubstr("tf_Compute"));
  EXPECT_THAT(built.text, Not(HasSubstr("tf_Compute/1")));  // its number says nothing
  EXPECT_THAT(built.text, HasSubstr("conv/a"));
  EXPECT_THAT(built.text, Not(HasSubstr("crossing")));
  ASSERT_EQ(built.node.profiles.size(), 1u);
  EXPECT_EQ(built.node.profiles[0].operators, 2u);
  EXPECT_EQ(built.node.profiles[0].undecided_events, 0u);
  EXPECT_NEAR(built.node.profiles[0].begin->ns, 0, 100);
  EXPECT_THAT(built.node.losses, IsEmpty());
}

TEST(ProfileTest, OnlyOperatorsOfTensorFlowAreTakenForSuch) {
  const auto model = Model(kZeroRaw + 100 * kSecond, 0);
  const Built built = Build(OneLine({{"conv/a:Conv2D", {1000, 100}},
                                     {"$array.py:12 add", {1200, 100}},
                                     {"NVTX:Range", {1400, 100}},
                                     {"jit_train:XLA GPU module", {1600, 100}},
                                     {"KernelAndDeviceFunc::Run", {1800, 100}},
                                     {"end: all-reduce", {2000, 100}}}),
                            model);
  ASSERT_EQ(built.node.profiles.size(), 1u);
  EXPECT_EQ(built.node.profiles[0].operators, 1u);
  EXPECT_THAT(built.text, HasSubstr("$array.py:12 add"));
}

// Two devices, whose streams have the same name, and a thread that launches on both.
TEST(ProfileTest, DevicesOfAnXSpaceHaveGroupsOfTheirOwn) {
  std::vector<std::string> planes;
  xspace::PlaneBuilder host("/host:CPU");
  xspace::LineBuilder thread("python", 0, 7);
  thread.Event(host.EventId("train"), {1000, 900}, {xspace::IntStat(host.StatId("step_num"), 3)});
  for (const uint64_t device : {0, 1}) {
    xspace::PlaneBuilder plane("/device:GPU:" + std::to_string(device));
    xspace::LineBuilder line("Stream #13(Compute)", 0, 13);
    line.Event(plane.EventId("gemm"), {1500, 100},
               {xspace::UintStat(plane.StatId("correlation_id"), device + 1)});
    plane.Add(line);
    planes.push_back(plane.Bytes());
    thread.Event(host.EventId("cuLaunchKernel"), {static_cast<int64_t>(1100 + device * 100), 10},
                 {xspace::UintStat(host.StatId("correlation_id"), device + 1)});
  }
  host.Add(thread);
  planes.push_back(host.Bytes());
  planes.push_back(xspace::EnvironmentPlane(kWall, kWall + 3 * kSecond));
  const Built built =
      Build(xspace::SpaceBytes(planes), Model(kZeroRaw + 100 * kSecond, 0), "", {}, Profiler::kJax);
  EXPECT_THAT(built.breaches, IsEmpty());
  EXPECT_THAT(built.text, HasSubstr("JAX gpu_driver"));
  EXPECT_THAT(built.text, HasSubstr("JAX steps"));
  EXPECT_THAT(built.text, Not(HasSubstr("crossing")));
  ASSERT_EQ(built.node.devices.size(), 1u);
  const ProcessDevices& devices = built.node.devices[0];
  EXPECT_THAT(devices.devices, ElementsAre("GPU 0", "GPU 1"));
  ASSERT_EQ(devices.work.size(), 2u);
  EXPECT_EQ(devices.work[1].begin.ns - devices.work[1].launched->ns, 300);
  ASSERT_EQ(devices.steps.size(), 1u);
  EXPECT_EQ(devices.steps[0].name, "train 3");
}

TEST(ProfileTest, OnlyWhatWasAskedForIsDrawn) {
  const auto model = Model(kZeroRaw + 100 * kSecond, 0);
  const std::string bytes = OneLine({{"ExecutorState::Process", {1000, 500}},
                                     {"conv/a:Conv2D", {1100, 100}},
                                     {"relu:Relu", {1200, 300}}});
  for (const Profiler profiler : {Profiler::kTensorFlow, Profiler::kKineto}) {
    const Built relu = Build(bytes, model, "", EventPatterns({"*:Relu"}), profiler);
    EXPECT_THAT(relu.breaches, IsEmpty());
    EXPECT_THAT(relu.text, HasSubstr(" 0 relu"));  // its depth: nothing is around it
    EXPECT_THAT(relu.text, Not(HasSubstr("conv/a")));
    EXPECT_THAT(relu.text, Not(HasSubstr("ExecutorState")));
    EXPECT_EQ(relu.node.profiles[0].events, 3u);
    EXPECT_THAT(relu.node.losses, IsEmpty());
    const Built none = Build(bytes, model, "", EventPatterns({"syncline:*"}), profiler);
    EXPECT_THAT(none.text, Not(HasSubstr("span")));
  }
}

TEST(ProfileTest, TheGraphOfACutIsWhatRanInIt) {
  const auto model = Model(kZeroRaw + 100 * kSecond, 0);
  const std::string bytes = OneLine({{"conv/a:Conv2D", {kSecond, 100}},
                                     {"conv/a:Conv2D", {2 * kSecond, 100}},
                                     {"relu:Relu", {3 * kSecond, 300}}});
  const auto nodes = [&](const std::optional<Interval>& cut) {
    std::vector<std::string> nodes;
    const Built built = Build(bytes, model, "", {}, Profiler::kTensorFlow, cut);
    for (const Partition& partition : built.node.partitions) {
      for (const PartitionNode& node : partition.nodes) {
        nodes.push_back(absl::StrCat(node.name, " ", node.executions));
      }
    }
    return nodes;
  };
  EXPECT_THAT(nodes(std::nullopt), ElementsAre("conv/a 2", "relu 1"));
  EXPECT_THAT(nodes(Interval{{3 * kSecond / 2}, {5 * kSecond / 2}}), ElementsAre("conv/a 1"));
  EXPECT_THAT(nodes(Interval{{0}, {kSecond / 2}}), IsEmpty());
}

TEST(ProfileTest, SpansThatCrossGoToALaneOfTheirOwn) {
  const auto model = Model(kZeroRaw + 100 * kSecond, 0);
  const Built built = Build(OneLine({{"a:A", {1000, 500}}, {"b:B", {1200, 600}}}), model);
  EXPECT_THAT(built.breaches, IsEmpty());
  EXPECT_THAT(built.text, HasSubstr("tf_Compute (crossing)"));
}

// Both would cost time and memory with every event that follows.
TEST(ProfileTest, WhatIsTooDeepOrCrossesTooOftenIsALoss) {
  const auto model = Model(kZeroRaw + 100 * kSecond, 0);
  constexpr uint64_t kMore = 10;
  const auto expect = [&](const std::string& bytes) {
    const Built built = Build(bytes, model);
    EXPECT_THAT(built.breaches, IsEmpty());
    EXPECT_EQ(built.node.profiles[0].crowded_events, kMore);
    ASSERT_EQ(built.node.losses.size(), 1u);
    EXPECT_EQ(built.node.losses[0].reason, LossReason::kUnreadable);
    EXPECT_EQ(built.node.losses[0].count, kMore);
    EXPECT_THAT(built.node.losses[0].detail, HasSubstr("on one thread"));
    EXPECT_THAT(built.text, HasSubstr("later"));  // there is room again
  };
  std::vector<std::pair<std::string, xspace::EventTimes>> events(kOpenSpansMax + kMore,
                                                                 {"a:A", {1000, 500}});
  events.push_back({"later:A", {9000, 500}});
  expect(OneLine(events));
  events.clear();
  for (size_t i = 0; i < kThreadLanesMax + kMore; ++i) {
    events.push_back({"a:A", {static_cast<int64_t>(1000 + i), static_cast<int64_t>(500 + i)}});
  }
  events.push_back({"later:A", {9000, 500}});
  expect(OneLine(events));
}

TEST(ProfileTest, WhatNoProfileShowsIsAHole) {
  const auto model = Model(kZeroRaw + 100 * kSecond, 0);
  const Built built = Build("", model, "its profiler was busy with another session");
  EXPECT_THAT(built.text, HasSubstr("its profiler was busy with another session"));
  EXPECT_THAT(built.node.losses, IsEmpty());  // it was never there: no loss
}

// The clock goes back by half a second at 1.5 s: what reads 1.0 s to 1.5 s of wall time happened
// once before the step, or once after it.
TEST(WallPlacementTest, AStepBackLeavesOnlyTheAmbiguousTimesWithoutAPlace) {
  const auto model = Model(kZeroRaw + 3 * kSecond / 2, -kSecond / 2);
  const auto placement = ModelPlacement(model, {0, ClockKind::kMonotonic});
  WallPlacement wall(&model, placement.get(), std::nullopt);
  for (const int64_t ns : {kSecond / 10, kSecond / 2, 8 * kSecond / 10}) {
    const auto at = wall.At(kWall + ns);
    ASSERT_TRUE(at.has_value()) << ns;
    EXPECT_NEAR(at->ns, ns, 1000);
  }
  for (const int64_t ns : {11 * kSecond / 10, 12 * kSecond / 10, 14 * kSecond / 10}) {
    EXPECT_FALSE(wall.At(kWall + ns).has_value()) << ns;
  }
  for (const int64_t ns : {2 * kSecond, 3 * kSecond}) {
    const auto at = wall.At(kWall + ns);
    ASSERT_TRUE(at.has_value()) << ns;
    EXPECT_NEAR(at->ns, ns + kSecond / 2, 1000);
  }
}

TEST(WallPlacementTest, AStepForwardNeverPutsATimeOnTheWrongSide) {
  const auto model = Model(kZeroRaw + 3 * kSecond / 2, kSecond / 2);
  const auto placement = ModelPlacement(model, {0, ClockKind::kMonotonic});
  WallPlacement wall(&model, placement.get(), std::nullopt);
  for (int64_t ns = kSecond / 10; ns < 3 * kSecond; ns += 7'777'777) {
    const bool never_read = ns >= 3 * kSecond / 2 && ns < 2 * kSecond;
    const auto at = wall.At(kWall + ns);
    if (never_read || !at.has_value()) continue;
    const int64_t truth_ns = ns < 3 * kSecond / 2 ? ns : ns - kSecond / 2;
    EXPECT_NEAR(at->ns, truth_ns, 100'000) << ns;
  }
  ASSERT_TRUE(wall.At(kWall + kSecond).has_value());
  EXPECT_TRUE(wall.At(kWall + 5 * kSecond / 2).has_value());
}

TEST(WallPlacementTest, TellsWhetherItWasSetBetweenTwoTimes) {
  for (const int64_t step_ns : {-kSecond / 2, kSecond / 500, kSecond / 2}) {
    const auto model = Model(kZeroRaw + 3 * kSecond / 2, step_ns);
    const auto placement = ModelPlacement(model, {0, ClockKind::kMonotonic});
    const WallPlacement wall(&model, placement.get(), std::nullopt);
    EXPECT_EQ(wall.WasSetBetween(kWall + kSecond / 2, kWall + 3 * kSecond), true) << step_ns;
    EXPECT_EQ(wall.WasSetBetween(kWall + kSecond / 4, kWall + 3 * kSecond / 4), false) << step_ns;
    EXPECT_EQ(wall.WasSetBetween(kWall + 5 * kSecond / 2, kWall + 3 * kSecond), false) << step_ns;
  }
  const auto back = Model(kZeroRaw + 3 * kSecond / 2, -kSecond / 2);
  const auto placement = ModelPlacement(back, {0, ClockKind::kMonotonic});
  const WallPlacement wall(&back, placement.get(), std::nullopt);
  EXPECT_EQ(wall.WasSetBetween(kWall + kSecond / 10, kWall + 14 * kSecond / 10), std::nullopt);
}

TEST(ProfileTest, EventsThatAStepMakesAmbiguousAreALossAndNotDrawn) {
  const auto model = Model(kZeroRaw + 3 * kSecond / 2, -kSecond / 2);
  const std::string bytes =
      OneLine({{"sure:Op", {kSecond / 2, 1000}}, {"doubtful:Op", {12 * kSecond / 10, 1000}}});
  const Built built = Build(bytes, model);
  EXPECT_EQ(built.node.profiles[0].undecided_events, 1u);
  EXPECT_THAT(built.text, HasSubstr("sure"));
  EXPECT_THAT(built.text, Not(HasSubstr("doubtful")));
  ASSERT_EQ(built.node.losses.size(), 1u);
  EXPECT_EQ(built.node.losses[0].count, 1u);
  EXPECT_THAT(built.node.losses[0].detail, HasSubstr("was set"));
  // A loss is one whether or not its events were asked for.
  const Built others = Build(bytes, model, "", EventPatterns({"sure*"}));
  EXPECT_EQ(others.node.profiles[0].undecided_events, 1u);
  EXPECT_EQ(others.node.losses.size(), 1u);
}

TEST(WallPlacementTest, WithoutReadingsTheTracersSampleServesAndNothingIsClaimed) {
  const auto placement = ShiftPlacement({5, ClockKind::kMonotonic}, -kZeroRaw);
  WallPlacement sampled(nullptr, placement.get(), kWall - kZeroRaw);
  EXPECT_EQ(sampled.At(kWall + 5)->ns, 5);
  EXPECT_FALSE(sampled.BoundNs(kWall + 5).has_value());
  WallPlacement lost(nullptr, placement.get(), std::nullopt);
  EXPECT_FALSE(lost.known());
  EXPECT_FALSE(lost.At(kWall).has_value());
}

// ---- tensors ------------------------------------------------------------------------------------

constexpr std::string_view kForward = "/job:a/d:0;1f;/job:b/d:0;edge_1_x;0:0";
constexpr std::string_view kFeed = "/job:a/d:0;1f;/job:a/d:0;x;0:0";

TensorMatcher::Place At(uint32_t node, int64_t ns) {
  return {node, {{node, ClockKind::kRealtime}, ns}, TimelineTime{ns}};
}
NodeTime Wall(uint32_t node, int64_t ns) { return {{node, ClockKind::kRealtime}, ns}; }

TEST(TensorMatcherTest, NamesTheSenderOfAReceiver) {
  EXPECT_EQ(SenderOf("MaxPool2d_S5"), "MaxPool2d_S4");
  EXPECT_EQ(SenderOf("a/b/_10"), "a/b/_9");
  EXPECT_EQ(SenderOf("_recv_images_0"), "");  // a feed
  EXPECT_EQ(SenderOf("conv_2"), "");
  EXPECT_EQ(SenderOf("x_S0"), "");
  EXPECT_EQ(SenderOf(""), "");
  EXPECT_EQ(SenderOf("123"), "");
}

TEST(TensorMatcherTest, MatchesByStepAndKeyAndDropsFeeds) {
  TensorMatcher matcher;
  const uint32_t a = matcher.AddProcess(0, "/job:a");
  const uint32_t b = matcher.AddProcess(1, "/job:b");
  for (const int64_t step : {11, 12, 13}) {
    matcher.OnStep(a, step, Wall(0, step * 1000));
    matcher.OnStep(b, step, Wall(1, step * 1000));
    matcher.OnSend(a, step, "x_S4", kForward, At(0, step * 1000 + 10), Wall(0, step * 1000 + 20));
    matcher.OnSend(a, step, "_send_x", kFeed, At(0, step * 1000 + 30), Wall(0, step * 1000 + 40));
  }
  matcher.OnKey(b, "renamed", kForward);  // level 3: any name will do
  matcher.OnPosted(b, 11, "renamed", Wall(1, 11'001));
  matcher.OnReceived(b, 11, "renamed", At(1, 11'100), 4096);
  matcher.OnReceived(b, 13, "renamed", At(1, 13'100), std::nullopt);
  matcher.OnReceived(b, 13, "_recv_x_0", At(1, 13'100), std::nullopt);
  const auto result = matcher.Match();
  ASSERT_EQ(result.matched.size(), 2u);
  const TensorTransfer& first = result.matched[0].transfer;
  EXPECT_EQ(first.step_id, 11);
  EXPECT_EQ(first.edge.tensor, "edge_1_x");
  EXPECT_EQ(first.send_begin, Wall(0, 11'010));
  EXPECT_EQ(first.received, Wall(1, 11'100));
  EXPECT_EQ(first.posted, Wall(1, 11'001));
  EXPECT_EQ(first.bytes, 4096u);
  EXPECT_TRUE(first.complete_step);
  EXPECT_FALSE(result.matched[1].transfer.complete_step);  // the last one: perhaps cut off
  EXPECT_EQ(result.nodes[0].unmatched_sends, 1u);          // of step 12
  EXPECT_EQ(result.nodes[0].unmatched_sends_in_complete_steps, 1u);
  EXPECT_EQ(result.nodes[1].unmatched_receives, 0u);
}

TEST(TensorMatcherTest, ATensorIsOfTheCutInWhichItArrives) {
  const auto match = [](const std::optional<Interval>& cut) {
    TensorMatcher matcher;
    const uint32_t a = matcher.AddProcess(0, "/job:a");
    const uint32_t b = matcher.AddProcess(1, "/job:b");
    for (const int64_t step : {1, 2, 3}) {
      const int64_t ns = step * 100;
      matcher.OnSend(a, step, "x_S4", kForward, At(0, ns), Wall(0, ns + 1));
      if (step < 3) matcher.OnReceived(b, step, "x_S5", At(1, ns + 50), std::nullopt);
      matcher.OnReceived(b, step, "cheap_S7", At(1, ns + 51), std::nullopt);
    }
    return matcher.Match(cut);
  };
  const auto all = match(std::nullopt);
  EXPECT_EQ(all.matched.size(), 2u);
  EXPECT_EQ(all.nodes[0].unmatched_sends, 1u);
  EXPECT_EQ(all.nodes[1].unmatched_receives, 3u);
  const auto first = match(Interval{{0}, {220}});  // the second is sent in it, and arrives later
  ASSERT_EQ(first.matched.size(), 1u);
  EXPECT_EQ(first.matched[0].transfer.step_id, 1);
  EXPECT_EQ(first.nodes[0].unmatched_sends, 0u);
  EXPECT_EQ(first.nodes[1].unmatched_receives, 1u);
  const auto rest = match(Interval{{220}, {1000}});
  EXPECT_EQ(rest.matched.size(), 1u);
  EXPECT_EQ(rest.nodes[0].unmatched_sends, 1u);
  EXPECT_EQ(rest.nodes[1].unmatched_receives, 2u);
}

TEST(TensorMatcherTest, AtLevelTwoTheReceiversNameIsEnough) {
  TensorMatcher matcher;
  const uint32_t a = matcher.AddProcess(0, "/job:a");
  const uint32_t b = matcher.AddProcess(1, "/job:b");
  matcher.OnSend(a, 1, "x_S4", kForward, At(0, 10), Wall(0, 20));
  matcher.OnReceived(b, 1, "x_S5", At(1, 30), std::nullopt);
  matcher.OnReceived(b, 1, "cheap_S7", At(1, 31), std::nullopt);  // its send was left out
  matcher.OnReceived(a, 1, "x_S5", At(0, 32), std::nullopt);      // not the edge's receiver
  const auto result = matcher.Match();
  ASSERT_EQ(result.matched.size(), 1u);
  EXPECT_EQ(result.matched[0].transfer.receive_node, 1u);
  EXPECT_EQ(result.nodes[1].unmatched_receives, 1u);
  EXPECT_EQ(result.nodes[0].unmatched_receives, 1u);
}

TEST(TensorMatcherTest, ALoopsTensorsMatchInOrderAndOnlyWhenAllAreThere) {
  TensorMatcher matcher;
  const uint32_t a = matcher.AddProcess(0, "");
  const uint32_t b = matcher.AddProcess(1, "");
  for (const int64_t at : {30, 10, 20}) {
    matcher.OnSend(a, 1, "x_S4", kForward, At(0, at), Wall(0, at + 1));
    matcher.OnReceived(b, 1, "x_S5", At(1, at + 5), std::nullopt);
  }
  matcher.OnSend(a, 2, "x_S4", kForward, At(0, 40), Wall(0, 41));
  matcher.OnSend(a, 2, "x_S4", kForward, At(0, 50), Wall(0, 51));
  matcher.OnReceived(b, 2, "x_S5", At(1, 55), std::nullopt);
  const auto result = matcher.Match();
  ASSERT_EQ(result.matched.size(), 3u);
  for (const auto& matched : result.matched) {
    EXPECT_EQ(matched.transfer.received.ns - matched.transfer.send_begin.ns, 5);
  }
  EXPECT_EQ(result.nodes[0].unmatched_sends, 2u);
  EXPECT_EQ(result.nodes[1].unmatched_receives, 1u);
}

}  // namespace
}  // namespace syncline::timeline
