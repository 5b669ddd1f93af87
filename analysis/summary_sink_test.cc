// SPDX-License-Identifier: Apache-2.0
#include "analysis/summary_sink.h"

#include <gtest/gtest.h>

#include "analysis/names.h"

namespace syncline::analysis {
namespace {

TEST(NamePattern, NumbersThatStandAloneAreOneRow) {
  EXPECT_EQ(NamePattern("step 841"), "step #");
  EXPECT_EQ(NamePattern("ProfilerStep#12"), "ProfilerStep##");
  EXPECT_EQ(NamePattern("iteration_3/4"), "iteration_#/#");
  EXPECT_EQ(NamePattern("conv2d_bf16"), "conv2d_bf16");
  EXPECT_EQ(NamePattern(""), "");
}

TEST(LooksLikeStep, KnowsTheUsualMarks) {
  for (const char* name : {"step 12", "train_step", "ProfilerStep#12", "iteration_3", "Iteration",
                           "iter 7", "training step"}) {
    EXPECT_TRUE(LooksLikeStep(name)) << name;
  }
  for (const char* name : {"Optimizer.step#SGD.step", "stepwise", "matmul", "", "epoch 3", "42"}) {
    EXPECT_FALSE(LooksLikeStep(name)) << name;
  }
}

Cluster Busy(int64_t begin_ns, int64_t end_ns) {
  Cluster cluster;
  cluster.begin.ns = begin_ns;
  cluster.end.ns = end_ns;
  cluster.tasks = 1;
  return cluster;
}

TEST(BusyIntervals, OverlapsJoinAndPausesSeparate) {
  BusyIntervals busy;
  busy.Add(Busy(0, 10));
  busy.Add(Busy(5, 20));  // another thread
  busy.Add(Busy(20, 30));
  busy.Add(Busy(40, 50));
  ASSERT_EQ(busy.clusters().size(), 3u);
  EXPECT_EQ(busy.clusters()[0].end.ns, 20);
  EXPECT_EQ(busy.clusters()[0].tasks, 2u);
}

TEST(BusyIntervals, StayBoundedAndLoseNoTask) {
  BusyIntervals busy(100);
  for (int64_t i = 0; i < 10'000; ++i) busy.Add(Busy(i * 1000, i * 1000 + 500));
  EXPECT_LE(busy.clusters().size(), 100u);
  uint64_t tasks = 0;
  for (const Cluster& cluster : busy.clusters()) tasks += cluster.tasks;
  EXPECT_EQ(tasks, 10'000u);
}

constexpr timeline::TrackId kNode = 1, kProcess = 2, kThread = 3, kOther = 4;
constexpr timeline::TextId kOptimizer = 1, kMarked = 2;

// A node with a process of two threads.
class OptimizersTest : public testing::Test {
 protected:
  OptimizersTest() {
    sink_.OnText(kOptimizer, "Optimizer.step#SGD.step");
    sink_.OnText(kMarked, "step 7");
    AddTrack(kNode, timeline::kNoTrack, timeline::TrackKind::kNode);
    AddTrack(kProcess, kNode, timeline::TrackKind::kProcess);
    AddTrack(kThread, kProcess, timeline::TrackKind::kThread);
    AddTrack(kOther, kProcess, timeline::TrackKind::kThread);
  }

  void AddTrack(timeline::TrackId id, timeline::TrackId parent, timeline::TrackKind kind) {
    timeline::Track track;
    track.id = id;
    track.parent = parent;
    track.kind = kind;
    track.name = "track";
    sink_.OnTrack(track);
  }

  void Task(timeline::TextId name, int64_t begin_ns, int64_t end_ns, bool suspect = false,
            timeline::TrackId track = kThread) {
    timeline::Span span;
    span.track = track;
    span.name = name;
    span.begin.ns = begin_ns;
    span.end.ns = end_ns;
    span.suspect = suspect;
    sink_.OnSpanEnd(span);
  }

  void Hole(timeline::TrackId track, int64_t begin_ns, int64_t end_ns) {
    timeline::Hole hole;
    hole.track = track;
    hole.begin.ns = begin_ns;
    hole.end.ns = end_ns;
    sink_.OnHole(hole);
  }

  // Begin of each step of the only series; or how many series there are, below zero.
  std::vector<int64_t> Begins() {
    const std::vector<SummarySink::Series> series = sink_.TakeSteps();
    std::vector<int64_t> begins;
    if (series.size() != 1) return {-static_cast<int64_t>(series.size())};
    for (const Step& step : series[0].series.steps) begins.push_back(step.begin.ns);
    return begins;
  }

  SummarySink sink_;
};

TEST_F(OptimizersTest, AStepIsFromTheEndOfOneToTheEndOfTheNext) {
  for (const int64_t at : {100, 300, 200}) Task(kOptimizer, at - 10, at);
  EXPECT_EQ(Begins(), (std::vector<int64_t>{100, 200}));
  const Step last = sink_.TakeSteps()[0].series.steps.back();
  EXPECT_EQ(last.end.ns, 300);
}

TEST_F(OptimizersTest, NoStepLeadsAcrossWhatIsNotKnown) {
  for (int64_t at = 100; at <= 900; at += 100) Task(kOptimizer, at - 10, at, at == 800);
  Hole(kThread, 150, 160);
  Hole(kProcess, 299, 301);
  Hole(kNode, 450, 460);
  Hole(kOther, 500, 600);  // another thread's
  EXPECT_EQ(Begins(), (std::vector<int64_t>{500, 600}));
}

TEST_F(OptimizersTest, AProcessThatMarksStepsHasThose) {
  for (int64_t at = 100; at <= 500; at += 100) {
    Task(kOptimizer, at - 10, at);
    Task(kMarked, at - 50, at);
  }
  EXPECT_EQ(Begins(), (std::vector<int64_t>{50, 150, 250, 350, 450}));
}

TEST_F(OptimizersTest, OneTaskThatLooksLikeAStepMarksNone) {
  for (int64_t at = 100; at <= 300; at += 100) Task(kOptimizer, at - 10, at);
  Task(kMarked, 150, 160);
  const std::vector<SummarySink::Series> series = sink_.TakeSteps();
  ASSERT_EQ(series.size(), 2u);
  EXPECT_FALSE(series[0].marked);
  EXPECT_EQ(series[0].series.steps.size(), 2u);
}

TEST_F(OptimizersTest, AnotherProcessOfTheSameNameMayMarkSteps) {
  constexpr timeline::TrackId kSecond = 5, kItsThread = 6;
  AddTrack(kSecond, kNode, timeline::TrackKind::kProcess);
  AddTrack(kItsThread, kSecond, timeline::TrackKind::kThread);
  for (int64_t at = 100; at <= 300; at += 100) {
    Task(kOptimizer, at - 10, at);
    Task(kMarked, at - 50, at, false, kItsThread);
  }
  EXPECT_EQ(sink_.TakeSteps().size(), 2u);
}

TEST_F(OptimizersTest, OneOptimizerStepMakesNoStep) {
  Task(kOptimizer, 10, 20);
  EXPECT_TRUE(sink_.TakeSteps().empty());
}

// Marks that programs make with ITT beside nested tasks, and metadata of these.
class MarksTest : public testing::Test {
 protected:
  static constexpr timeline::TrackId kProcess = 1, kThread = 2, kRegions = 3, kEvents = 4;
  static constexpr timeline::TextId kStep = 1, kNumber = 2, kRead = 3;

  MarksTest() {
    sink_.OnText(kStep, "step");
    sink_.OnText(kNumber, "number");
    sink_.OnText(kRead, "read");
    AddTrack(kProcess, timeline::TrackKind::kProcess, "train");
    AddTrack(kThread, timeline::TrackKind::kThread, "main");
    AddTrack(kRegions, timeline::TrackKind::kAsync, "overlapped tasks");
    AddTrack(kEvents, timeline::TrackKind::kAsync, "user events");
  }

  void AddTrack(timeline::TrackId id, timeline::TrackKind kind, const char* name) {
    timeline::Track track;
    track.id = id;
    track.parent = id == kProcess ? timeline::kNoTrack : kProcess;
    track.kind = kind;
    track.name = name;
    sink_.OnTrack(track);
  }

  void End(timeline::TrackId track, timeline::TextId name, int64_t begin_ns, int64_t end_ns,
           std::vector<timeline::Argument> arguments = {}) {
    timeline::Span span;
    span.track = track;
    span.name = name;
    span.begin.ns = begin_ns;
    span.end.ns = end_ns;
    if (track == kThread) span.self_ns = end_ns - begin_ns;
    span.arguments = std::move(arguments);
    sink_.OnSpanEnd(span);
  }

  static timeline::Argument Number(timeline::TextId key, uint64_t number) {
    timeline::Argument argument;
    argument.key = key;
    argument.kind = timeline::Argument::Kind::kUint;
    argument.u = number;
    return argument;
  }

  SummarySink sink_;
};

TEST_F(MarksTest, AStepHasTheNumberThatItsMetadataSays) {
  End(kThread, kStep, 100, 200, {Number(kRead, 4), Number(kNumber, 17)});
  End(kThread, kStep, 200, 300, {Number(kNumber, 18)});
  End(kThread, kStep, 300, 400);
  const std::vector<SummarySink::Series> series = sink_.TakeSteps();
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].series.name, "step");
  std::vector<std::string> names;
  for (const Step& step : series[0].series.steps) names.push_back(step.name);
  EXPECT_EQ(names, (std::vector<std::string>{"step 17", "step 18", "step"}));
}

TEST_F(MarksTest, AnEndWhoseBeginNobodyKnowsMakesNoRow) {
  End(kRegions, timeline::kNoText, 100, 200);
  End(kEvents, timeline::kNoText, 100, 200);
  EXPECT_TRUE(sink_.TakeTotals().empty());
}

TEST_F(MarksTest, WhatOverlapsIsCountedApartAndHasNoTimeOfItsOwn) {
  End(kThread, kRead, 100, 150);
  End(kRegions, kRead, 100, 200);
  End(kEvents, kRead, 150, 400);
  End(kRegions, kStep, 150, 400);  // no step: it does not nest
  const std::vector<SummarySink::Total> totals = sink_.TakeTotals();
  ASSERT_EQ(totals.size(), 3u);
  const TaskTotal& both = totals[0].total;
  EXPECT_EQ(std::tie(both.name, both.count, both.total_ns, both.self_ns, both.overlapping),
            std::tuple("read", 2u, 350, 0, true));
  EXPECT_EQ(totals[1].total.name, "step");
  const TaskTotal& nested = totals[2].total;
  EXPECT_EQ(std::tie(nested.name, nested.count, nested.self_ns, nested.overlapping),
            std::tuple("read", 1u, 50, false));
  EXPECT_TRUE(sink_.TakeSteps().empty());
}

}  // namespace
}  // namespace syncline::analysis
