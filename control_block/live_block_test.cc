// SPDX-License-Identifier: Apache-2.0
#include "control_block/live_block.h"

#include <linux/futex.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "control_block/testing.h"
#include "gtest/gtest.h"

namespace syncline::control_block {
namespace {

constexpr BlockId kId{4026531836, 1234, 5678};

class LiveBlockTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/live_block_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    const std::vector<uint8_t> block = MakeBlockBytes();
    const std::string names = MakeNamesBytes({"conv", "matmul"});
    auto* raw = const_cast<syncline_block*>(reinterpret_cast<const syncline_block*>(block.data()));
    raw->names_bytes = names.size();
    Write(BlockFileName(kId), std::string(block.begin(), block.end()));
    Write(NamesFileName(kId), names + std::string(1000, '\0'));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
    ASSERT_EQ(::chmod((directory_ / name).c_str(), 0600), 0);
  }

  std::filesystem::path directory_;
};

TEST_F(LiveBlockTest, ListsAndReads) {
  Write("counters", "1234");
  Write("1-2-3.block.new", "half");
  const auto ids = ListBlocks(directory_, ::geteuid());
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, std::vector<BlockId>{kId});
  const auto block = LiveBlock::Open(directory_, kId, ::geteuid());
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->Read()->facts.role, "worker");
  const auto names = block->ReadNamesBytes();
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(*names, MakeNamesBytes({"conv", "matmul"}));
}

TEST_F(LiveBlockTest, AFileOfAFewPagesDoesNotBecomeMegabytes) {
  std::vector<uint8_t> bytes = MakeBlockBytes();
  reinterpret_cast<syncline_block*>(bytes.data())->names_bytes = uint64_t{1} << 40;
  Write(BlockFileName(kId), std::string(bytes.begin(), bytes.end()));
  std::filesystem::resize_file(directory_ / NamesFileName(kId), 64 << 20);
  const auto block = LiveBlock::Open(directory_, kId, ::geteuid());
  ASSERT_TRUE(block.ok()) << block.status();
  const auto names = block->ReadNamesBytes();
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_LE(names->size(), 1u << 16);
  EXPECT_EQ(ParseNames(Bytes(*names))->size(), 2u);
}

TEST_F(LiveBlockTest, AnAbsentDirectoryHasNoBlocks) {
  const auto ids = ListBlocks(directory_ / "none", ::geteuid());
  ASSERT_TRUE(ids.ok());
  EXPECT_TRUE(ids->empty());
  EXPECT_EQ(LiveBlock::Open(directory_, {1, 2, 3}, ::geteuid()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(LiveBlockTest, AsksForStacksAndLeavesTheGate) {
  auto block = LiveBlock::Open(directory_, kId, ::geteuid());
  ASSERT_TRUE(block.ok());
  const uint32_t generation = block->Read()->gate.generation;
  EXPECT_EQ(block->Read()->gate.stacks_asked, 0u);
  for (const uint32_t number : {1u, 2047u}) {
    ASSERT_TRUE(block->AskForStacks(number).ok());
    EXPECT_EQ(block->Read()->gate.stacks_asked, number);
    EXPECT_EQ(block->Read()->gate.generation, generation);
  }
  EXPECT_FALSE(block->AskForStacks(0).ok());
  EXPECT_FALSE(block->AskForStacks(2048).ok());
  ASSERT_TRUE(block->SetGeneration(5).ok());
  EXPECT_EQ(block->Read()->gate.stacks_asked, 2047u);
  // Its file was cut: an error, no SIGBUS.
  std::filesystem::resize_file(directory_ / BlockFileName(kId), 0);
  EXPECT_FALSE(block->AskForStacks(3).ok());
}

TEST_F(LiveBlockTest, OpensAndClosesTheGate) {
  auto block = LiveBlock::Open(directory_, kId, ::geteuid());
  ASSERT_TRUE(block.ok());
  for (const uint32_t generation : {1u, 2047u, 2048u, 4000000000u, 0u}) {
    ASSERT_TRUE(block->SetGeneration(generation).ok());
    EXPECT_EQ(block->Read()->gate.generation, generation);
  }
  EXPECT_EQ(block->Read()->facts.role, "worker");  // nothing else was touched
}

TEST_F(LiveBlockTest, SurvivesTruncation) {
  auto block = LiveBlock::Open(directory_, kId, ::geteuid());
  ASSERT_TRUE(block.ok());
  ASSERT_TRUE(block->SetGeneration(1).ok());
  std::filesystem::resize_file(directory_ / BlockFileName(kId), 0);
  EXPECT_FALSE(block->Read().ok());
  EXPECT_FALSE(block->SetGeneration(0).ok());  // an error, not SIGBUS
}

TEST_F(LiveBlockTest, TrustsNobodyElse) {
  EXPECT_EQ(ListBlocks(directory_, ::geteuid() + 1).status().code(),
            absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(::chmod((directory_ / NamesFileName(kId)).c_str(), 0644), 0);
  EXPECT_EQ(LiveBlock::Open(directory_, kId, ::geteuid()).status().code(),
            absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(::chmod((directory_ / NamesFileName(kId)).c_str(), 0600), 0);
  std::filesystem::rename(directory_ / BlockFileName(kId), directory_ / "elsewhere");
  std::filesystem::create_symlink("elsewhere", directory_ / BlockFileName(kId));
  EXPECT_EQ(LiveBlock::Open(directory_, kId, ::geteuid()).status().code(),
            absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(ListBlocks(directory_, ::geteuid()).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(LiveBlockTest, ABlockUnderAnotherProcessesNameIsRefused) {
  std::filesystem::rename(directory_ / BlockFileName(kId), directory_ / "1-2-3.block");
  std::filesystem::rename(directory_ / NamesFileName(kId), directory_ / "1-2-3.names");
  EXPECT_EQ(LiveBlock::Open(directory_, {1, 2, 3}, ::geteuid()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LiveBlockTest, RemoveLeavesTheOpenFileReadable) {
  auto block = LiveBlock::Open(directory_, kId, ::geteuid());
  ASSERT_TRUE(block.ok());
  ASSERT_TRUE(block->Remove().ok());
  EXPECT_TRUE(ListBlocks(directory_, ::geteuid())->empty());
  EXPECT_TRUE(block->Read().ok());
}

TEST_F(LiveBlockTest, AStateIsReadWithoutTheRest) {
  const auto directory = OpenRuntimeDirectory(directory_, ::geteuid());
  ASSERT_TRUE(directory.ok());
  const auto state = [&] { return ReadStateIn(directory->get(), kId, ::geteuid()); };
  EXPECT_EQ(state().value(), ProcessState::kLive);
  Write(BlockFileName(kId), std::string(100, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(state().status()));
  Write(BlockFileName(kId), "");
  EXPECT_TRUE(absl::IsInvalidArgument(state().status()));
  ASSERT_TRUE(RemoveFrom(directory->get(), kId).ok());
  EXPECT_TRUE(absl::IsNotFound(state().status()));
  EXPECT_FALSE(std::filesystem::exists(directory_ / NamesFileName(kId)));
}

TEST_F(LiveBlockTest, RemoveTouchesNothingElsewhereWhenTheDirectoryWasExchanged) {
  auto block = LiveBlock::Open(directory_, kId, ::geteuid());
  ASSERT_TRUE(block.ok());
  const std::filesystem::path moved = directory_.string() + ".moved";
  std::filesystem::rename(directory_, moved);
  std::filesystem::create_symlink(moved, directory_);
  EXPECT_TRUE(absl::IsPermissionDenied(block->Remove()));
  EXPECT_FALSE(block->IsReplaced()) << "there is no telling";
  EXPECT_TRUE(std::filesystem::exists(moved / BlockFileName(kId)));
  std::filesystem::remove(directory_);
  EXPECT_TRUE(block->Remove().ok());
  std::filesystem::rename(moved, directory_);
}

TEST(RuntimeDirectoryTest, ConfiguredOrPerUser) {
  EXPECT_EQ(RuntimeDirectory(1001), "/dev/shm/syncline-1001");
  EXPECT_EQ(RuntimeDirectory(1001, "/run/x"), "/run/x");
}

}  // namespace
}  // namespace syncline::control_block
