// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/scheduled_taker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis::why {
namespace {

using evidence::Relation;
using evidence::Turn;
using evidence::Who;
using Kind = Taker::Kind;

constexpr int32_t kDriver = 100;
const std::vector<OwnInterval> kSteps = {{1000, 2000}, {3000, 4000}};

// Ranks 0 and 1 on one node, each with its driver; rank 0 has a thread beside it.
class Taken : public ::testing::Test {
 protected:
  Taken() {
    const auto add = [&](Relation relation, int32_t pid, int32_t parent) {
      evidence::Process process;
      process.relation = relation;
      process.pid = pid;
      process.parent_pid = parent;
      evidence_.processes.push_back(process);
    };
    add(Relation::kRecorded, 100, 1);
    add(Relation::kRecorded, 200, 1);
    add(Relation::kSyncline, 300, 1);
    add(Relation::kDescendant, 400, 100);
    add(Relation::kOther, 77, 1);
    scheduling_.processes.resize(2);
    scheduling_.processes[0].pid = 100;
    scheduling_.processes[1].pid = 200;
    scheduling_.threads = {
        {0, kDriver, kDriver, "python"}, {0, 101, 101, "gloo_tcp_loop"}, {1, 200, 200, "python"}};
    scheduling_.others = {{77, 77, "stress", "stress-ng"},
                          {300, 301, "agent", "syncline-agent"},
                          {400, 400, "pt_data_worker", "python"},
                          {0, 4008, "hidden", ""}};
    ranks_.resize(2);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ranks_[rank].evidence = &evidence_;
      ranks_[rank].evidence_process = rank;
      ranks_[rank].scheduling = &scheduling_;
      ranks_[rank].scheduling_process = rank;
    }
  }
  // Ready from then on for so long; who had the CPU.
  void Wait(int64_t from_ns, int64_t ns, std::vector<evidence::Taker> takers, uint32_t thread = 0) {
    Turn turn{.thread = thread, .until_ns = from_ns + ns + 10, .ran_ns = 10, .ready_ns = ns};
    turn.first_taker = static_cast<uint32_t>(scheduling_.takers.size());
    turn.takers = static_cast<uint32_t>(takers.size());
    scheduling_.takers.insert(scheduling_.takers.end(), takers.begin(), takers.end());
    scheduling_.turns.push_back(turn);
  }
  std::optional<Taker> Find() { return ScheduledTakerOf(ranks_, ranks_[0], kDriver, kSteps); }

  evidence::Evidence evidence_;
  evidence::Scheduling scheduling_;
  std::vector<RankInput> ranks_;
};

Who Other(uint32_t index) { return {Who::Kind::kOther, index}; }
Who Thread(uint32_t index) { return {Who::Kind::kThread, index}; }

TEST_F(Taken, TheKindThatHadTheCpuLongest) {
  Wait(1100, 100, {{Other(0), 100}});
  Wait(3100, 300, {{Other(0), 160}, {Thread(2), 140}});
  const auto taker = Find();
  ASSERT_TRUE(taker.has_value());
  EXPECT_EQ(taker->kind, Kind::kOutside);
  EXPECT_EQ(taker->name, "stress-ng");
  EXPECT_EQ(taker->pid, 77);
  EXPECT_EQ(taker->cpu_ns, 130) << "of two steps";
  EXPECT_TRUE(taker->by_scheduler);
}

TEST_F(Taken, EachKindByItsProcess) {
  const std::vector<std::pair<Who, Kind>> cases = {{Thread(1), Kind::kOwnThread},
                                                   {Thread(2), Kind::kRank},
                                                   {Other(1), Kind::kSyncline},
                                                   {Other(2), Kind::kOwnLoader},
                                                   {{Who::Kind::kIdle, 0}, Kind::kNobody}};
  for (const auto& [who, kind] : cases) {
    scheduling_.turns.clear();
    Wait(1100, 100, {{who, 100}});
    ASSERT_TRUE(Find().has_value());
    EXPECT_EQ(Find()->kind, kind);
  }
  scheduling_.turns.clear();
  Wait(1100, 100, {{Thread(1), 100}});
  EXPECT_TRUE(Find()->transfers);
}

TEST_F(Taken, ProcessesThatBeganMeanwhileAreTheirParents) {
  scheduling_.others = {
      {100, 0, "pt_data_worker", "python3"}, {77, 0, "true", "bash"}, {400, 0, "sh", "python3"}};
  const Kind kinds[] = {Kind::kOwnLoader, Kind::kOutside, Kind::kOwnLoader};
  for (uint32_t i = 0; i < 3; ++i) {
    scheduling_.turns.clear();
    Wait(1100, 100, {{Other(i), 100}});
    ASSERT_TRUE(Find().has_value());
    EXPECT_EQ(Find()->kind, kinds[i]) << i;
  }
  scheduling_.turns.clear();
  Wait(1100, 100, {{Other(1), 100}});
  EXPECT_EQ(Find()->name, "true of bash");
}

TEST_F(Taken, OnlyOfTheJudgedStepsAndTheDriver) {
  Wait(2100, 500, {{Other(0), 500}});  // between the steps
  Wait(1100, 500, {{Other(0), 500}}, /*thread=*/1);
  EXPECT_FALSE(Find().has_value());
  Wait(1900, 200, {{Thread(2), 200}});  // half of it
  ASSERT_TRUE(Find().has_value());
  EXPECT_EQ(Find()->kind, Kind::kRank);
  EXPECT_EQ(Find()->cpu_ns, 50);
}

TEST_F(Taken, NotWhereMostOfItIsNotKnown) {
  Wait(1100, 100, {{Other(3), 100}});
  EXPECT_FALSE(Find().has_value()) << "by whom";
  scheduling_.turns.clear();
  Wait(1100, 100, {{Other(0), 40}});
  EXPECT_FALSE(Find().has_value());
  ranks_[0].scheduling = nullptr;
  Wait(1300, 100, {{Other(0), 100}});
  EXPECT_FALSE(Find().has_value());
}

}  // namespace
}  // namespace syncline::analysis::why
