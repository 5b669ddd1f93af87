// SPDX-License-Identifier: Apache-2.0
// Profiles of ranks whose clocks are known: the truth lies in what their collectives say of them.
#include "coordinator/merge/file_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/profiled_job_test.h"
#include "coordinator/merge/why_profiles.h"

namespace syncline::merge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class FileClocksTest : public testing::Test {
 protected:
  FileClocksTest()
      : directory_(fs::path(testing::TempDir()) /
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(directory_);
  }
  ~FileClocksTest() override { fs::remove_all(directory_); }

  static OpenedInputs Open(const std::vector<std::string>& paths) {
    absl::StatusOr<OpenedInputs> opened = OpenInputs({.inputs = paths});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  // Asserts that every node is where its clock says, and returns the median bound.
  static int64_t CheckTruth(const Job& job, const OpenedInputs& inputs) {
    EXPECT_TRUE(inputs.model != nullptr);
    if (inputs.model == nullptr) return -1;
    const HostClock& reference = job.clock(static_cast<int>(*inputs.reference));
    std::vector<int64_t> bounds;
    for (int64_t ns = 0; ns < 900 * kMs; ns += 3'333'333) {
      const int64_t truth = reference.At(ns) + Job::kBaseNs - inputs.epoch_unix_ns;
      for (int rank = 0; rank < job.size(); ++rank) {
        const auto node = static_cast<uint32_t>(rank);
        const TimelineEstimate where = inputs.model->Locate(
            {{node, ClockKind::kRealtime}, job.clock(rank).At(ns) + Job::kBaseNs});
        EXPECT_LE(where.lo.ns, truth) << "rank " << rank << " at " << ns;
        EXPECT_GE(where.hi.ns, truth) << "rank " << rank << " at " << ns;
        if (node != *inputs.reference) bounds.push_back(where.bound_ns());
      }
    }
    std::sort(bounds.begin(), bounds.end());
    return bounds[bounds.size() / 2];
  }

  const fs::path directory_;
};

std::vector<int> Ranks(int count) {
  std::vector<int> ranks(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) ranks[static_cast<size_t>(i)] = i;
  return ranks;
}

Job JobOf(int ranks, std::mt19937* random) {
  std::vector<HostClock> clocks;
  for (int i = 0; i < ranks; ++i) {
    clocks.push_back({static_cast<int64_t>((*random)() % 20'000'000) - 10 * kMs,
                      static_cast<int64_t>((*random)() % 201) - 100});
  }
  return Job(clocks);
}

// Groups of the whole job and of halves, kinds that wait for all and for some.
Job Training(int ranks, std::mt19937* random) {
  Job job = JobOf(ranks, random);
  std::vector<int> low, high;
  for (int i = 0; i < ranks; ++i) (i < ranks / 2 ? low : high).push_back(i);
  int64_t at = 5 * kMs;
  for (int64_t i = 1; i <= 60; ++i) {
    job.AddAsItRuns({.ranks = Ranks(ranks)}, 3 * i, at, random);
    job.AddAsItRuns({.name = "broadcast", .ranks = Ranks(ranks), .root = 1}, 3 * i + 1,
                    at + 3 * kMs, random);
    job.AddAsItRuns({.name = "reduce", .ranks = Ranks(ranks), .root = 0}, 3 * i + 2, at + 6 * kMs,
                    random);
    if (ranks >= 4) {
      job.AddAsItRuns({.name = "_allgather_base", .group = "7", .ranks = low}, i, at + 9 * kMs,
                      random);
      job.AddAsItRuns({.name = "_reduce_scatter_base", .group = "7", .ranks = high}, i,
                      at + 9 * kMs, random);
    }
    at += 13 * kMs + static_cast<int64_t>((*random)() % kMs);
  }
  return job;
}

TEST_F(FileClocksTest, TheTruthIsInsideOfWhatCollectivesSay) {
  for (const int ranks : {2, 3, 4, 8, 12}) {
    std::mt19937 random(static_cast<uint32_t>(ranks));
    Job job = Training(ranks, &random);
    const OpenedInputs inputs = Open(job.Write(directory_ / std::to_string(ranks)));
    EXPECT_THAT(inputs.complaints, SizeIs(0));
    const int64_t bound_ns = CheckTruth(job, inputs);
    RecordProperty("bound_ns_of_" + std::to_string(ranks), std::to_string(bound_ns));
    EXPECT_LT(bound_ns, 400'000) << ranks << " ranks";
    EXPECT_EQ(inputs.file_clocks->collectives, ranks >= 4 ? 300 : 180);
  }
}

TEST_F(FileClocksTest, WithoutNumbersNothingIsMatched) {
  std::mt19937 random(1);
  Job job = JobOf(2, &random);
  for (int64_t i = 1; i <= 20; ++i) {
    job.AddAsItRuns({.ranks = {0, 1}, .more = {{"Seq", nullptr}, {"Comms Id", nullptr}}}, i,
                    i * 20 * kMs, &random);
  }
  const OpenedInputs inputs = Open(job.Write(directory_));
  EXPECT_EQ(inputs.model, nullptr);
  EXPECT_EQ(inputs.file_clocks->collectives, 0);
  EXPECT_EQ(inputs.file_clocks->files[0].kernels, 20);
  EXPECT_EQ(inputs.file_clocks->files[1].without_number, 20);
  EXPECT_THAT(inputs.notes, ElementsAre(HasSubstr("have no number (`Seq`)")));
}

TEST_F(FileClocksTest, TheOrderOfEventsChangesNothing) {
  std::mt19937 random(2);
  Job job = Training(4, &random);
  const auto say = [&](const std::string& name) {
    const OpenedInputs inputs = Open(job.Write(directory_ / name));
    std::string said = std::to_string(inputs.epoch_unix_ns);
    for (uint32_t node = 0; node < 4; ++node) {
      const TimelineEstimate at =
          inputs.model->Locate({{node, ClockKind::kRealtime}, kEpoch + Job::kBaseNs + 300 * kMs});
      said += " " + std::to_string(at.lo.ns) + " " + std::to_string(at.est.ns) + " " +
              std::to_string(at.hi.ns);
    }
    return said;
  };
  const std::string before = say("before");
  job.Shuffle(&random);
  EXPECT_EQ(say("after"), before);
}

// Nothing is said of the order of ranks beyond the bound.
TEST_F(FileClocksTest, TheReportCountsThemAndIsAsSureAsTheBound) {
  Job job({{}, {.offset_ns = -4 * kMs}});
  std::mt19937 random(13);
  for (int64_t i = 1; i <= 20; ++i) {
    // Now rank 1 enters 2 ms later, now rank 0: more than collectives leave open.
    const int64_t at = i * 40 * kMs;
    const int64_t late = i % 2 == 0 ? 0 : 2 * kMs;
    job.Add({.ranks = {0, 1}}, i, {at + 2 * kMs - late, at + late},
            {at + 2 * kMs + 60'000, at + 2 * kMs + 70'000});
    job.Add({.group = "8", .ranks = {0, 1}}, i, {at + 9 * kMs, at + 9 * kMs + 1'000},
            {at + 9 * kMs + 30'000, at + 9 * kMs + 35'000});
  }
  const auto report = MakeReport({.input = {.inputs = job.Write(directory_)}, .step = {}});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->collectives.kinds, SizeIs(2));
  EXPECT_EQ(report->collectives.contradictions, 0);
  const analysis::CollectiveKindReport& apart = report->collectives.kinds[0];
  EXPECT_EQ(apart.count, 20);
  EXPECT_EQ(apart.order.proven, 20);
  EXPECT_TRUE(apart.spread->bounded());
  EXPECT_LE(apart.spread->lo_ns, 2 * kMs);
  EXPECT_GE(apart.spread->hi_ns, 2 * kMs);
  // A microsecond is less than the bound.
  EXPECT_EQ(report->collectives.kinds[1].order.undecided, 20);
  EXPECT_TRUE(report->nodes[1].bound_ns.has_value());
  EXPECT_TRUE(report->file_clocks->compared);
  EXPECT_EQ(report->file_clocks->binding, 40);
}

// Enough that two ranks wait for each other that the clocks are compared.
Job Pair(std::mt19937* random) {
  Job job = JobOf(2, random);
  for (int64_t i = 1; i <= 30; ++i) job.AddAsItRuns({.ranks = {0, 1}}, i, i * 25 * kMs, random);
  return job;
}

TEST_F(FileClocksTest, WhatOneRankShowsTwiceIsNotMatched) {
  std::mt19937 random(3);
  Job job = Pair(&random);
  // It carries the number of another one, and would be a false limit.
  job.AddKernel({.ranks = {0, 1}}, 7, 1, 800 * kMs, 801 * kMs);
  const OpenedInputs inputs = Open(job.Write(directory_));
  CheckTruth(job, inputs);
  EXPECT_EQ(inputs.file_clocks->repeated, 1);
  EXPECT_EQ(inputs.file_clocks->collectives, 29);
}

TEST_F(FileClocksTest, OneThatARankLacksIsNoneOfTheOthers) {
  std::mt19937 random(4);
  Job job = JobOf(3, &random);
  for (int64_t i = 1; i <= 30; ++i) {
    const int64_t at = i * 25 * kMs;
    // The last rank's profile has every other one only.
    job.Add({.ranks = {0, 1, 2}}, i, {at, at + 1'000, i % 2 == 0 ? at + 50'000 : -1},
            {at + 90'000, at + 91'000, at + 92'000});
  }
  job.Add({.ranks = {0, 1, 2}}, 31, {850 * kMs, -1, -1}, {851 * kMs, 0, 0});
  const OpenedInputs inputs = Open(job.Write(directory_));
  CheckTruth(job, inputs);
  EXPECT_EQ(inputs.file_clocks->collectives, 30);
  EXPECT_EQ(inputs.file_clocks->alone, 1);
  ASSERT_THAT(inputs.collectives->collectives, SizeIs(30));
  EXPECT_THAT(inputs.collectives->collectives[0].members, SizeIs(2));
  EXPECT_EQ(inputs.collectives->groups[0].ranks, "0-2");
}

TEST_F(FileClocksTest, AGroupInWhichSomebodyCountsOtherwiseIsNotMatched) {
  std::mt19937 random(5);
  Job job = Pair(&random);
  for (int64_t i = 1; i <= 20; ++i) {
    const int elements = i % 2 == 0 ? 8 : 16;
    const Job::Collective what{
        .group = "9", .ranks = {0, 1}, .elements = elements, .more = {{"Comms Id", nullptr}}};
    job.AddKernel(what, i, 0, i * 20 * kMs, i * 20 * kMs + 50'000);
    job.AddKernel(what, i + 1, 1, i * 20 * kMs, i * 20 * kMs + 50'000);
  }
  const OpenedInputs inputs = Open(job.Write(directory_));
  CheckTruth(job, inputs);
  EXPECT_EQ(inputs.file_clocks->collectives, 30);
  EXPECT_THAT(inputs.file_clocks->disagreeing, ElementsAre(HasSubstr("group 9 (ranks 0-1)")));
}

TEST_F(FileClocksTest, OtherCommsIdsAreNotTheSameCollective) {
  std::mt19937 random(6);
  Job job = JobOf(2, &random);
  const Job::Collective what{.ranks = {0, 1},
                             .more = {{"Comms Id", 18'000'000'000'000'000'001ULL}}};
  job.AddKernel(what, 1, 0, 10 * kMs, 11 * kMs);
  job.AddKernel({.ranks = {0, 1}, .more = {{"Comms Id", 5}}}, 1, 1, 10 * kMs, 11 * kMs);
  const OpenedInputs inputs = Open(job.Write(directory_));
  EXPECT_EQ(inputs.model, nullptr);
  EXPECT_EQ(inputs.file_clocks->collectives, 0);
}

// torchcomms' backends: sends count, too.
TEST_F(FileClocksTest, OperationsOfOtherBackendsAreNotMatched) {
  std::mt19937 random(14);
  Job job = JobOf(2, &random);
  for (int64_t i = 1; i <= 5; ++i) job.AddAsItRuns({.ranks = {0, 1}}, i, i * 25 * kMs, &random);
  job.AddAsItRuns({.name = "all_reduce", .ranks = {0, 1}}, 6, 200 * kMs, &random);
  const OpenedInputs inputs = Open(job.Write(directory_));
  EXPECT_EQ(inputs.model, nullptr);
  EXPECT_THAT(inputs.file_clocks->disagreeing, ElementsAre(HasSubstr("\"all_reduce\"")));
}

// Kernels with wrong times, and of ranks that are no members, limit nothing.
TEST_F(FileClocksTest, ImpossibleKernelsAreLeftOut) {
  std::mt19937 random(7);
  Job job = Pair(&random);
  job.AddKernel({.group = "5", .ranks = {4, 5}}, 1, 0, 50 * kMs, 51 * kMs);
  job.AddKernel({.group = "5", .ranks = {4, 5}}, 1, 1, 250 * kMs, 251 * kMs);
  const OpenedInputs inputs = Open(job.Write(directory_));
  CheckTruth(job, inputs);
  EXPECT_EQ(inputs.file_clocks->impossible, 2);
}

TEST_F(FileClocksTest, WhatCannotBeNamesTheFilesAndTheCollectives) {
  std::mt19937 random(8);
  Job job = Pair(&random);
  // Rank 1 begins 2 ms after rank 0 has ended, and 5 ms of drift within 25 ms cannot be.
  job.Add({.ranks = {0, 1}}, 31, {790 * kMs, 795 * kMs}, {791 * kMs, 796 * kMs});
  const OpenedInputs inputs = Open(job.Write(directory_));
  EXPECT_EQ(inputs.model, nullptr);
  EXPECT_TRUE(inputs.incomplete);
  ASSERT_THAT(inputs.complaints, SizeIs(1));
  EXPECT_THAT(inputs.complaints[0],
              testing::AllOf(HasSubstr("rank0.json and rank1.json contradict each other"),
                             HasSubstr("allreduce 31 of group 0"), HasSubstr("500 ppm")));
  EXPECT_FALSE(inputs.file_clocks->compared);
  EXPECT_EQ(inputs.nodes[1].placement->BoundNs(kEpoch), std::nullopt);
  EXPECT_EQ(inputs.nodes[1].placement->At(inputs.epoch_unix_ns + 5).ns, 5);  // not moved
  // `syncline why` calls its answer incomplete, and says why.
  const auto answer = ExplainProfiles({.input = {.inputs = job.Write(directory_)}});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->incomplete);
  EXPECT_THAT(answer->notes, testing::ElementsAre(HasSubstr("contradict each other")));
}

TEST_F(FileClocksTest, FilesOfTwoRunsAreNotCompared) {
  Job job({{}, {.offset_ns = int64_t{7'200'000} * kMs}});
  std::mt19937 random(9);
  for (int64_t i = 1; i <= 5; ++i) job.AddAsItRuns({.ranks = {0, 1}}, i, i * 25 * kMs, &random);
  const OpenedInputs inputs = Open(job.Write(directory_));
  EXPECT_EQ(inputs.model, nullptr);
  EXPECT_THAT(inputs.complaints, ElementsAre(HasSubstr("Are they files of one run?")));
}

TEST_F(FileClocksTest, FilesThatAreNotOfOneClockSaySo) {
  std::mt19937 random(10);
  Job job({{.offset_ns = 5 * kMs}, {}});
  for (int64_t i = 1; i <= 5; ++i) job.AddAsItRuns({.ranks = {0, 1}}, i, i * 25 * kMs, &random);
  std::vector<std::string> paths = job.Write(directory_);
  for (std::string& path : paths) path = "host=" + path;
  const OpenedInputs inputs = Open(paths);
  EXPECT_THAT(inputs.complaints, ElementsAre(HasSubstr("were given as files of one clock")));
}

// Two ranks send to each other; the counter is each rank's own.
TEST_F(FileClocksTest, TransfersOfTwoRanksBindAsLongAsTheirNumbersAreCertain) {
  std::mt19937 random(11);
  Job job = JobOf(2, &random);
  const auto transfer = [&](int64_t number, int from, int64_t at) {
    const int to = 1 - from;
    const std::vector<int> ranks = {0, 1};
    job.AddKernel({.name = "send", .group = "3", .ranks = ranks, .more = {{"Dst Rank", to}}},
                  number, from, at, at + 100'000);
    job.AddKernel({.name = "recv", .group = "3", .ranks = ranks, .more = {{"Src Rank", from}}},
                  number, to, at + 20'000, at + 120'000);
  };
  for (int64_t i = 1; i <= 20; ++i) transfer(i, static_cast<int>(i % 2), i * 30 * kMs);
  // Both send: their numbers go apart, and nothing behind it is certain.
  const std::vector<int> ranks = {0, 1};
  for (const int rank : {0, 1}) {
    job.AddKernel({.name = "send", .group = "3", .ranks = ranks, .more = {{"Dst Rank", 1 - rank}}},
                  21, rank, 650 * kMs, 651 * kMs);
  }
  transfer(22, 0, 700 * kMs);
  const OpenedInputs inputs = Open(job.Write(directory_));
  EXPECT_LT(CheckTruth(job, inputs), kMs / 2);
  EXPECT_EQ(inputs.file_clocks->collectives, 20);
  EXPECT_EQ(inputs.file_clocks->transfers_left, 4);
}

TEST_F(FileClocksTest, TransfersOfMoreThanTwoRanksAreNotMatched) {
  std::mt19937 random(12);
  Job job = JobOf(3, &random);
  const std::vector<int> ranks = {0, 1, 2};
  // Rank 0 sends to 1 and then to 2: what is its second is the first that rank 2 receives.
  job.AddKernel({.name = "send", .ranks = ranks, .more = {{"Dst Rank", 2}}}, 1, 0, 10 * kMs,
                11 * kMs);
  job.AddKernel({.name = "recv", .ranks = ranks, .more = {{"Src Rank", 0}}}, 1, 2, 10 * kMs,
                11 * kMs);
  const OpenedInputs inputs = Open(job.Write(directory_));
  EXPECT_EQ(inputs.model, nullptr);
  EXPECT_EQ(inputs.file_clocks->transfers_left, 2);
}

// A broadcast's root may end before anybody else begins: it says nothing of that.
TEST_F(FileClocksTest, RootedKindsBindOneWayOnly) {
  Job job({{}, {.offset_ns = 3 * kMs}});
  for (int64_t i = 1; i <= 20; ++i) {
    const int64_t at = i * 30 * kMs;
    job.Add({.name = "broadcast", .ranks = {0, 1}, .root = 0}, i, {at, at + 9 * kMs},
            {at + 100'000, at + 9 * kMs + 50'000});
  }
  const OpenedInputs one_way = Open(job.Write(directory_ / "one"));
  EXPECT_THAT(one_way.complaints, SizeIs(0));
  ASSERT_NE(one_way.model, nullptr);
  EXPECT_EQ(one_way.nodes[1].placement->BoundNs(kEpoch + Job::kBaseNs), std::nullopt);
  for (int64_t i = 1; i <= 20; ++i) {
    const int64_t at = i * 30 * kMs + 15 * kMs;
    job.Add({.name = "reduce", .ranks = {0, 1}, .root = 0}, 20 + i, {at, at + kMs},
            {at + kMs + 60'000, at + kMs + 40'000});
  }
  const OpenedInputs both = Open(job.Write(directory_ / "both"));
  CheckTruth(job, both);
  EXPECT_TRUE(both.nodes[1].placement->BoundNs(kEpoch + Job::kBaseNs + 300 * kMs).has_value());
}

TEST(RanksOfTest, OfManyRanksTheRangeMustBeWhole) {
  EXPECT_EQ(RanksOf("[3, 1]", 2), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(RanksOf("[4, 5, ..., 7]", 4), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(RanksOf("[0, 8, ..., 504]", 64), std::nullopt);
  EXPECT_EQ(RanksOf("[0, 1, ...]", 8), std::nullopt);
  EXPECT_EQ(RanksOf("[0, ..., 9223372036854775807]", 2), std::nullopt);
  EXPECT_EQ(RanksOf("[]", 0), std::nullopt);
  EXPECT_EQ(RanksOf("0, 1", 2), std::nullopt);
  EXPECT_EQ(RanksOf("[0, x]", 2), std::nullopt);
}

}  // namespace
}  // namespace syncline::merge
