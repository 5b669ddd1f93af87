// SPDX-License-Identifier: Apache-2.0
// A gate on control blocks and a /proc that a test makes.
#ifndef SYNCLINE_AGENT_RECORDING_BLOCK_GATE_FIXTURE_H_
#define SYNCLINE_AGENT_RECORDING_BLOCK_GATE_FIXTURE_H_

#include "agent/recording/block_gate.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "agent/host/fake_process.h"
#include "agent/recording/fakes.h"
#include "common/descriptors.h"
#include "control_block/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {

inline constexpr uint64_t kPidNamespace =
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
  // Of any process, which has seen the recording of this generation.
  void AddBlockOf(const control_block::BlockId& id, uint32_t state, uint32_t generation = 0) {
    std::vector<uint8_t> bytes = control_block::MakeBlockBytes();
    auto* block = reinterpret_cast<syncline_block*>(bytes.data());
    block->uid = ::geteuid();
    block->pid_namespace = id.pid_namespace;
    block->pid = id.pid;
    block->start_ticks = id.start_ticks;
    block->state = state;
    if (generation != 0) block->generation_seen = block->recording_generation = generation;
    const std::filesystem::path names = runtime_ / control_block::NamesFileName(id);
    ASSERT_TRUE(WriteFileAtomically(names, control_block::MakeNamesBytes({}), 0600).ok());
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ASSERT_TRUE(WriteFileAtomically(runtime_ / control_block::BlockFileName(id), text, 0600).ok());
  }
  void Write(const std::string& suffix, const std::string& bytes) {
    EXPECT_TRUE(
        WriteFileAtomically(runtime_ / ("4026531836-1234-5678" + suffix), bytes, 0600).ok());
  }
  // Of blocks and names: the gate's thread has directories open for moments.
  size_t OpenDescriptors() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;  // one that was closed meanwhile
      const std::filesystem::path file = std::filesystem::read_symlink(entry, error);
      if (!error && file.parent_path() == runtime_) ++count;
    }
    return count;
  }
  // The gate's thread looks 50 times a second of the real clock.
  static void AwaitCounts(BlockGate* gate, uint32_t processes) {
    for (int i = 0; i < 3000 && gate->Counts().processes != processes; ++i) ::poll(nullptr, 0, 1);
    EXPECT_EQ(gate->Counts().processes, processes);
  }
  uint32_t WordOnDisk(size_t offset) {
    const std::string bytes = ReadFile(runtime_ / "4026531836-1234-5678.block").value();
    uint32_t word;
    std::memcpy(&word, bytes.data() + offset, 4);
    return word;
  }
  uint32_t GenerationOnDisk() { return WordOnDisk(offsetof(syncline_block, generation)); }

  std::filesystem::path root_;
  std::filesystem::path runtime_;
  FakeClock clock_;
  std::vector<v1::Complaint> complaints_;
  size_t blocks_max_ = BlockGateOptions().blocks_max;
  uint64_t kept_bytes_max_ = BlockGateOptions().kept_bytes_max;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_BLOCK_GATE_FIXTURE_H_
