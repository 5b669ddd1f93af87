// SPDX-License-Identifier: Apache-2.0
#include "export/why/collective_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/why/collective_explain.h"
#include "clocksync/builder.h"

namespace syncline::report {
namespace {

using analysis::CommunicatorReport;
using analysis::CommunicatorsOf;
using analysis::why::CollectiveAnswer;
using analysis::why::CollectiveFinding;
using analysis::why::CollectiveRefusal;
using analysis::why::DeviceVerdict;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMs = 1'000'000;
constexpr uint64_t kAll = 0xA11;

// Ranks of a job in lockstep: in each round every rank computes, and then all meet in the
// communicators that it is told of. Each rank's device has a clock of its own.
class Job {
 public:
  explicit Job(size_t ranks, uint64_t seed) : random_(seed), now_ns_(ranks, 0) {
    for (size_t i = 0; i < ranks; ++i) {
      timeline::NodeResult& node = nodes_.emplace_back();
      node.name = "node" + std::to_string(i);
      node.index = static_cast<uint32_t>(i);
      timeline::ProcessResult& process = node.processes.emplace_back();
      process.key = {.node = static_cast<uint32_t>(i), .pid = 10};
      process.name = "rank " + std::to_string(i);
      process.job = "job";
      process.rank = static_cast<int32_t>(i);
      process.world_size = static_cast<int32_t>(ranks);
      timeline::ProcessCollectives& collectives = node.device_collectives.emplace_back();
      collectives.key = process.key;
      collectives.process = process.name;
      collectives.names = {"AllReduce", "Broadcast", "Send"};
    }
  }

  void Compute(size_t rank, int64_t mean_ns) {
    std::normal_distribution<double> length(static_cast<double>(mean_ns),
                                            static_cast<double>(mean_ns) / 20);
    now_ns_[rank] += std::max<int64_t>(1000, static_cast<int64_t>(length(random_)));
  }
  size_t size() const { return now_ns_.size(); }

  // `together`: so many are put into one launch.
  void Meet(uint64_t id, const std::vector<size_t>& ranks, uint64_t sequence, uint64_t bytes = 64,
            uint64_t together = 1) {
    int64_t last_ns = 0;
    for (const size_t rank : ranks) last_ns = std::max(last_ns, now_ns_[rank]);
    std::uniform_int_distribution<int64_t> skew_ns(0, 15'000);
    for (size_t i = 0; i < ranks.size(); ++i) {
      const int64_t end_ns = last_ns + transfer_ns + skew_ns(random_);
      for (uint64_t k = 0; k < together; ++k) {
        Add(ranks[i], {id, static_cast<uint32_t>(ranks.size()), static_cast<uint32_t>(i)}, 0,
            sequence + k, now_ns_[ranks[i]], end_ns, bytes);
      }
      now_ns_[ranks[i]] = end_ns;
    }
  }
  int64_t transfer_ns = 2 * kMs;
  void MeetAll(uint64_t sequence, uint64_t together = 1) {
    std::vector<size_t> all(size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    Meet(kAll, all, sequence, 64, together);
  }
  void Send(size_t rank) {
    Add(rank, {kAll, static_cast<uint32_t>(size()), static_cast<uint32_t>(rank)}, 2, std::nullopt,
        now_ns_[rank], now_ns_[rank] + 1000, 64);
  }

  std::vector<timeline::NodeResult>& nodes() { return nodes_; }
  timeline::ProcessCollectives& Of(size_t rank) { return nodes_[rank].device_collectives[0]; }

  CollectiveAnswer Explain() { return Explain(static_cast<int32_t>(size())); }
  CollectiveAnswer Explain(int32_t world) {
    for (timeline::NodeResult& node : nodes_) {
      for (timeline::ProcessCollectives& of : node.device_collectives) {
        std::stable_sort(
            of.collectives.begin(), of.collectives.end(),
            [](const auto& a, const auto& b) { return a.communicator < b.communicator; });
      }
    }
    std::vector<std::string> names;
    for (const timeline::NodeResult& node : nodes_) names.push_back(node.name);
    return analysis::why::ExplainCollectives(CommunicatorsOf(nodes_), names, world, false);
  }

 private:
  void Add(size_t rank, const timeline::Communicator& communicator, uint32_t name,
           std::optional<uint64_t> sequence, int64_t begin_ns, int64_t end_ns, uint64_t bytes) {
    timeline::ProcessCollectives& of = Of(rank);
    const auto known = std::find(of.communicators.begin(), of.communicators.end(), communicator);
    timeline::DeviceCollective one;
    one.communicator = static_cast<uint32_t>(known - of.communicators.begin());
    if (known == of.communicators.end()) {
      of.communicators.push_back(communicator);
      of.clocks.push_back({true, 1});
    }
    one.name = name;
    one.sequence = sequence;
    one.bytes = bytes;
    const int64_t apart_ns = static_cast<int64_t>(rank) * 7'777'777'777;
    one.begin_device_ns = begin_ns + apart_ns;
    one.end_device_ns = end_ns + apart_ns;
    one.begin_ns = begin_ns;
    one.begin = TimelineTime{begin_ns};
    of.collectives.push_back(one);
  }

  std::mt19937_64 random_;
  std::vector<int64_t> now_ns_;
  std::vector<timeline::NodeResult> nodes_;
};

std::vector<int32_t> Late(const CollectiveAnswer& answer) {
  std::vector<int32_t> ranks;
  for (const CollectiveFinding& finding : answer.findings) {
    ranks.push_back(answer.ranks[finding.index].rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

TEST(CollectiveExplainTest, HealthyJobsNameNobody) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Job job(2 + seed % 15, seed);
    for (uint64_t round = 0; round < 100; ++round) {
      for (size_t rank = 0; rank < job.size(); ++rank) job.Compute(rank, 10 * kMs);
      job.MeetAll(round);
    }
    EXPECT_EQ(Late(job.Explain()), std::vector<int32_t>()) << seed;
  }
}

TEST(CollectiveExplainTest, TheLateRankIsNamedByHowLongTheOthersWait) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Job job(2 + seed % 15, seed);
    const size_t late = seed % job.size();
    for (uint64_t round = 0; round < 100; ++round) {
      for (size_t rank = 0; rank < job.size(); ++rank) {
        job.Compute(rank, rank == late ? 13 * kMs : 10 * kMs);
      }
      job.MeetAll(round);
    }
    const CollectiveAnswer answer = job.Explain();
    ASSERT_EQ(Late(answer), std::vector<int32_t>{static_cast<int32_t>(late)}) << seed;
    // 3 ms of a round of about 15.5.
    EXPECT_NEAR(static_cast<double>(answer.findings[0].lead.est_ns), 1e9 * 3 / 15.5, 0.04e9);
  }
}

TEST(CollectiveExplainTest, RanksThatTakeTurnsAreNotNamed) {
  Job job(8, 1);
  for (uint64_t round = 0; round < 800; ++round) {
    for (size_t rank = 0; rank < 8; ++rank) job.Compute(rank, 10 * kMs);
    job.Compute(round % 8, 8 * kMs);
    job.MeetAll(round);
  }
  const CollectiveAnswer answer = job.Explain();
  EXPECT_EQ(Late(answer), std::vector<int32_t>());
  EXPECT_GT(answer.rotating_ns, 200 * kMs);
}

// Ranks that wait for it in their own group come late to the next one, and are not to blame.
TEST(CollectiveExplainTest, WhoWaitedBeforeIsNotBlamed) {
  Job job(8, 2);
  for (uint64_t round = 0; round < 200; ++round) {
    for (size_t rank = 0; rank < 8; ++rank) job.Compute(rank, rank == 5 ? 14 * kMs : 10 * kMs);
    for (uint64_t group = 0; group < 4; ++group)
      job.Meet(group + 1, {2 * group, 2 * group + 1}, round);
    job.MeetAll(round);
  }
  EXPECT_EQ(Late(job.Explain()), std::vector<int32_t>{5})
      << CollectiveWhyText(job.Explain(), {100, false});
}

TEST(CollectiveExplainTest, WhatIsNotKnownIsRefusedOrSaid) {
  const auto run = [](Job* job, uint64_t rounds) {
    for (uint64_t round = 0; round < rounds; ++round) {
      for (size_t rank = 0; rank < job->size(); ++rank) job->Compute(rank, 10 * kMs);
      job->MeetAll(round);
    }
  };
  Job pipeline(4, 3);
  run(&pipeline, 50);
  pipeline.Send(2);
  EXPECT_EQ(pipeline.Explain().refusal, CollectiveRefusal::kPeerToPeer);

  Job missing(4, 4);
  run(&missing, 50);
  missing.nodes()[3].device_collectives.clear();
  EXPECT_EQ(missing.Explain().refusal, CollectiveRefusal::kNoCommonCommunicator);

  Job few(4, 5);
  run(&few, 20);
  EXPECT_EQ(few.Explain().verdict, DeviceVerdict::kUndecided);

  // A number that a rank shows twice, one whose sizes differ, one that a rank lacks.
  Job odd(4, 6);
  run(&odd, 100);
  for (size_t i = 20; i < 30; ++i) odd.Of(1).collectives[i].sequence = 50;
  odd.Of(2).collectives[60].bytes = 65;
  const std::vector<CommunicatorReport> reports = CommunicatorsOf(odd.nodes());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].repeated, 1u);
  EXPECT_EQ(reports[0].incomplete, 10u);
  EXPECT_EQ(reports[0].different, 1u);
  EXPECT_EQ(reports[0].waits.size(), 88u);
  const CollectiveAnswer answer = odd.Explain();
  EXPECT_TRUE(answer.incomplete);
  EXPECT_THAT(CollectiveWhyText(answer, {100, false}),
              HasSubstr("12 of 100 collectives are not known on all of their ranks"));

  Job unplaced(2, 7);
  run(&unplaced, 50);
  unplaced.Of(1).clocks[0].placed = false;
  EXPECT_EQ(unplaced.Explain().refusal, CollectiveRefusal::kClockUnknown);

  // Two processes that say they are one rank.
  Job twice(3, 8);
  run(&twice, 50);
  twice.Of(2).communicators[0].rank = 1;
  EXPECT_EQ(twice.Explain().refusal, CollectiveRefusal::kNoCommonCommunicator);
}

// Collectives that are put into one launch wait at the same time.
TEST(CollectiveExplainTest, WhatIsWaitedForAtTheSameTimeCountsOnce) {
  Job job(4, 10);
  for (uint64_t round = 0; round < 100; ++round) {
    for (size_t rank = 0; rank < 4; ++rank)
      job.Compute(rank, rank == 3 ? 10 * kMs + 80'000 : 10 * kMs);
    job.MeetAll(20 * round, 20);
  }
  const CollectiveAnswer answer = job.Explain();
  for (const analysis::why::CollectiveRank& rank : answer.ranks) {
    EXPECT_LE(rank.kernels_ns, 400 * kMs) << "of each second";
    EXPECT_LE(rank.waited_ns, 150 * kMs);
  }
  EXPECT_EQ(Late(answer), std::vector<int32_t>());
}

// Of kernels of 300 ms it is not known whether one that is 25 ms longer waits.
TEST(CollectiveExplainTest, WhatIsSmallAgainstTheKernelsIsUndecided) {
  Job job(4, 11);
  job.transfer_ns = 300 * kMs;
  for (uint64_t round = 0; round < 100; ++round) {
    for (size_t rank = 0; rank < 4; ++rank) job.Compute(rank, rank == 3 ? 125 * kMs : 100 * kMs);
    job.MeetAll(round);
  }
  const CollectiveAnswer answer = job.Explain();
  EXPECT_EQ(answer.verdict, DeviceVerdict::kUndecided);
  EXPECT_THAT(CollectiveWhyText(answer, {100, false}),
              HasSubstr("small against how long the kernels take"));
}

TEST(CollectiveExplainTest, ProcessesOfOtherProgramsAreNotMixedIn) {
  const auto rounds = [](Job* job, uint64_t id) {
    for (uint64_t round = 0; round < 100; ++round) {
      for (size_t rank = 0; rank < 4; ++rank) job->Compute(rank, 10 * kMs);
      job->Meet(id, {0, 1}, round);
      job->Meet(id + 1, {2, 3}, round);
    }
  };
  Job halves(4, 12);
  rounds(&halves, 1);
  for (timeline::NodeResult& node : halves.nodes()) node.processes[0].world_size = -1;
  EXPECT_EQ(halves.Explain(-1).refusal, CollectiveRefusal::kSeveralPrograms);
  // With two devices each.
  Job devices(4, 13);
  for (uint64_t round = 0; round < 100; ++round) devices.MeetAll(round);
  for (const size_t rank : {1, 3}) {
    devices.Of(rank - 1).communicators.push_back(devices.Of(rank).communicators[0]);
    devices.Of(rank - 1).clocks.push_back({true, 1});
    for (timeline::DeviceCollective one : devices.Of(rank).collectives) {
      one.communicator = 1;
      devices.Of(rank - 1).collectives.push_back(one);
    }
    devices.nodes()[rank].device_collectives.clear();
  }
  EXPECT_EQ(devices.Explain().refusal, CollectiveRefusal::kSeveralDevices);
}

TEST(CollectiveExplainTest, WhatContradictsItselfIsNotCounted) {
  Job job(2, 14);
  for (uint64_t round = 0; round < 100; ++round) {
    for (size_t rank = 0; rank < 2; ++rank) job.Compute(rank, 10 * kMs);
    job.MeetAll(round);
  }
  // One rank's stamps are of the collective before.
  for (size_t i = 99; i > 0; --i) {
    auto& all = job.Of(1).collectives;
    const std::optional<uint64_t> sequence = all[i].sequence;
    all[i] = all[i - 1];
    all[i].sequence = sequence;
  }
  EXPECT_GE(CommunicatorsOf(job.nodes())[0].impossible, 98u);
}

TEST(CollectiveExplainTest, ClocksMayBeApartByAsMuchAsTheirModelsAllow) {
  Job job(2, 15);
  for (uint64_t round = 0; round < 100; ++round) {
    for (size_t rank = 0; rank < 2; ++rank) job.Compute(rank, 10 * kMs);
    job.MeetAll(round);
  }
  for (timeline::DeviceCollective& one : job.Of(1).collectives) one.begin.ns += 16 * kMs / 5;
  EXPECT_GE(CommunicatorsOf(job.nodes())[0].impossible, 80u);
  const auto within = [](int64_t bound_ns) {
    clocksync::Edge edge{"node0", "node1", {}};
    for (int64_t at_ns = -1000 * kMs; at_ns <= 4000 * kMs; at_ns += 100 * kMs) {
      edge.samples.push_back({at_ns, at_ns + bound_ns, at_ns + bound_ns, at_ns + 2 * bound_ns});
    }
    auto built = clocksync::BuildModel({.nodes = {"node0", "node1"}, .edges = {edge}},
                                       {.reference = "node0"});
    EXPECT_TRUE(built.ok()) << built.status();
    return std::move(built->model);
  };
  const clocksync::ClockModel wide = within(3 * kMs / 2);
  EXPECT_EQ(CommunicatorsOf(job.nodes(), {.proven = &wide})[0].impossible, 0u);
  const clocksync::ClockModel narrow = within(kMs / 100);
  EXPECT_GE(CommunicatorsOf(job.nodes(), {.proven = &narrow})[0].impossible, 80u);
  // Stamps of the collective before would be found out.
  for (timeline::DeviceCollective& one : job.Of(1).collectives) one.begin.ns += 12 * kMs;
  EXPECT_GE(CommunicatorsOf(job.nodes(), {.proven = &wide})[0].impossible, 99u);
}

TEST(CollectiveExplainTest, TheTextNamesTheRankAndNoCause) {
  Job job(3, 9);
  for (uint64_t round = 0; round < 100; ++round) {
    for (size_t rank = 0; rank < 3; ++rank) job.Compute(rank, rank == 1 ? 15 * kMs : 10 * kMs);
    job.MeetAll(round);
  }
  const std::string text = CollectiveWhyText(job.Explain(), {100, false});
  EXPECT_THAT(text, HasSubstr("LATE"));
  EXPECT_THAT(text, HasSubstr("the ranks wait for rank 1 (node1, pid 10)"));
  EXPECT_THAT(text, HasSubstr("CAUSE"));
  EXPECT_THAT(text, HasSubstr("not known"));
  EXPECT_THAT(text, Not(HasSubstr("UNDECIDED")));
}

}  // namespace
}  // namespace syncline::report
