// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/block_gate_fixture.h"

namespace syncline::agent {
namespace {

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
  // Of process `pid` that began at `ticks`, and that nobody sees.
  void AddForgedBlock(const std::string& name, int32_t pid, uint64_t ticks, uint32_t seen = 0,
                      uint32_t owner = kHostile) {
    std::vector<uint8_t> bytes = control_block::MakeBlockBytes();
    auto* block = reinterpret_cast<syncline_block*>(bytes.data());
    block->pid = pid;
    block->start_ticks = ticks;
    block->generation_seen = seen;
    const std::string stem =
        name + "/4026531836-" + std::to_string(pid) + "-" + std::to_string(ticks);
    const auto write = [&](const std::string& suffix, const std::string& text) {
      const std::filesystem::path made = Shm(stem + suffix + ".new");
      EXPECT_TRUE(WriteFileAtomically(made, text, 0600).ok());
      EXPECT_EQ(::lchown(made.c_str(), owner, owner), 0);
      std::filesystem::rename(made, Shm(stem + suffix));
    };
    write(".names", control_block::MakeNamesBytes({"step"}));
    write(".block", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  uint32_t GenerationIn(const std::string& name) {
    const std::string bytes = ReadFile(Shm(name + "/4026531836-1234-5678.block")).value();
    uint32_t generation;
    std::memcpy(&generation, bytes.data() + offsetof(syncline_block, generation), 4);
    return generation;
  }
  // Closes again and again, which changes nothing, until its thread has seen what it is to say.
  static GateMove CloseWhenItSays(BlockGate* gate, const std::string& what) {
    GateMove closed;
    for (int i = 0; i < 300; ++i) {
      closed = gate->Close();
      for (const v1::Complaint& one : closed.complaints) {
        if (one.what().find(what) != std::string::npos) return closed;
      }
      gate->Open(1);
      ::poll(nullptr, 0, 10);
    }
    ADD_FAILURE() << "it never said: " << what;
    return closed;
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

TEST_F(HostileUserTest, NothingOfWhoIsLeftOutIsTouched) {
  Own("syncline-61234");
  AddForgedBlock("syncline-61234", 6, 1);
  BlockGate gate = MakeGate();
  ASSERT_EQ(gate.Lock("ann@laptop"), absl::OkStatus());
  EXPECT_EQ(gate.RuntimeDirectories().size(), 3u);
  BlockGate theirs(&clock_,
                   {.own_uid = kHostile, .shared_memory = root_ / "shm", .proc = root_ / "proc"});
  EXPECT_FALSE(theirs.Lock("their own agent").ok());
  EXPECT_THAT(gate.Restrict({kHostile}), testing::ElementsAre(0, kHonest));
  EXPECT_THAT(gate.RefusedUsers(), testing::ElementsAre(kHostile));
  EXPECT_EQ(gate.RuntimeDirectories().size(), 2u);
  EXPECT_EQ(gate.Processes(&complaints_).size(), 1u);
  EXPECT_EQ(Said(), "") << "said by whoever leaves out";
  EXPECT_EQ(theirs.Lock("their own agent"), absl::OkStatus());
  gate.Arm();
  EXPECT_EQ(gate.Open(9).processes, 1u);
  // Somebody who comes when LTTng has been told whom to record.
  constexpr uint32_t kLate = 61300;
  Own("syncline-61300", kLate);
  AddForgedBlock("syncline-61300", 7, 1, 0, kLate);
  EXPECT_FALSE(CloseWhenItSays(&gate, "Processes of user 61300 are skipped").complete);
  EXPECT_EQ(gate.Counts().processes, 1u);
  gate.Unlock();
  EXPECT_EQ(gate.RuntimeDirectories().size(), 4u);
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
  EXPECT_THAT(Said(), testing::HasSubstr("User 61234 has 20 control blocks"));
}

// Blocks of processes that nobody sees, of which some go as others come.
TEST_F(HostileUserTest, BlocksThatComeAndGoTakeNoMoreDescriptorsThanOthers) {
  Own("syncline-61234");
  std::filesystem::remove(root_ / "proc/self/ns/pid");
  std::filesystem::create_symlink("pid:[1]", root_ / "proc/self/ns/pid");
  blocks_max_ = 3;
  BlockGate gate = MakeGate();
  ASSERT_EQ(gate.Lock("ann@laptop"), absl::OkStatus());
  gate.Open(gate.Arm());
  for (int pid = 1; pid <= 5; ++pid) {
    AddForgedBlock("syncline-61234", pid, 1);
    AwaitCounts(&gate, static_cast<uint32_t>(1 + std::min(pid, 3)));
    // It has gone by the time the next one is looked for; what is open stays open.
    std::filesystem::remove(Shm("syncline-61234/4026531836-" + std::to_string(pid) + "-1.block"));
  }
  AddForgedBlock("syncline-61234", 6, 1);
  const GateMove closed = CloseWhenItSays(&gate, "User 61234 had more control blocks than the 3");
  EXPECT_FALSE(closed.complete);
  EXPECT_EQ(gate.Members().size(), 4u) << "the honest one and three";
}

TEST_F(HostileUserTest, WhoGuessesAProcessBeforeItBeginsDoesNotKeepIt) {
  Own("syncline-61234");
  std::filesystem::remove_all(root_ / "proc/1234");
  std::filesystem::remove_all(Shm("syncline-61240"));
  Own("syncline-61240", kHonest);
  BlockGate gate = MakeGate();
  ASSERT_EQ(gate.Lock("ann@laptop"), absl::OkStatus());
  gate.Open(gate.Arm());
  AddBlockIn("syncline-61234", kHostile);
  AwaitCounts(&gate, 1);
  ASSERT_EQ(gate.Members().at(0).uid(), kHostile) << "nobody is there to whom it belongs";
  AddFakeProcess(root_ / "proc", 'S', kHonest);
  AddBlockIn("syncline-61240", kHonest);
  for (int i = 0; i < 3000 && gate.Members().at(0).uid() != kHonest; ++i) ::poll(nullptr, 0, 1);
  gate.Close();
  ASSERT_EQ(gate.Members().size(), 1u);
  EXPECT_EQ(gate.Members()[0].uid(), kHonest);
}

// Small numbers are every agent's.
TEST_F(HostileUserTest, WhatAKilledAgentLeftIsEndedWithoutTheRecordingOfAnother) {
  BlockGate theirs(&clock_,
                   {.own_uid = kHonest, .shared_memory = root_ / "shm", .proc = root_ / "proc"});
  ASSERT_EQ(theirs.Lock("their own agent"), absl::OkStatus());
  const uint32_t generation = theirs.Arm();
  theirs.Open(generation);
  std::fstream block(Shm("syncline-61240/4026531836-1234-5678.block"),
                     std::ios::in | std::ios::out | std::ios::binary);
  block.seekp(offsetof(syncline_block, recording_generation));
  block.write(reinterpret_cast<const char*>(&generation), sizeof generation).flush();
  BlockGate gate = MakeGate();
  gate.CloseLeftover({.generation = generation});
  EXPECT_EQ(GenerationIn("syncline-61240"), generation);
  EXPECT_TRUE(gate.Members().empty());
  gate.CloseLeftover({.generation = generation, .others = {kHonest}, .agent_lives = true});
  EXPECT_EQ(GenerationIn("syncline-61240"), generation);
  // It hangs, and has the lock: its guard ends what it has.
  gate.CloseLeftover({.generation = generation, .agent_lives = true});
  EXPECT_EQ(GenerationIn("syncline-61240"), 0u);
  theirs.Unlock();
  gate.CloseLeftover({.generation = generation, .others = {kHonest}});
  EXPECT_TRUE(gate.Members().empty());
  gate.CloseLeftover({.generation = generation});
  EXPECT_EQ(gate.Members().size(), 1u);
  EXPECT_FALSE(theirs.Lock("their own agent").ok()) << "not while it is being ended";
  gate.Unlock();
  EXPECT_TRUE(theirs.Lock("their own agent").ok());
}

TEST_F(HostileUserTest, NumbersThatAUserMakesUpAreNotBelieved) {
  Own("syncline-61234");
  std::filesystem::remove(root_ / "proc/self/ns/pid");
  std::filesystem::create_symlink("pid:[1]", root_ / "proc/self/ns/pid");
  for (const uint32_t said : {0xFFFFFFFFu, 0xFFFFFFFEu, 0x7FFFFFFFu}) {
    AddForgedBlock("syncline-61234", 7, 1, said);
    BlockGate gate = MakeGate();
    EXPECT_EQ(gate.Arm(), 4u) << said;  // the honest one was in recording 3
    EXPECT_EQ(gate.Members().size(), 2u);
  }
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
