// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/block_gate.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "agent/node/fake_process.h"
#include "agent/recording/fakes.h"
#include "common/descriptors.h"
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
                               .proc = root_ / "proc",
                               .blocks_max = blocks_max_,
                               .kept_bytes_max = kept_bytes_max_});
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
  static size_t OpenDescriptors() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
  }
  // The gate's thread looks 50 times a second of the real clock.
  static void AwaitCounts(BlockGate* gate, uint32_t processes) {
    for (int i = 0; i < 3000 && gate->Counts().processes != processes; ++i) ::poll(nullptr, 0, 1);
    EXPECT_EQ(gate->Counts().processes, processes);
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
  size_t blocks_max_ = BlockGateOptions().blocks_max;
  uint64_t kept_bytes_max_ = BlockGateOptions().kept_bytes_max;
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
    ASSERT_EQ(gate.Coverage().size(), 1u);
    EXPECT_TRUE(gate.Coverage()[0].became_another_program());
    gate.Arm();
    EXPECT_FALSE(gate.Coverage()[0].became_another_program()) << "in the recording before";
  }
}

// The new program has ended again, and taken its block along; the old one had made no call.
TEST_F(BlockGateTest, AProgramThatCameAndWentInPlaceOfAnIdleOneIsToldOf) {
  AddProcess('S');
  AddBlock([](syncline_block* block) { block->recording_generation = 0; });
  BlockGate gate = MakeGate();
  gate.Open(gate.Arm());
  AddProcess('Z');
  std::filesystem::remove(runtime_ / "4026531836-1234-5678.block");
  ASSERT_EQ(gate.Close().complaints.size(), 1u);
  EXPECT_TRUE(gate.Coverage()[0].became_another_program());
}

TEST_F(BlockGateTest, AProcessThatIsStoppedAsTheRecordingEndsIsNamedAndIsNoLoss) {
  AddProcess('S');
  AddBlock([](syncline_block* block) { block->off_monotonic_ns = 0; });
  BlockGate gate = MakeGate();
  const uint32_t generation = gate.Arm();
  gate.Open(generation);
  const std::string path = runtime_ / "4026531836-1234-5678.block";
  std::string bytes = ReadFile(path).value();
  auto* const block = reinterpret_cast<syncline_block*>(bytes.data());
  block->generation_seen = block->recording_generation = generation;
  std::ofstream(path, std::ios::in | std::ios::out | std::ios::binary) << bytes;
  AddProcess('T');
  const GateMove closed = gate.Close();
  ASSERT_EQ(closed.complaints.size(), 1u);
  EXPECT_EQ(closed.complaints[0].severity(), v1::Complaint::NOTE);
  EXPECT_THAT(closed.complaints[0].what(), testing::HasSubstr("nothing of it is lost"));
  EXPECT_FALSE(gate.Coverage()[0].became_another_program());
}

TEST_F(BlockGateTest, AProcessThatBeganWhileNoAgentWasThereIsToldOf) {
  AddProcess('S');
  AddBlock([](syncline_block* block) { block->recording_generation = 0; });
  BlockGate gate = MakeGate();
  gate.CloseLeftover(3);
  ASSERT_EQ(gate.Coverage().size(), 1u);
  EXPECT_EQ(gate.Coverage()[0].on_monotonic_ns(), 0);
  gate.Forget();
  EXPECT_TRUE(gate.Coverage().empty());
  EXPECT_EQ(gate.Counts().processes, 0u);
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

// A job may fork thousands of workers in one recording.
TEST_F(BlockGateTest, BlocksOfProcessesThatHaveEndedAreCopiedAndClosed) {
  AddProcess('S');
  BlockGate gate = MakeGate();
  gate.KeepEndedIn(root_ / "kept");
  const uint32_t generation = gate.Arm();
  gate.Open(generation);
  const size_t before = OpenDescriptors();
  AddBlock([&](syncline_block* block) {
    block->generation_seen = block->recording_generation = generation;
    block->names_bytes = control_block::MakeNamesBytes({"step", "loss"}).size();
  });
  AwaitCounts(&gate, 1);
  EXPECT_EQ(OpenDescriptors(), before + 2);
  std::fstream block(runtime_ / "4026531836-1234-5678.block",
                     std::ios::in | std::ios::out | std::ios::binary);
  const uint32_t exited = SYNCLINE_STATE_EXITED;
  block.seekp(offsetof(syncline_block, state));
  block.write(reinterpret_cast<const char*>(&exited), sizeof exited).flush();
  block.close();
  std::filesystem::remove_all(root_ / "proc/1234");
  const auto kept = root_ / "kept/4026531836-1234-5678.names";
  clock_.now_ns += 2'000'000'000;
  for (int i = 0; i < 3000 && OpenDescriptors() != before; ++i) ::poll(nullptr, 0, 1);
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_TRUE(std::filesystem::exists(kept));
  std::filesystem::remove(runtime_ / "4026531836-1234-5678.block");
  gate.Close();
  EXPECT_EQ(gate.Counts().events, 7u) << "what it counted is known all the same";
  EXPECT_EQ(gate.Coverage().at(0).events_count(), 7u);
  EXPECT_EQ(gate.Members().at(0).own_pid(), 1234);
  ASSERT_TRUE(gate.CopyBlocks(root_ / "kept").ok());
  EXPECT_EQ(control_block::ParseNames(control_block::Bytes(ReadFile(kept).value()))->Text(2),
            "loss");
}

TEST_F(BlockGateTest, WithoutDescriptorsNobodyIsTakenForDead) {
  AddProcess('S');
  AddBlock();
  BlockGate gate = MakeGate();
  {
    const DescriptorLimit none(0);
    EXPECT_FALSE(ListProcesses(root_ / "proc").ok());
    EXPECT_TRUE(gate.Processes(&complaints_).empty());
    gate.Arm();
  }
  ASSERT_EQ(complaints_.size(), 1u);
  EXPECT_THAT(complaints_[0].fix(), testing::HasSubstr("LimitNOFILE"));
  EXPECT_TRUE(std::filesystem::exists(runtime_ / "4026531836-1234-5678.block"));
  const GateMove closed = gate.Close();
  EXPECT_FALSE(closed.complete) << "there was a process that could not be taken in";
  ASSERT_EQ(closed.complaints.size(), 1u);
  EXPECT_THAT(closed.complaints[0].what(), testing::HasSubstr("may be missing"));
}

TEST_F(BlockGateTest, KeepsNoMoreOfAUserThanItsBudget) {
  AddProcess('S');
  AddBlock([](syncline_block* block) {
    block->names_bytes = control_block::MakeNamesBytes({"step", "loss"}).size();
  });
  kept_bytes_max_ = std::filesystem::file_size(runtime_ / "4026531836-1234-5678.block");
  BlockGate gate = MakeGate();
  gate.Arm();
  const absl::Status copied = gate.CopyBlocks(root_ / "kept");
  EXPECT_TRUE(absl::IsResourceExhausted(copied)) << copied;
  EXPECT_TRUE(std::filesystem::exists(root_ / "kept/4026531836-1234-5678.block"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "kept/4026531836-1234-5678.names"));
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

// An agent of root beside users who mean harm. Other tests need no root, these nobody else.
class HostileUserTest : public BlockGateTest {
 protected:
  static constexpr uint32_t kHostile = 61234;
  static constexpr uint32_t kHonest = 61240;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    std::filesystem::create_directories(root_ / "shm");
    std::filesystem::create_directories(root_ / "canary");
    AddFakeProcess(root_ / "proc", 'S', kHonest);
    Own("syncline-61240", kHonest);
    AddBlockIn("syncline-61240", kHonest);
  }
  std::filesystem::path Shm(const std::string& name) { return root_ / "shm" / name; }
  void Give(const std::string& name, uint32_t uid) {
    EXPECT_EQ(::lchown(Shm(name).c_str(), uid, uid), 0);
  }
  // A runtime directory as its user makes it.
  void Own(const std::string& name, uint32_t uid = kHostile) {
    std::filesystem::create_directory(Shm(name));
    ::chmod(Shm(name).c_str(), 0700);
    Give(name, uid);
  }
  void AddBlockIn(const std::string& name, uint32_t uid, uint32_t said_uid = 0) {
    runtime_.swap(other_);
    runtime_ = Shm(name);
    AddBlock([&](syncline_block* block) { block->uid = said_uid; });
    for (const auto& file : std::filesystem::directory_iterator(runtime_)) {
      EXPECT_EQ(::lchown(file.path().c_str(), uid, uid), 0);
    }
    runtime_.swap(other_);
  }
  std::string Said() {
    std::string said;
    for (const v1::Complaint& complaint : complaints_) said += complaint.what() + "\n";
    return said;
  }
  // That the honest user is recorded, and nothing was touched elsewhere.
  void ExpectTheHonestOneIsRecorded() {
    BlockGate gate = MakeGate();
    ASSERT_EQ(gate.Lock("ann@laptop"), absl::OkStatus());
    complaints_.clear();
    const auto processes = gate.Processes(&complaints_);
    ASSERT_EQ(processes.size(), 1u) << Said();
    EXPECT_EQ(processes[0].uid(), kHonest);
    gate.Arm();
    EXPECT_EQ(gate.Open(9).processes, 1u);
    gate.Close();
    EXPECT_TRUE(std::filesystem::is_empty(root_ / "canary"));
  }
  std::filesystem::path other_;
};

TEST_F(HostileUserTest, WhatIsPlantedInPlaceOfADirectoryIsAComplaint) {
  const std::vector<std::function<void()>> plants = {
      [&] { std::filesystem::create_directory_symlink(root_ / "canary", Shm("syncline-61234")); },
      [&] { std::filesystem::create_symlink(root_ / "nothing", Shm("syncline-61234")); },
      [&] { std::ofstream(Shm("syncline-61234")) << "file"; },
      [&] { ::mkfifo(Shm("syncline-61234").c_str(), 0600); },
  };
  for (const auto& plant : plants) {
    plant();
    Give("syncline-61234", kHostile);
    ExpectTheHonestOneIsRecorded();
    EXPECT_THAT(Said(), testing::HasSubstr("user 61234 are skipped")) << Said();
    EXPECT_FALSE(std::filesystem::exists(root_ / "nothing"));
    std::filesystem::remove(Shm("syncline-61234"));
  }
}

TEST_F(HostileUserTest, WhatIsPlantedInPlaceOfTheLockIsAComplaint) {
  Own("syncline-61234");
  const std::filesystem::path secret = root_ / "canary/secret";
  std::ofstream(secret) << "secret";
  const std::vector<std::function<void(const std::filesystem::path&)>> plants = {
      [&](const auto& lock) { std::filesystem::create_symlink(secret, lock); },
      [&](const auto& lock) { std::filesystem::create_hard_link(secret, lock); },
      [&](const auto& lock) { std::filesystem::create_symlink(root_ / "canary/new", lock); },
      [&](const auto& lock) { ::mkfifo(lock.c_str(), 0600); },
  };
  for (const auto& plant : plants) {
    plant(Shm("syncline-61234/agent.lock"));
    BlockGate gate = MakeGate();
    EXPECT_EQ(gate.Lock("ann@laptop"), absl::OkStatus());
    complaints_.clear();
    EXPECT_EQ(gate.Processes(&complaints_).size(), 1u);
    EXPECT_THAT(Said(), testing::HasSubstr("user 61234 are skipped")) << Said();
    std::filesystem::remove(Shm("syncline-61234/agent.lock"));
    EXPECT_EQ(ReadFile(secret).value(), "secret");
    struct stat info;
    EXPECT_EQ(::stat(secret.c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 0u);
    EXPECT_FALSE(std::filesystem::exists(root_ / "canary/new"));
  }
}

TEST_F(HostileUserTest, ALockThatAUserHoldsIsHisLossOnly) {
  Own("syncline-61234");
  BlockGate theirs(&clock_,
                   {.own_uid = kHostile, .shared_memory = root_ / "shm", .proc = root_ / "proc"});
  ASSERT_EQ(theirs.Lock("mallory"), absl::OkStatus());
  ExpectTheHonestOneIsRecorded();
  EXPECT_THAT(Said(), testing::HasSubstr("being recorded by another agent for mallory"));
}

TEST_F(HostileUserTest, ADirectoryUnderAnothersNameIsAComplaintAboutItsOwner) {
  for (int uid = 70000; uid < 70300; ++uid) {
    Own("syncline-" + std::to_string(uid));
  }
  ExpectTheHonestOneIsRecorded();
  ASSERT_EQ(complaints_.size(), 1u) << Said();
  EXPECT_THAT(Said(), testing::HasSubstr("User 61234 has put 300 entries"));
}

TEST_F(HostileUserTest, ABlockBelongsToWhoeverOwnsTheDirectory) {
  AddBlockIn("syncline-61240", kHonest, /*said_uid=*/5);
  ExpectTheHonestOneIsRecorded();
}

TEST_F(HostileUserTest, ABlockInTheNameOfAnothersProcessIsNotUsed) {
  Own("syncline-61234");
  AddBlockIn("syncline-61234", kHostile);
  ExpectTheHonestOneIsRecorded();
  EXPECT_THAT(Said(), testing::HasSubstr("User 61234 has 1 control blocks in the name of"));
  std::filesystem::remove_all(root_ / "proc/1234");  // it has ended: nobody's word but the first's
  std::filesystem::remove(root_ / "proc/self/ns/pid");
  std::filesystem::create_symlink("pid:[1]", root_ / "proc/self/ns/pid");
  BlockGate gate = MakeGate();
  gate.Arm();
  EXPECT_EQ(gate.Members().size(), 1u);
}

TEST_F(HostileUserTest, TheNumberOfBlocksOfAUserIsBounded) {
  Own("syncline-61234");
  AddBlockIn("syncline-61234", kHostile);
  blocks_max_ = 10;
  for (int i = 0; i < 20; ++i) {
    std::ofstream(Shm("syncline-61234/7-" + std::to_string(i + 1) + "-1.block"));
  }
  ExpectTheHonestOneIsRecorded();
  EXPECT_THAT(Said(), testing::HasSubstr("User 61234 has 21 control blocks"));
}

TEST_F(HostileUserTest, AnOrdinaryUsersAgentSaysThatItsPlaceIsTaken) {
  std::filesystem::create_directory_symlink(root_ / "canary", Shm("syncline-61241"));
  Give("syncline-61241", kHostile);
  BlockGate gate(&clock_,
                 {.own_uid = 61241, .shared_memory = root_ / "shm", .proc = root_ / "proc"});
  const absl::Status refused = gate.Lock("ann@laptop");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("Cannot trust"));
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "canary"));
}

TEST_F(HostileUserTest, RootRecordsOthersThoughItsOwnDirectoryIsTaken) {
  std::filesystem::remove(runtime_);
  std::filesystem::create_directory_symlink(root_ / "canary", runtime_);
  ASSERT_EQ(::lchown(runtime_.c_str(), kHostile, kHostile), 0);
  ExpectTheHonestOneIsRecorded();
  EXPECT_THAT(Said(), testing::HasSubstr("user 0 are skipped"));
}

}  // namespace
}  // namespace syncline::agent
