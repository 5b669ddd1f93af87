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
