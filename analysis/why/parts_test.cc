// SPDX-License-Identifier: Apache-2.0
// Segments, steps, pieces, and what is taken away: by hand-made threads.
#include "analysis/why/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "analysis/why/segments.h"
#include "analysis/why/statistics.h"
#include "analysis/why/steps.h"
#include "analysis/why/taken_away.h"
#include "analysis/why/work.h"

namespace syncline::analysis::why {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;

// names[i], categories: "PyTorch" is 1.
const std::vector<std::string> kNames = {"",
                                         "PyTorch",
                                         "aten::conv2d",
                                         "DistributedDataParallel.forward",
                                         "c10d::allreduce_",
                                         "Optimizer.step#SGD",
                                         "enumerate(DataLoader)#x",
                                         "python",
                                         "garbage collection",
                                         "train_step",
                                         "MulBackward0",
                                         "dnnl::primitive",
                                         "convolution"};
enum Name : NameId {
  kConv = 2,
  kForward,
  kReduce,
  kSgd,
  kLoad,
  kPython,
  kCollect,
  kMark,
  kMul,
  kOneDnn,
  kPrimitive
};

TaskSpan At(NameId name, int64_t begin_ns, int64_t end_ns, NameId category = 1) {
  TaskSpan span;
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.name = name;
  span.category = category;
  return span;
}

TEST(TaskNames, WhatIsAnOperator) {
  for (const char* name : {"aten::conv2d", "MulBackward0", "my_ops::fused"}) {
    EXPECT_TRUE(RolesOf(name) & static_cast<uint8_t>(Role::kOperator)) << name;
  }
  for (const char* name : {"DistributedDataParallel.forward", "FSDP::pre_forward", "train_step",
                           "c10d::allreduce_", "autograd::engine::evaluate_function: MulBackward0",
                           "Optimizer.step#SGD.step", "MyFunction"}) {
    EXPECT_FALSE(RolesOf(name) & static_cast<uint8_t>(Role::kOperator)) << name;
  }
  const TaskNames names(kNames);
  EXPECT_TRUE(names.Works(At(kPrimitive, 0, 1, kOneDnn)));
  EXPECT_FALSE(names.Works(At(kPrimitive, 0, 1)));
  EXPECT_EQ(AcceleratorOf("syncline", "accelerator initialised: cuda"), "cuda");
  EXPECT_EQ(AcceleratorOf("mine", "accelerator initialised: cuda"), "");
}

TEST(Segments, AreAnExactPartition) {
  const TaskNames names(kNames);
  const std::vector<TaskSpan> spans = {At(kForward, 0, 100), At(kConv, 10, 40),
                                       At(kPrimitive, 20, 30, kOneDnn),
                                       At(kCollect, 50, 60, kPython), At(kConv, 120, 130)};
  const std::vector<Segment> segments = SegmentsOf(spans, names);
  std::vector<std::tuple<int64_t, int64_t, NameId, bool>> found;
  for (const Segment& one : segments) {
    found.emplace_back(one.begin_ns, one.end_ns, one.leaf, one.works);
  }
  EXPECT_THAT(
      found, ElementsAre(std::tuple(0, 10, kForward, false), std::tuple(10, 20, kConv, true),
                         std::tuple(20, 30, kPrimitive, true), std::tuple(30, 40, kConv, true),
                         std::tuple(40, 100, kForward, false), std::tuple(100, 120, kNoTask, false),
                         std::tuple(120, 130, kConv, true)));
}

TEST(Segments, ATaskThatOutlastsTheOneAroundItIsCut) {
  const TaskNames names(kNames);
  const std::vector<TaskSpan> spans = {At(kForward, 0, 100), At(kConv, 50, 120),
                                       At(kMul, 100, 110)};
  const std::vector<Segment> segments = SegmentsOf(spans, names);
  int64_t at_ns = 0;
  for (const Segment& one : segments) {
    EXPECT_EQ(one.begin_ns, at_ns);
    EXPECT_LT(one.begin_ns, one.end_ns);
    at_ns = one.end_ns;
  }
}

TEST(Steps, AreFromOptimizerToOptimizerWithACollective) {
  const TaskNames names(kNames);
  ThreadInput driver{
      1,
      {At(kSgd, 0, 10), At(kForward, 15, 30), At(kReduce, 40, 45), At(kSgd, 50, 60),
       At(kForward, 65, 70), At(kSgd, 80, 90), At(kReduce, 92, 94), At(kSgd, 95, 100)}};
  const std::vector<CollectiveEntry> entries = {{3, 7, kReduce, 40, 48}, {3, 8, kReduce, 92, 97}};
  const std::vector<Step> steps = StepsOf(driver, entries, names, {});
  ASSERT_EQ(steps.size(), 2);
  EXPECT_EQ(steps[0].interval, (OwnInterval{10, 60}));
  EXPECT_EQ(steps[0].pattern.forwards, 1);
  EXPECT_EQ(steps[1].interval, (OwnInterval{90, 100}));
  EXPECT_EQ(StepsOf(driver, entries, names, {.with_collectives = false}).size(), 3);
}

TEST(Steps, ArePairedByTheirFirstCollective) {
  const TaskNames names(kNames);
  const auto of = [&](uint64_t first, size_t count) {
    std::vector<Step> steps;
    for (uint64_t i = first; i < first + count; ++i) {
      Step step;
      step.interval = {static_cast<int64_t>(i) * 10, static_cast<int64_t>(i) * 10 + 10};
      step.collectives = {{0, i}};
      step.pattern.collectives[kReduce] = 1;
      steps.push_back(step);
    }
    return steps;
  };
  const std::vector<std::vector<Step>> ranks = {of(0, 10), of(1, 10)};
  const Pairing pairing = PairSteps(ranks, kNames);
  ASSERT_EQ(pairing.classes.size(), 1);
  EXPECT_EQ(pairing.classes[0].steps.size(), 9);
  EXPECT_THAT(pairing.classes[0].steps[0], ElementsAre(1, 0));
  EXPECT_EQ(pairing.unpaired, 1);
}

// Checkpoints, with a collective more, that take most of the time.
TEST(Steps, AClassOfFewStepsIsNotJudgedWhereAnotherHasEnough) {
  std::vector<Step> steps;
  int64_t at_ns = 0;
  for (uint64_t i = 0; i < 36; ++i) {
    Step step;
    const bool saves = i % 6 == 5;
    step.interval = {at_ns, at_ns + (saves ? 1000 : 10)};
    at_ns = step.interval.end_ns;
    step.collectives = {{0, i}};
    step.pattern.collectives[kReduce] = saves ? 2 : 1;
    steps.push_back(step);
  }
  const std::vector<std::vector<Step>> ranks = {steps, steps};
  const Pairing pairing = PairSteps(ranks, kNames);
  ASSERT_EQ(pairing.classes.size(), 2);
  EXPECT_EQ(pairing.classes[0].steps.size(), 30);
  EXPECT_GT(pairing.classes[1].total_ns, pairing.classes[0].total_ns);
}

// A job without DistributedDataParallel and FSDP, and without a DataLoader.
TEST(Steps, WhatNothingCountsIsNotSaidToBeNone) {
  const auto name_of = [](uint32_t forwards, uint32_t loads, uint32_t others_forwards) {
    std::vector<Step> steps(3);
    for (uint64_t i = 0; i < steps.size(); ++i) {
      const auto begin_ns = static_cast<int64_t>(i) * 10;
      steps[i].interval = {begin_ns, begin_ns + 10};
      steps[i].collectives = {{0, i}};
      steps[i].pattern = {{{kReduce, 1}}, forwards, loads};
    }
    steps[2].pattern.forwards = others_forwards;
    const std::vector<std::vector<Step>> ranks = {steps, steps};
    return PairSteps(ranks, kNames).classes[0].name;
  };
  const std::string one = name_of(1, 1, 1);
  EXPECT_EQ(name_of(0, 0, 0), one);
  EXPECT_EQ(name_of(2, 2, 2), one + ", 2 forward passes of DDP or FSDP, 2 batches of a DataLoader");
  EXPECT_EQ(name_of(0, 0, 1), one + ", 0 forward passes of DDP or FSDP");
}

TEST(Pieces, EachInstantGetsTheFirstPartThatApplies) {
  const TaskNames names(kNames);
  const std::vector<TaskSpan> spans = {At(kLoad, 0, 20), At(kConv, 5, 10), At(kConv, 30, 60),
                                       At(kSgd, 60, 100)};
  const std::vector<Segment> segments = SegmentsOf(spans, names);
  const std::vector<OwnInterval> waits = {{22, 30}};
  const std::vector<OwnInterval> holes = {{25, 35}};
  const std::vector<OwnInterval> collections = {{34, 40}};
  const std::vector<OwnInterval> steps = {{0, 100}};
  const PartTable table = TablesOf(PiecesOf({segments, waits, holes, collections, steps}), 1)[0];
  const auto part = [&](Part which) { return table[static_cast<size_t>(which)]; };
  EXPECT_EQ(part(Part::kInput), 20);
  EXPECT_EQ(part(Part::kNotCovered), 10);
  EXPECT_EQ(part(Part::kGarbageCollection), 5);
  EXPECT_EQ(part(Part::kWaitAndTransfer), 3);
  EXPECT_EQ(part(Part::kCompute), 20);
  EXPECT_EQ(part(Part::kHostCode), 42);
}

// Ten steps of 10 ms, each one operator of 8 ms; one stood still for 70 ms within its operator.
struct Stall {
  std::vector<TaskSpan> spans;
  std::vector<OwnInterval> steps;
  Stall() {
    int64_t at_ns = 0;
    for (int i = 0; i < 10; ++i) {
      const int64_t begin_ns = at_ns;
      const int64_t length_ns = i == 5 ? 78 * kMs : 8 * kMs;
      spans.push_back(At(kConv, at_ns, at_ns + length_ns));
      spans.push_back(At(kSgd, at_ns + length_ns, at_ns + length_ns + 2 * kMs));
      at_ns += length_ns + 2 * kMs;
      steps.push_back({begin_ns, at_ns});
    }
  }
};

TEST(TakenAway, GoesToThePieceThatIsLongerThanUsual) {
  const Stall stall;
  const TaskNames names(kNames);
  const std::vector<Segment> segments = SegmentsOf(stall.spans, names);
  std::vector<Piece> pieces = PiecesOf({segments, {}, {}, {}, stall.steps});
  std::vector<PartTable> tables = TablesOf(pieces, stall.steps.size());
  std::vector<Growth> growths;
  for (int64_t at_ns = 0; at_ns < 200 * kMs; at_ns += 50 * kMs) {
    growths.push_back({{at_ns, at_ns + 50 * kMs}});
  }
  growths[2].run_queue_ns = 70 * kMs;  // booked when it runs again: in [100, 150)
  growths[2].throttled_ns = 60 * kMs;
  EXPECT_EQ(TakeAway(growths, &pieces, &tables).ns, 0);
  EXPECT_EQ(tables[5][static_cast<size_t>(Part::kThrottled)], 60 * kMs);
  EXPECT_EQ(tables[5][static_cast<size_t>(Part::kWaitingForCpu)], 10 * kMs);
  EXPECT_EQ(tables[5][static_cast<size_t>(Part::kCompute)], 8 * kMs);
  EXPECT_EQ(tables[4][static_cast<size_t>(Part::kThrottled)], 0);
}

// The sum is the counter's, parts stay above 0 and add up, whatever the samples say.
TEST(TakenAway, NothingIsLostAndNothingBecomesNegative) {
  std::mt19937_64 random(7);
  const Stall stall;
  const TaskNames names(kNames);
  const std::vector<Segment> segments = SegmentsOf(stall.spans, names);
  for (int round = 0; round < 200; ++round) {
    std::vector<Piece> pieces = PiecesOf({segments, {}, {}, {}, stall.steps});
    std::vector<PartTable> tables = TablesOf(pieces, stall.steps.size());
    std::vector<Growth> growths;
    int64_t all_ns = 0;
    for (int64_t at_ns = 0; at_ns < 170 * kMs;) {
      const auto next_ns = at_ns + static_cast<int64_t>(1 + random() % 60) * kMs;
      Growth growth;
      growth.interval = {at_ns, next_ns};
      growth.run_queue_ns = static_cast<int64_t>(random() % 90) * kMs / 2;
      growth.throttled_ns = growth.run_queue_ns / static_cast<int64_t>(1 + random() % 3);
      all_ns += growth.run_queue_ns;
      growths.push_back(growth);
      at_ns = next_ns;
    }
    const int64_t unplaced_ns = TakeAway(growths, &pieces, &tables).ns;
    int64_t placed_ns = 0;
    for (size_t step = 0; step < tables.size(); ++step) {
      for (const int64_t part : tables[step]) ASSERT_GE(part, 0);
      EXPECT_EQ(std::accumulate(tables[step].begin(), tables[step].end(), int64_t{0}),
                stall.steps[step].length_ns());
      placed_ns += tables[step][static_cast<size_t>(Part::kThrottled)] +
                   tables[step][static_cast<size_t>(Part::kWaitingForCpu)];
    }
    EXPECT_EQ(placed_ns + unplaced_ns, all_ns);
  }
}

// A loader takes 3 to 7 ms of each step, and the rank waits 2 ms for a CPU somewhere: what varies
// by itself does not stand out, and is not called that wait.
TEST(TakenAway, WhatVariesByItselfIsLeftInItsPart) {
  std::vector<Piece> pieces;
  std::vector<Growth> growths;
  std::vector<OwnInterval> steps;
  std::vector<Segment> segments;
  std::mt19937_64 random(1);
  int64_t at_ns = 0;
  int64_t loaded_ns = 0;
  for (int step = 0; step < 80; ++step) {
    const int64_t begin_ns = at_ns;
    const auto load_ns = static_cast<int64_t>(3'000'000 + random() % 4'000'000);
    loaded_ns += load_ns;
    segments.push_back({at_ns, at_ns + load_ns, kForward, true, true});
    at_ns += load_ns;
    segments.push_back({at_ns, at_ns + 35 * kMs, kConv, true, false});
    at_ns += 35 * kMs;
    steps.push_back({begin_ns, at_ns});
    Growth& growth = growths.emplace_back();
    growth.interval = steps.back();
    growth.run_queue_ns = 2 * kMs;
  }
  pieces = PiecesOf({segments, {}, {}, {}, steps});
  std::vector<PartTable> tables = TablesOf(pieces, steps.size());
  EXPECT_EQ(TakeAway(growths, &pieces, &tables).ns, 0);
  int64_t input_ns = 0;
  int64_t waiting_ns = 0;
  for (const PartTable& table : tables) {
    input_ns += table[static_cast<size_t>(Part::kInput)];
    waiting_ns += table[static_cast<size_t>(Part::kWaitingForCpu)];
  }
  EXPECT_EQ(waiting_ns, 80 * 2 * kMs);
  // An eighth of it is the loader's, as of the time.
  EXPECT_NEAR(static_cast<double>(input_ns), static_cast<double>(loaded_ns - 80 * kMs / 4),
              80e5 / 8);
}

// Of 60 steps, ten blocks: without the widening 91 % hold it.
TEST(Statistics, TheMeanLiesInItsInterval) {
  constexpr int kRounds = 1000;
  std::mt19937_64 random(3);
  int covered = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int64_t> values;
    for (int i = 0; i < 60; ++i) values.push_back(static_cast<int64_t>(random() % 1000));
    const MeanEstimate mean = Bootstrap(values, BlockOf(values.size()));
    EXPECT_LE(mean.lo_ns, mean.est_ns);
    EXPECT_GE(mean.hi_ns, mean.est_ns);
    covered += mean.lo_ns <= 499 && 499 <= mean.hi_ns ? 1 : 0;
  }
  EXPECT_GE(covered, 935);  // of 95 %, by chance fewer once in 70 times
}

TEST(Statistics, RanksThatDoNotDifferSeldomSeemTo) {
  std::mt19937_64 random(5);
  int found = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::vector<int64_t>> values(4);
    for (auto& rank : values) {
      for (int i = 0; i < 60; ++i) rank.push_back(static_cast<int64_t>(random() % 1000));
    }
    found += PermutationTest(values, 6) < 0.01 ? 1 : 0;
    values[2].assign(60, 2000);
    EXPECT_LT(PermutationTest(values, 6), 0.01);
  }
  EXPECT_LE(found, 5);
}

TEST(Statistics, OthersLeaveTheRankOut) {
  const std::vector<std::vector<int64_t>> values = {{5}, {1}, {9}, {5}};
  const Others others(values);
  EXPECT_EQ(others.Median(0, 0), 5);
  EXPECT_EQ(others.Median(2, 0), 5);
  EXPECT_EQ(others.Largest(2, 0), 5);
  EXPECT_EQ(others.Largest(0, 0), 9);
  EXPECT_EQ(others.Median(1, 0), 5);
}

TEST(Work, WhatFetchesABatchIsInputHoweverItDoesSo) {
  const TaskNames names(kNames);
  std::vector<TaskSpan> spans;
  std::vector<TaskSpan> others;
  std::vector<OwnInterval> steps;
  for (int64_t i = 0; i < 100; ++i) {
    spans.push_back(At(kLoad, i * 100, i * 100 + 40));
    others.push_back(spans.back());
    others.push_back(At(kConv, i * 100 + 10, i * 100 + 30));
    steps.push_back({i * 100, i * 100 + 100});
  }
  const std::vector<WorkDone> ranks = {WorkOf(spans, steps, names), WorkOf(others, steps, names)};
  EXPECT_TRUE(DifferencesOf(ranks, 1, 100, 10'000, kNames).empty());
}

// Who only reduces to another rank need not wait for that.
TEST(Work, AWaitIsNoWork) {
  const std::vector<std::string> all_names = {"", "PyTorch", "aten::conv2d", "Work.wait"};
  const TaskNames names(all_names);
  std::vector<TaskSpan> spans;
  std::vector<TaskSpan> others;
  std::vector<OwnInterval> steps;
  for (int64_t i = 0; i < 100; ++i) {
    for (std::vector<TaskSpan>* one : {&spans, &others}) {
      TaskSpan span = At(2, i * 100, i * 100 + 40);
      span.category = 1;
      one->push_back(span);
    }
    TaskSpan wait = At(3, i * 100 + 50, i * 100 + 80);
    wait.category = 1;
    others.push_back(wait);
    steps.push_back({i * 100, i * 100 + 100});
  }
  const std::vector<WorkDone> ranks = {WorkOf(spans, steps, names), WorkOf(others, steps, names)};
  EXPECT_TRUE(DifferencesOf(ranks, 1, 100, 10'000, all_names).empty());
}

TEST(Work, ALoggedValueNowAndThenIsTheSameWork) {
  const TaskNames names(kNames);
  std::vector<TaskSpan> spans;
  std::vector<OwnInterval> steps;
  for (int64_t i = 0; i < 100; ++i) {
    spans.push_back(At(kConv, i * 100, i * 100 + 80));
    steps.push_back({i * 100, i * 100 + 100});
  }
  std::vector<WorkDone> ranks = {WorkOf(spans, steps, names), WorkOf(spans, steps, names)};
  EXPECT_TRUE(DifferencesOf(ranks, 0, 100, 10'000, kNames).empty());
  std::vector<TaskSpan> logging = spans;
  for (int64_t i = 0; i < 100; i += 50) {
    logging.insert(logging.begin() + i + 1, At(kMul, i * 100 + 90, i * 100 + 95));
  }
  ranks[0] = WorkOf(logging, steps, names);
  EXPECT_TRUE(DifferencesOf(ranks, 0, 100, 10'000, kNames).empty());
  std::vector<TaskSpan> more = spans;
  for (size_t i = more.size(); i > 0; --i) {
    more.insert(more.begin() + static_cast<ptrdiff_t>(i), more[i - 1]);
  }
  ranks[0] = WorkOf(more, steps, names);
  ASSERT_EQ(DifferencesOf(ranks, 0, 100, 10'000, kNames).size(), 1);
  EXPECT_EQ(DifferencesOf(ranks, 0, 100, 10'000, kNames)[0].own, 2);
}

TEST(Work, WhatTakesTheTimeComesFirstHoweverSeldomItRuns) {
  const TaskNames names(kNames);
  std::vector<TaskSpan> spans;
  std::vector<TaskSpan> more;
  std::vector<OwnInterval> steps;
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t at = i * 100;
    steps.push_back({at, at + 100});
    spans.push_back(At(kMul, at, at + 1));
    for (int64_t k = 0; k < 4; ++k) more.push_back(At(kMul, at + k, at + k + 1));
    more.push_back(At(kConv, at + 10, at + 90));
  }
  const std::vector<WorkDone> ranks = {WorkOf(more, steps, names), WorkOf(spans, steps, names)};
  const std::vector<WorkDifference> found = DifferencesOf(ranks, 0, 100, 10'000, kNames);
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].name, kNames[kConv]);
  EXPECT_EQ(found[1].name, kNames[kMul]);
}

}  // namespace
}  // namespace syncline::analysis::why
