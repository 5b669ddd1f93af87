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

}  // namespace
}  // namespace syncline::analysis
