// SPDX-License-Identifier: Apache-2.0
// Made-up programs of which it is known what changed: their operators' times are drawn here.
#include "analysis/against/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace syncline::analysis::against {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = RowChange::State;

constexpr int64_t kUs = 1000;
constexpr size_t kSteps = 200;
constexpr int64_t kStepUs = 20'000;

// Steps of about 20 ms on two ranks, whose operators vary by `noise` (0.1: a tenth) from step to
// step, and together by `drift` from recording to recording.
class Program {
 public:
  explicit Program(uint64_t seed, double noise = 0.2, double drift = 0) : random_(seed) {
    std::normal_distribution<double> recording(1, drift);
    factor_ = drift > 0 ? recording(random_) : 1;
    noise_ = noise;
    made_.members = {{0, "rank 0"}, {1, "rank 1"}};
    made_.has_ranks = true;
    made_.detail = "full";
    made_.nodes = 1;
    made_.processes = 2;
    made_.step_name = "train_step";
    made_.units.per = Per::kStep;
    made_.units.steps = 1;
    StepLengths& steps = made_.steps.emplace_back();
    steps.name = "train_step";
    for (size_t i = 0; i < kSteps; ++i) {
      const auto begin_ns = static_cast<int64_t>(i) * kStepUs * kUs;
      made_.units.intervals.push_back({{begin_ns}, {begin_ns + kStepUs * kUs}});
      made_.units.lengths_ns.push_back(Drawn(kStepUs));
      steps.ns.push_back(made_.units.lengths_ns.back());
    }
  }

  // So long on each rank in a step.
  Program& Takes(const std::string& name, int64_t rank0_us, int64_t rank1_us, uint64_t calls = 1) {
    Sums& sums = made_.rows[{RowKind::kTask, "torch", name}];
    sums.member_ns.resize(2);
    for (size_t i = 0; i < kSteps; ++i) {
      const int64_t rank0_ns = Drawn(rank0_us);
      const int64_t rank1_ns = Drawn(rank1_us);
      sums.ns.push_back(rank0_ns + rank1_ns);
      sums.member_ns[0] += rank0_ns;
      sums.member_ns[1] += rank1_ns;
    }
    sums.calls = 2 * kSteps * calls;
    return *this;
  }
  Program& Takes(const std::string& name, int64_t us) { return Takes(name, us, us); }

  Recording made() const { return made_; }

 private:
  int64_t Drawn(int64_t us) {
    std::normal_distribution<double> factor(1, noise_);
    return std::llround(static_cast<double>(us * kUs) * factor_ * std::max(0.1, factor(random_)));
  }

  std::mt19937_64 random_;
  double noise_ = 0;
  double factor_ = 1;
  Recording made_;
};

std::vector<std::string> Named(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const RowChange& row : comparison.rows) {
    if (row.state != State::kSame) names.push_back(row.name.name);
  }
  return names;
}

const RowChange& Of(const Comparison& comparison, const std::string& name) {
  return *std::find_if(comparison.rows.begin(), comparison.rows.end(),
                       [&](const RowChange& row) { return row.name.name == name; });
}

TEST(Against, NamesWhatChangedAndNothingElse) {
  const Recording before = Program(1)
                               .Takes("conv", 5000)
                               .Takes("sort", 1000)
                               .Takes("gone", 400)
                               .Takes("slow on one", 500)
                               .Takes("tiny", 10)
                               .made();
  const Recording now = Program(2)
                            .Takes("conv", 5000)
                            .Takes("sort", 1800, 1800, 2)
                            .Takes("new", 300)
                            .Takes("slow on one", 500, 1500)
                            .Takes("tiny", 40)
                            .made();
  const Comparison comparison = Compare({before}, now);
  ASSERT_EQ(comparison.mismatch, Mismatch::kNone) << comparison.mismatch_text;
  EXPECT_THAT(Named(comparison), ElementsAre("sort", "slow on one", "gone", "new"));
  EXPECT_EQ(comparison.tested, 5u);  // a tiny one cannot change by 0.5 % of a step
  const RowChange& sort = Of(comparison, "sort");
  EXPECT_EQ(sort.state, State::kChanged);
  EXPECT_LE(sort.time.change.lo_ns, 800 * kUs);
  EXPECT_GE(sort.time.change.hi_ns, 800 * kUs);
  EXPECT_NEAR(sort.time.est_ppm, 40'000, 2'000);  // of a step of 20 ms
  EXPECT_EQ(sort.calls_before, 1);
  EXPECT_EQ(sort.calls_now, 2);
  EXPECT_EQ(sort.where.changed, 2u);
  EXPECT_EQ(Of(comparison, "gone").state, State::kVanished);
  EXPECT_EQ(Of(comparison, "new").state, State::kAppeared);
  const RowChange& one = Of(comparison, "slow on one");
  EXPECT_NEAR(one.time.change.est_ns, 500 * kUs, 50 * kUs);  // mean of 0 and 1 ms
  EXPECT_EQ(one.where.changed, 1u);
  EXPECT_EQ(comparison.members[one.where.most].rank, 1);
  EXPECT_NEAR(one.where.most_ns, 1000 * kUs, 100 * kUs);
  EXPECT_FALSE(comparison.steps.front().changed);
}

// 40 operators a comparison, 100 comparisons: one in twenty of them may name one.
TEST(Against, NamesNothingInTwoRecordingsOfTheSame) {
  size_t with_names = 0;
  size_t tested = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Program before(2 * seed + 1);
    Program now(2 * seed + 2);
    for (int i = 0; i < 40; ++i) {
      const std::string name = "operator " + std::to_string(i);
      for (Program* side : {&before, &now}) side->Takes(name, 250 + 40 * i);
    }
    const Comparison comparison = Compare({before.made()}, now.made());
    tested += comparison.tested;
    with_names += Named(comparison).empty() ? 0 : 1;
  }
  EXPECT_EQ(tested, 100u * 40);
  EXPECT_LE(with_names, 5u);
}

// The same with operators that vary as much as they take: here only the test of many rows helps.
TEST(Against, ManyNoisyOperatorsAreNotNamedByChance) {
  size_t with_names = 0;
  size_t by_their_intervals = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Program before(1000 + 2 * seed, 4);
    Program now(1001 + 2 * seed, 4);
    for (int i = 0; i < 40; ++i) {
      const std::string name = "operator " + std::to_string(i);
      for (Program* side : {&before, &now}) side->Takes(name, 1000);
    }
    const Comparison comparison = Compare({before.made()}, now.made());
    by_their_intervals += static_cast<size_t>(
        std::count_if(comparison.rows.begin(), comparison.rows.end(), [](const RowChange& row) {
          return row.time.certain() && std::abs(row.time.change.est_ns) > row.time.before_ns / 5;
        }));
    with_names += Named(comparison).empty() ? 0 : 1;
  }
  EXPECT_GE(by_their_intervals, 30u);  // the situation did occur
  EXPECT_LE(with_names, 5u);
}

TEST(Against, OneRecordingBeforeNamesNoChangeOfLessThanAFifth) {
  const Recording before = Program(1).Takes("conv", 5000).made();
  const Recording now = Program(2).Takes("conv", 5400).made();
  const Comparison comparison = Compare({before}, now);
  EXPECT_TRUE(Of(comparison, "conv").time.certain());
  EXPECT_THAT(Named(comparison), IsEmpty());
  // Several that hardly differ from each other show that it is one.
  std::vector<Recording> befores;
  for (uint64_t seed = 10; seed < 14; ++seed) {
    befores.push_back(Program(seed).Takes("conv", 5000).made());
  }
  EXPECT_THAT(Named(Compare(befores, now)), ElementsAre("conv"));
}

// Of 60 comparisons with four recordings before, about three are named: intervals hold 95 %.
TEST(Against, IntervalsOfSeveralHoldHowTheyDiffer) {
  const auto made = [](uint64_t seed) {
    return Program(seed, 0.05, 0.15).Takes("conv", 5000).made();
  };
  size_t named = 0;
  size_t named_by_one = 0;
  for (uint64_t seed = 0; seed < 300; seed += 5) {
    std::vector<Recording> befores;
    for (uint64_t one = 1; one < 5; ++one) befores.push_back(made(seed + one));
    const Recording now = made(seed + 1000);
    named += Named(Compare(befores, now)).size();
    named_by_one += Named(Compare({befores.front()}, now)).size();
    const Recording twice = Program(seed + 2000, 0.05, 0.01).Takes("conv", 30'000).made();
    EXPECT_THAT(Named(Compare(befores, twice)), ElementsAre("conv"));
  }
  EXPECT_LE(named, 6u);
  EXPECT_GE(named_by_one, 15u);  // the situation did occur
}

TEST(Against, RefusesWhatCannotBeCompared) {
  const Recording before = Program(1).Takes("conv", 5000).made();
  Recording one_rank = before;
  one_rank.members.pop_back();
  Comparison comparison = Compare({before}, one_rank);
  EXPECT_EQ(comparison.mismatch, Mismatch::kOtherRanks);
  EXPECT_EQ(comparison.mismatch_text, "not comparable: 1 rank now, 2 ranks before");
  comparison = Compare({before}, Program(2).Takes("another program", 5000).made());
  EXPECT_EQ(comparison.mismatch, Mismatch::kOtherProgram);
  Recording brief = before;
  brief.units.intervals.resize(11);
  EXPECT_EQ(Compare({brief}, before).mismatch, Mismatch::kTooShort);
}

TEST(Against, SaysWhatDiffers) {
  const Recording before = Program(1).Takes("conv", 5000).made();
  Recording now = Program(2).Takes("conv", 9000).Takes("other", 5000).made();
  now.detail = "low";
  now.nodes = 2;
  now.programs = {"python train2.py"};
  const Comparison comparison = Compare({before}, now);
  EXPECT_THAT(comparison.notes, ElementsAre("other programs: python train2.py now, unknown before",
                                            "other nodes: 2 now, 1 before",
                                            HasSubstr("--detail low now, full before")));
  EXPECT_THAT(comparison.rows, IsEmpty());  // operators of another detail
  EXPECT_EQ(comparison.steps.size(), 1u);
}

// Of a program without steps: everything takes as much of a second as before.
TEST(Against, PerSecondLongerCallsAreNamed) {
  const auto without_steps = [](Recording recording, int64_t call_us) {
    recording.units.per = Per::kSecond;
    recording.units.part_ns = kStepUs * kUs;
    recording.steps.clear();
    Sums& conv = recording.rows.at({RowKind::kTask, "torch", "conv"});
    for (size_t i = 0; i < kSteps; ++i) {
      conv.call_ns.push_back((call_us + static_cast<int64_t>(i % 7)) * kUs);
    }
    return recording;
  };
  const Recording before = without_steps(Program(1).Takes("conv", 500'000).made(), 300);
  const Recording same = without_steps(Program(2).Takes("conv", 500'000).made(), 301);
  const Recording slow = without_steps(Program(2).Takes("conv", 500'000).made(), 450);
  EXPECT_FALSE(Of(Compare({before}, same), "conv").call_changed);
  const Comparison comparison = Compare({before}, slow);
  EXPECT_THAT(Named(comparison), IsEmpty());
  const RowChange& conv = Of(comparison, "conv");
  EXPECT_TRUE(conv.call_changed);
  ASSERT_TRUE(conv.call.has_value());
  EXPECT_EQ(conv.call->change.est_ns, 150 * kUs);
}

TEST(Against, OfARedactedRecordingOnlyWhatBothHaveIsCompared) {
  Recording before = Program(1).Takes("conv", 5000).Takes("j34kg7nv", 5000).made();
  before.redacted = true;
  before.programs = {"bsw5xxhm"};
  Recording now = Program(2).Takes("conv", 9000).Takes("augment", 5000).made();
  now.programs = {"python train.py"};
  const Comparison comparison = Compare({before}, now);
  EXPECT_THAT(Named(comparison), ElementsAre("conv"));
  EXPECT_EQ(comparison.rows.size(), 1u);
  EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("names were replaced")));
}

TEST(Against, AClockThatMayBeWrongMakesTheIntervalWider) {
  const auto with_clock = [](Recording recording, int64_t us, int64_t clock_ns) {
    Sums& sums = recording.rows[{RowKind::kAllIn, "default_pg", "allreduce"}];
    sums.ns.assign(kSteps, us * kUs);
    sums.ns[0] += 1;
    sums.calls = kSteps;
    sums.clock_ns = clock_ns;
    return recording;
  };
  const Recording before = with_clock(Program(1).Takes("conv", 5000).made(), 1000, 0);
  const Recording now = Program(2).Takes("conv", 5000).made();
  EXPECT_THAT(Named(Compare({before}, with_clock(now, 1300, 0))), ElementsAre("allreduce"));
  EXPECT_THAT(Named(Compare({before}, with_clock(now, 1300, 400 * kUs))), IsEmpty());
}

}  // namespace
}  // namespace syncline::analysis::against
