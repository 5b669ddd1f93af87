// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/process_part.h"

#include <cstring>
#include <string>
#include <vector>

#include "agent/recording/process_info.h"
#include "common/process_part.h"
#include "control_block/testing.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

// A job as /proc and its control blocks show it.
class ProcessPart : public testing::Test {
 protected:
  struct Process {
    int32_t pid;
    int32_t parent_pid;
    std::string name;     // of its first thread
    std::string command;  // of its control block; empty: it has none
    int32_t rank = -1;
    std::string job = "night";
  };

  void Add(const Process& process) {
    ProcessEntry& entry = entries_.emplace_back();
    entry.pid = entry.own_pid = process.pid;
    entry.parent_pid = process.parent_pid;
    entry.name = process.name;
    if (!process.command.empty()) {
      infos_.push_back(DescribeProcess(BlockOf(process), 0, &entries_.back()));
    }
  }
  static control_block::Block BlockOf(const Process& process) {
    control_block::Block block = *control_block::ParseBlock(control_block::MakeBlockBytes());
    block.facts.id.pid = process.pid;
    block.facts.command_line = process.command;
    block.facts.rank = process.rank;
    block.facts.job = process.job;
    block.threads.front().tid = process.pid;
    block.threads.front().name = process.name;
    return block;
  }
  std::vector<std::string> Parts() {
    NameRanksAndChildren(entries_, infos_);
    std::vector<std::string> parts;
    for (const v1::ProcessInfo& info : infos_) parts.push_back(info.part());
    return parts;
  }

  std::vector<ProcessEntry> entries_;
  std::vector<v1::ProcessInfo> infos_;
};

TEST_F(ProcessPart, OfATorchrunJob) {
  Add({6, 1, "torchrun", "/v/bin/python3 /v/bin/torchrun --nproc-per-node 2 train.py"});
  Add({21, 6, "python3", "/v/bin/python3 -u train.py", 0});
  Add({22, 6, "python3", "/v/bin/python3 -u train.py", 1});
  Add({35, 22, "pt_data_worker", "/v/bin/python3 -u train.py", 1});
  Add({36, 21, "pt_data_worker", "/v/bin/python3 -u train.py", 0});
  Add({37, 21, "sh", ""});
  Add({38, 37, "ffmpeg", "ffmpeg -i -", 0});
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartLauncher, kPartRank, kPartRank,
                                               kPartLoaderWorker, kPartLoaderWorker, kPartChild}));
}

// Kubeflow gives the pod's RANK to torchrun, srun its task's SLURM_PROCID: rank 0 is no child of
// it.
TEST_F(ProcessPart, ALauncherHasNoRankOfItsOwn) {
  Add({6, 1, "python3", "python3 -m torch.distributed.run train.py", 0});
  Add({21, 6, "python3", "python3 -u train.py", 0});
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartLauncher, kPartRank}));
  EXPECT_EQ(infos_[0].rank(), -1);
  EXPECT_EQ(infos_[1].rank(), 0);
}

// A job that starts jobs: what is below their launcher are ranks of theirs.
TEST_F(ProcessPart, ALauncherEndsAFamily) {
  Add({5, 1, "python3", "python3 nightly.py", 0});
  Add({6, 5, "python3", "python3 /v/bin/torchrun train.py", 0});
  Add({21, 6, "python3", "python3 -u train.py", 0});
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartRank, kPartLauncher, kPartRank}));
}

TEST_F(ProcessPart, AProgramThatIsCalledParallelIsARank) {
  Add({6, 1, "mpirun", "mpirun ./parallel", -1});
  Add({21, 6, "parallel", "./parallel", 0});
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartLauncher, kPartRank}));
  EXPECT_EQ(infos_[1].rank(), 0);
}

TEST_F(ProcessPart, ParentsOfOtherJobsAndRanksMakeNoChildren) {
  Add({10, 1, "python", "python spawn.py", 0});
  Add({11, 10, "python", "python spawn.py", 1});
  Add({12, 10, "python", "python spawn.py", 0, "other"});
  Add({13, 10, "python", "python tool.py", -1});
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartRank, kPartRank, kPartRank, ""}));
}

TEST_F(ProcessPart, OfAProgramThatCallsTorchrun) {
  Add({6, 1, "pt_elastic", "python start.py", -1});
  Add({21, 6, "python3", "python train.py", 0});
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartLauncher, kPartRank}));
}

// Blocks outlive their processes: the first thread's name is left, parents are not.
TEST_F(ProcessPart, OfProcessesThatAreGone) {
  const Process worker = {36, 21, "pt_data_worker", "python train.py", 0};
  const Process rank = {21, 6, "python3", "python train.py", 0};
  infos_ = {DescribeProcess(BlockOf(worker), 0, nullptr),
            DescribeProcess(BlockOf(rank), 0, nullptr)};
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartLoaderWorker, ""}));
}

// A loader worker that lived for milliseconds was never seen alive, and made no call of which its
// block would name the thread.
TEST_F(ProcessPart, WhoBeganAndEndedBesideItsRankIsAChild) {
  Add({21, 1, "python3", "python train.py", 0});
  infos_[0].set_start_ticks(600);
  for (const uint64_t ticks : {500, 700, 700}) {
    const int32_t rank = infos_.size() == 3 ? 1 : 0;
    infos_.push_back(DescribeProcess(BlockOf({30, 0, "", "python train.py", rank}), 0, nullptr));
    infos_.back().set_start_ticks(ticks);
  }
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartRank, "", kPartChild, ""}))
      << "an earlier start of the rank, a child, and of a rank that is not here";
  for (v1::ProcessInfo& info : infos_) {
    info.clear_part();
    info.clear_job();
  }
  EXPECT_EQ(Parts(), (std::vector<std::string>{kPartRank, "", "", ""}))
      << "may be a rank of another job that has no name either";
}

}  // namespace
}  // namespace syncline::agent
