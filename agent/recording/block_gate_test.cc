// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/block_gate.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agent/node/fake_process.h"
#include "agent/recording/fakes.h"
#include "control_block/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

constexpr uint64_t kPidNamespace =
    4026531836;  // of control_block/testing.h's process 1234, ticks 5678

class BlockGateTest : public testing::Test {
 protected:
  BlockGateTest() {
    std::string pattern = testing::TempDir() + "gate-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    runtime_ = root_ / "runtime";
    std::filesystem::create_directories(root_ / "proc/self/ns");
    std::filesystem::create_symlink("pid:[4026531836]", root_ / "proc/self/ns/pid");
    EXPECT_TRUE(MakeDirectories(runtime_, 0700).ok());
  }
  ~BlockGateTest() override { std::filesystem::remove_all(root_); }

  BlockGate MakeGate() {
    return BlockGate(&clock_, {.own_uid = ::geteuid(),
                               .configured_directory = runtime_,
                               .shared_memory = root_ / "shm",
                               .proc = root_ / "proc"});
  }
  void AddProcess(char state) { AddFakeProcess(root_ / "proc", state, 0); }
  void AddBlock(const std::function<void(syncline_block*)>& change = nullptr) {
    std::vector<uint8_t> bytes = control_block::MakeBlockBytes();
    auto* block = reinterpret_cast<syncline_block*>(bytes.data());
    block->uid = ::geteuid();
    if (change) change(block);
    Write(".block", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    Write(".names", control_block::MakeNamesBytes({"step", "loss"}));
  }
  void Write(const std::string& suffix, const std::string& bytes) {
    EXPECT_TRUE(
        WriteFileAtomically(runtime_ / ("4026531836-1234-5678" + suffix), bytes, 0600).ok());
  }
  uint32_t GenerationOnDisk() {
    const std::string bytes = ReadFile(runtime_ / "4026531836-1234-5678.block").value();
    uint32_t generation;
    std::memcpy(&generation, bytes.data() + offsetof(syncline_block, generation), 4);
    return generation;
  }

  std::filesystem::path root_;
  std::filesystem::path runtime_;
  FakeClock clock_;
  std::vector<v1::Complaint> complaints_;
};

TEST_F(BlockGateTest, DescribesALiveProcess) {
  AddProcess('S');
  AddBlock();
  BlockGate gate = MakeGate();
  const auto processes = gate.Processes(&complaints_);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].pid(), 1234);
  EXPECT_EQ(processes[0].job(), "night");
  EXPECT_EQ(processes[0].rank(), 1);
  EXPECT_THAT(processes[0].sources(), testing::ElementsAre("itt"));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(BlockGateTest, AProcessThatBecameAnotherProgramIsNotTheOneOfTheBlock) {
  AddProcess('S');
  AddBlock();
  const std::filesystem::path maps = root_ / "proc/1234/maps";
  const std::string line = "7f00-7f10 rw-s 00000000 00:19 7 /dev/shm/syncline-0/";
  EXPECT_TRUE(WriteFileAtomically(maps, line + "4026531836-1234-5678.block\n").ok());
  BlockGate gate = MakeGate();
  EXPECT_EQ(gate.Processes(&complaints_).size(), 1u);
  gate.Arm();
  EXPECT_TRUE(std::filesystem::exists(runtime_ / "4026531836-1234-5678.block"));
  // Same pid, same start, nothing of ours in it.
  EXPECT_TRUE(WriteFileAtomically(maps, std::string("7f00-7f10 r-xp 0 00:19 7 /bin/sleep\n")).ok());
  EXPECT_TRUE(gate.Processes(&complaints_).empty());
  gate.Arm();
  EXPECT_FALSE(std::filesystem::exists(runtime_ / "4026531836-1234-5678.block"));
  EXPECT_TRUE(gate.Members().empty());
}

TEST_F(BlockGateTest, AProcessThatEndsOrBecomesAnotherProgramWhileRecordedIsNotWaitedFor) {
  const auto answered = [](uint32_t generation) {
    return [generation](syncline_block* block) {
      block->generation = block->generation_seen = block->recording_generation = generation;
      block->off_monotonic_ns = 0;  // recording still
    };
  };
  enum class Fate { kBusy, kReplaced, kEnded };
  for (const Fate fate : {Fate::kBusy, Fate::kReplaced, Fate::kEnded}) {
    AddProcess('S');
    AddBlock(answered(3));
    BlockGate gate = MakeGate();
    const uint32_t generation = gate.Arm();
    gate.Open(generation);
    const std::string path = runtime_ / "4026531836-1234-5678.block";
    std::string bytes = ReadFile(path).value();
    answered(generation)(reinterpret_cast<syncline_block*>(bytes.data()));
    // As the process itself writes: into the file that there is.
    std::ofstream(path, std::ios::in | std::ios::out | std::ios::binary) << bytes;
    if (fate == Fate::kReplaced) AddBlock();
    if (fate == Fate::kEnded) AddProcess('Z');
    const int64_t before_ns = clock_.MonotonicNs();
    const GateMove closed = gate.Close();
    const int64_t waited_ns = clock_.MonotonicNs() - before_ns;
    EXPECT_EQ(waited_ns >= 100'000'000, fate == Fate::kBusy);
    ASSERT_EQ(closed.complaints.size(), fate == Fate::kReplaced ? 1u : 0u);
    if (fate != Fate::kReplaced) continue;
    EXPECT_THAT(closed.complaints[0].what(), testing::HasSubstr("another program"));
  }
}

TEST_F(BlockGateTest, AProcessThatHasEndedIsGoneThoughItsParentDoesNotAsk) {
  AddBlock();
  AddFakeProcess(root_ / "proc", 'Z', 0, /*threads=*/2);  // only its first thread has ended
  BlockGate gate = MakeGate();
  EXPECT_EQ(gate.Processes(&complaints_).size(), 1u);
  gate.Arm();
  EXPECT_TRUE(std::filesystem::exists(runtime_ / "4026531836-1234-5678.block"));
  AddProcess('Z');
  EXPECT_TRUE(gate.Processes(&complaints_).empty());
  gate.Arm();
  EXPECT_FALSE(std::filesystem::exists(runtime_ / "4026531836-1234-5678.block"));
  EXPECT_TRUE(gate.Members().empty());
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(BlockGateTest, NamesAStoppedProcess) {
  AddProcess('T');
  AddBlock();
  BlockGate gate = MakeGate();
  EXPECT_TRUE(gate.Processes(&complaints_).at(0).stopped());
  ASSERT_EQ(complaints_.size(), 1u);
  EXPECT_EQ(complaints_[0].pid(), 1234);
}

TEST_F(BlockGateTest, AProcessBesideOurNamespaceIsComplainedOf) {
  AddBlock();
  std::filesystem::remove(root_ / "proc/self/ns/pid");
  std::filesystem::create_symlink("pid:[1]", root_ / "proc/self/ns/pid");
  BlockGate gate = MakeGate();
  EXPECT_EQ(gate.Processes(&complaints_).size(), 1u);
  ASSERT_EQ(complaints_.size(), 1u);
  EXPECT_THAT(complaints_[0].fix(), testing::HasSubstr("hostPID"));
}

TEST_F(BlockGateTest, OpensAndClosesWithAGenerationThatNobodyHasSeen) {
  AddProcess('S');
  AddBlock();  // took part in recording 3
  BlockGate gate = MakeGate();
  const uint32_t generation = gate.Arm();
  EXPECT_EQ(generation, 4u);
  EXPECT_EQ(GenerationOnDisk(), 0u);
  const GateMove opened = gate.Open(generation);
  EXPECT_EQ(opened.processes, 1u);
  EXPECT_LE(opened.begin_raw_ns, opened.end_raw_ns);
  EXPECT_EQ(GenerationOnDisk(), 4u);
  EXPECT_EQ(gate.Coverage().at(0).on_monotonic_ns(), 0) << "what recording 3 left is not ours";
  gate.Close();
  EXPECT_EQ(GenerationOnDisk(), 0u);
}

TEST_F(BlockGateTest, CountsOnlyThisRecording) {
  AddProcess('S');
  AddBlock([](syncline_block* block) { block->generation_seen = block->recording_generation = 3; });
  BlockGate gate = MakeGate();
  gate.CloseLeftover(3);
  EXPECT_EQ(gate.Counts().events, 7u);  // 8 + 4 in the slots, 5 before
  EXPECT_EQ(gate.Coverage().at(0).on_monotonic_ns(), 1000);
  gate.CloseLeftover(9);
  EXPECT_EQ(gate.Counts().processes, 0u);
}

TEST_F(BlockGateTest, ClosesWhatAKilledAgentLeftOpen) {
  AddProcess('S');
  AddBlock([](syncline_block* block) { block->generation = 12; });
  BlockGate gate = MakeGate();
  gate.CloseLeftover(11);
  EXPECT_EQ(GenerationOnDisk(), 12u) << "another recording's";
  gate.CloseLeftover(12);
  EXPECT_EQ(GenerationOnDisk(), 0u);
}

TEST_F(BlockGateTest, DeadProcessesAreClearedAway) {
  AddBlock();
  BlockGate gate = MakeGate();
  EXPECT_TRUE(gate.Processes(&complaints_).empty());
  gate.Arm();
  EXPECT_TRUE(gate.Members().empty());
  EXPECT_FALSE(std::filesystem::exists(runtime_ / "4026531836-1234-5678.block"));
  EXPECT_FALSE(std::filesystem::exists(runtime_ / "4026531836-1234-5678.names"));
}

TEST_F(BlockGateTest, KeepsBlocksAndNames) {
  AddProcess('S');
  AddBlock([](syncline_block* block) {
    block->names_bytes = control_block::MakeNamesBytes({"step", "loss"}).size();
  });
  BlockGate gate = MakeGate();
  gate.Arm();
  ASSERT_TRUE(gate.CopyBlocks(root_ / "kept").ok());
  const std::string names = ReadFile(root_ / "kept/4026531836-1234-5678.names").value();
  EXPECT_EQ(control_block::ParseNames(control_block::Bytes(names))->Text(2), "loss");
  EXPECT_TRUE(std::filesystem::exists(root_ / "kept/4026531836-1234-5678.block"));
}

TEST_F(BlockGateTest, OneHolderAtATime) {
  BlockGate first = MakeGate();
  BlockGate second = MakeGate();
  ASSERT_TRUE(first.Lock("ann@laptop").ok());
  EXPECT_THAT(std::string(second.Lock("bob@laptop").message()), testing::HasSubstr("ann@laptop"));
  first.Unlock();
  EXPECT_TRUE(second.Lock("bob@laptop").ok());
}

TEST_F(BlockGateTest, ADirectoryOpenToOthersIsComplainedOf) {
  AddBlock();
  ::chmod(runtime_.c_str(), 0777);
  BlockGate gate = MakeGate();
  EXPECT_TRUE(gate.Processes(&complaints_).empty());
  ASSERT_EQ(complaints_.size(), 1u);
  EXPECT_THAT(complaints_[0].fix(), testing::HasSubstr("0700"));
}

}  // namespace
}  // namespace syncline::agent
