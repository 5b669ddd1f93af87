// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "agent/recording/block_gate_fixture.h"

namespace syncline::agent {
namespace {

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
    EXPECT_EQ(gate.Coverage().at(0).ended_monotonic_ns() >= before_ns, fate == Fate::kEnded);
    ASSERT_EQ(closed.complaints.size(), fate == Fate::kReplaced ? 1u : 0u);
    if (fate != Fate::kReplaced) continue;
    EXPECT_THAT(closed.complaints[0].what(), testing::HasSubstr("another program"));
    ASSERT_EQ(gate.Coverage().size(), 1u);
    EXPECT_TRUE(gate.Coverage()[0].became_another_program());
    gate.Arm();
    EXPECT_FALSE(gate.Coverage()[0].became_another_program()) << "in the recording before";
  }
}

TEST_F(BlockGateTest, WhoComesInTheWindowIsToldWhatIsLeftOut) {
  AddProcess('S');
  BlockGate gate = MakeGate();
  gate.LeaveOut({.operators_least_us = 100});
  const uint32_t generation = gate.Arm();
  gate.Open(generation);
  AddBlock();
  AwaitCounts(&gate, 1);
  clock_.now_ns += 2'000'000'000;  // it may register with the tracer first
  for (int i = 0; i < 3000 && GenerationOnDisk() != generation; ++i) ::poll(nullptr, 0, 1);
  EXPECT_EQ(GenerationOnDisk(), generation);
  EXPECT_EQ(WordOnDisk(offsetof(syncline_block, operators_least_us)), 100u);
  gate.Close();
}

TEST_F(BlockGateTest, ProcessesAreToldWhatIsLeftOutBeforeTheyRecord) {
  AddProcess('S');
  AddBlock();
  BlockGate gate = MakeGate();
  const auto told = [this] {
    return std::pair(WordOnDisk(offsetof(syncline_block, operators_least_us)),
                     WordOnDisk(offsetof(syncline_block, left_out)));
  };
  gate.LeaveOut({.operators_least_us = 500, .messages = true});
  EXPECT_EQ(told(), std::pair(0u, 0u));
  const uint32_t generation = gate.Arm();
  EXPECT_EQ(told(), std::pair(500u, SYNCLINE_LEFT_OUT_MESSAGES));
  gate.Open(generation);
  gate.Close();
  EXPECT_EQ(told(), std::pair(0u, 0u)) << "an agent of before would not take it back";
}

// While the recording runs it is looked for them once a second.
TEST_F(BlockGateTest, AProcessThatIsKilledIsKnownToHaveEndedAndWhen) {
  AddProcess('S');
  AddBlock([](syncline_block* block) { block->off_monotonic_ns = 0; });
  BlockGate gate = MakeGate();
  gate.KeepEndedIn(root_ / "kept");
  gate.Open(gate.Arm());
  clock_.now_ns += 2'000'000'000;
  ::poll(nullptr, 0, 100);
  EXPECT_EQ(gate.Coverage().at(0).ended_monotonic_ns(), 0);
  std::filesystem::remove_all(root_ / "proc/1234");
  clock_.now_ns += 2'000'000'000;
  const int64_t killed_ns = clock_.now_ns;
  for (int i = 0; i < 3000 && gate.Coverage().at(0).ended_monotonic_ns() == 0; ++i) {
    ::poll(nullptr, 0, 1);
  }
  const int64_t ended_ns = gate.Coverage().at(0).ended_monotonic_ns();
  EXPECT_GE(ended_ns, killed_ns);
  EXPECT_LT(ended_ns, killed_ns + 1'000'000'000);
  clock_.now_ns += 5'000'000'000;
  gate.Close();
  EXPECT_EQ(gate.Coverage().at(0).ended_monotonic_ns(), ended_ns);
  gate.Arm();
  EXPECT_TRUE(gate.Coverage().empty());
}

// A container's, which an agent outside of it sees, and one inside another container does not.
TEST_F(BlockGateTest, AProcessOfAnotherNamespaceHasEndedIfItWasSeenBefore) {
  std::filesystem::remove(root_ / "proc/self/ns/pid");
  std::filesystem::create_symlink("pid:[4026530001]", root_ / "proc/self/ns/pid");
  for (const bool seen : {true, false}) {
    if (seen) AddProcess('S');
    AddBlock();
    BlockGate gate = MakeGate();
    const uint32_t generation = gate.Arm();
    gate.Open(generation);
    const std::string path = runtime_ / "4026531836-1234-5678.block";
    std::string bytes = ReadFile(path).value();
    auto* const block = reinterpret_cast<syncline_block*>(bytes.data());
    block->generation_seen = block->recording_generation = generation;
    block->off_monotonic_ns = 0;
    std::ofstream(path, std::ios::in | std::ios::out | std::ios::binary) << bytes;
    std::filesystem::remove_all(root_ / "proc/1234");
    gate.Close();
    EXPECT_EQ(gate.Coverage().at(0).ended_monotonic_ns() != 0, seen);
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
  gate.CloseLeftover({.generation = 3});
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
  gate.CloseLeftover({.generation = 3});
  EXPECT_EQ(gate.Counts().events, 7u);  // 8 + 4 in the slots, 5 before
  EXPECT_EQ(gate.Coverage().at(0).on_monotonic_ns(), 1000);
  gate.CloseLeftover({.generation = 9});
  EXPECT_EQ(gate.Counts().processes, 0u);
}

TEST_F(BlockGateTest, ClosesWhatAKilledAgentLeftOpen) {
  AddProcess('S');
  AddBlock([](syncline_block* block) { block->generation = 12; });
  BlockGate gate = MakeGate();
  gate.CloseLeftover({.generation = 11});
  EXPECT_EQ(GenerationOnDisk(), 12u) << "another recording's";
  gate.CloseLeftover({.generation = 12});
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

// Many of them are removed before the start: one after the other they would keep it waiting.
TEST_F(BlockGateTest, ManyDeadProcessesAreClearedAwayAsTheDirectoryIsLocked) {
  AddProcess('S');
  AddBlock();
  const auto files = [&] {
    const std::filesystem::directory_iterator all(runtime_);
    return std::count_if(begin(all), end(all), [](const auto& entry) {
      const std::string name = entry.path().extension();
      return name == ".block" || name == ".names";
    });
  };
  AddBlockOf({kPidNamespace, 77, 5678}, SYNCLINE_STATE_LIVE);
  AddBlockOf({1, 77, 5678}, SYNCLINE_STATE_EXITED);  // where the agent does not see into
  AddBlockOf({1, 78, 5678}, SYNCLINE_STATE_LIVE);
  ASSERT_EQ(files(), 8);
  BlockGate gate = MakeGate();
  ASSERT_TRUE(gate.Lock("ann").ok());
  EXPECT_EQ(files(), 4);
  gate.Arm();
  EXPECT_EQ(gate.Members().size(), 2u);
}

TEST_F(BlockGateTest, SoManyDeadProcessesKeepAStartWaitingAndNoMore) {
  blocks_max_ = 4;
  BlockGate gate = MakeGate();
  ASSERT_TRUE(gate.Lock("ann").ok());
  for (int pid = 1; pid <= 10; ++pid) AddBlockOf({1, pid, 5678}, SYNCLINE_STATE_EXITED);
  gate.Arm();
  EXPECT_EQ(control_block::ListBlocks(runtime_, ::geteuid())->size(), 6u);
  const GateMove closed = gate.Close();
  EXPECT_FALSE(closed.complete);
  EXPECT_EQ(closed.complaints.size(), 1u);
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

// What is left of them in the directory takes nobody's place.
TEST_F(BlockGateTest, MoreProcessesThanAreOpenAtATimeAreTakenOneAfterTheOther) {
  AddProcess('S');
  blocks_max_ = 2;
  BlockGate gate = MakeGate();
  gate.KeepEndedIn(root_ / "kept");
  const uint32_t generation = gate.Arm();
  gate.Open(generation);
  for (int pid = 1; pid <= 6; ++pid) {
    AddBlockOf({kPidNamespace, pid, 5678}, SYNCLINE_STATE_EXITED, generation);
    AwaitCounts(&gate, static_cast<uint32_t>(pid));
    clock_.now_ns += 2'000'000'000;  // it is looked for who has ended
    const auto kept = root_ / "kept" / absl::StrCat("4026531836-", pid, "-5678.names");
    for (int i = 0; i < 3000 && !std::filesystem::exists(kept); ++i) ::poll(nullptr, 0, 1);
    EXPECT_TRUE(std::filesystem::exists(kept));
  }
  AddBlock();  // one that lives, behind all the others
  AwaitCounts(&gate, 7);
  const GateMove closed = gate.Close();
  EXPECT_TRUE(closed.complete);
  EXPECT_EQ(gate.Counts().events, 6 * 7u);
  ASSERT_EQ(gate.Processes(&complaints_).size(), 1u);
  EXPECT_TRUE(complaints_.empty()) << complaints_[0].what();
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

}  // namespace
}  // namespace syncline::agent
