// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/rank_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/host/fake_process.h"
#include "agent/probe/fake_clock.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

constexpr int64_t kS = 1'000'000'000;

// The block of rank 1 of the job "night".
class RankWatchTest : public testing::Test {
 protected:
  RankWatchTest() {
    std::string pattern = testing::TempDir() + "ranks-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    runtime_ = root_ / "runtime";
    EXPECT_TRUE(MakeDirectories(runtime_, 0700).ok());
    EXPECT_TRUE(MakeDirectories(root_ / "proc/self/ns", 0700).ok());
    std::filesystem::create_symlink("pid:[4026531836]", root_ / "proc/self/ns/pid");
    AddFakeProcess(root_ / "proc", 'S', ::geteuid());
    AddBlock();
  }
  ~RankWatchTest() override { std::filesystem::remove_all(root_); }

  void AddBlock(const std::function<void(syncline_block*)>& change = nullptr,
                const control_block::BlockId& id = {4026531836, 1234, 5678}) {
    std::vector<uint8_t> bytes = control_block::MakeBlockBytes();
    auto* block = reinterpret_cast<syncline_block*>(bytes.data());
    block->pid = id.pid;
    block->pid_namespace = id.pid_namespace;
    block->start_ticks = id.start_ticks;
    if (change) change(block);
    // In place: who has opened it sees it.
    const std::filesystem::path path = runtime_ / control_block::BlockFileName(id);
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(file);
    EXPECT_TRUE(WriteFileAtomically(runtime_ / control_block::NamesFileName(id),
                                    control_block::MakeNamesBytes({}), 0600)
                    .ok());
  }
  RankWatch Make(RankWatchOptions options = {}) {
    if (options.proc == "/proc" && !real_proc_) options.proc = root_ / "proc";
    return RankWatch(
        [this] {
          return std::vector<std::pair<uint32_t, std::filesystem::path>>{{::geteuid(), runtime_}};
        },
        &clock_, options);
  }
  void End() const { std::filesystem::remove_all(root_ / "proc/1234"); }

  std::filesystem::path root_;
  std::filesystem::path runtime_;
  FakeClock clock_;
  bool real_proc_ = false;
};

TEST_F(RankWatchTest, ARankThatLivesHasNotEnded) {
  RankWatch watch = Make();
  watch.Tick();
  EXPECT_TRUE(watch.Ended().empty());
}

TEST_F(RankWatchTest, TheBlockOfOneThatWasKilledBeforeAnybodyLooked) {
  End();
  RankWatch watch = Make();
  const auto ended = watch.Ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].process().rank(), 1);
  EXPECT_EQ(ended[0].process().job(), "night");
  EXPECT_EQ(ended[0].process().pid(), 0);
  EXPECT_EQ(ended[0].process().own_pid(), 1234);
  EXPECT_EQ(ended[0].ending(), v1::EndedProcess::ABRUPT);
  EXPECT_EQ(ended[0].alive_monotonic_ns(), 1000);  // the last trace in it
  EXPECT_FALSE(ended[0].status_known());
  EXPECT_EQ(watch.Ended().size(), 1u);
}

TEST_F(RankWatchTest, OneThatEndsUnderWatchIsRememberedWithoutItsBlock) {
  RankWatch watch = Make();
  watch.Tick();
  clock_.now_ns += 10 * kS;
  watch.Tick();
  v1::ProcessStacks answer;
  answer.mutable_process()->set_uid(::geteuid());
  answer.mutable_process()->set_own_pid(1234);
  answer.mutable_process()->set_pid_namespace_inode(4026531836);
  answer.mutable_process()->set_start_ticks(5678);
  answer.add_groups()->set_collective_number(41);
  watch.Remember(answer, clock_.MonotonicNs());
  AddBlock([](syncline_block* block) { block->state = SYNCLINE_STATE_EXITED; });
  End();
  for (const auto& file : std::filesystem::directory_iterator(runtime_)) {
    std::filesystem::remove(file.path());
  }
  clock_.now_ns += kS / 4;
  const auto ended = watch.Ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].ending(), v1::EndedProcess::IN_ORDER);
  EXPECT_EQ(ended[0].process().pid(), 1234);
  EXPECT_NEAR(ended[0].ended_monotonic_ns() - ended[0].alive_monotonic_ns(), kS / 4, kS / 100);
  EXPECT_EQ(ended[0].groups(0).collective_number(), 41);
  EXPECT_LT(ended[0].groups_monotonic_ns(), ended[0].ended_monotonic_ns());
}

TEST_F(RankWatchTest, OneThatIsStillThereIsAtItsEndAndHasNotEnded) {
  RankWatch watch = Make();
  watch.Tick();
  EXPECT_TRUE(watch.Ending().empty());
  AddBlock([](syncline_block* block) { block->state = SYNCLINE_STATE_EXITED; });
  std::filesystem::remove(runtime_ / "4026531836-1234-5678.block");  // by itself
  ASSERT_EQ(watch.Ending().size(), 1u);
  EXPECT_EQ(watch.Ending()[0].pid(), 1234);
  EXPECT_TRUE(watch.Ended().empty());
  End();
  EXPECT_TRUE(watch.Ending().empty());
  EXPECT_EQ(watch.Ended().size(), 1u);
}

TEST_F(RankWatchTest, ABlockThatWasClearedAwaySaysNotHowItEnded) {
  RankWatch watch = Make();
  watch.Tick();
  End();
  std::filesystem::remove(runtime_ / "4026531836-1234-5678.block");
  EXPECT_EQ(watch.Ended().at(0).ending(), v1::EndedProcess::ENDING_UNSPECIFIED);
}

TEST_F(RankWatchTest, LaunchersLoadersAndProgramsWithoutARankAreNone) {
  End();
  AddBlock([](syncline_block* block) { block->rank = -1; });
  RankWatch watch = Make();
  EXPECT_TRUE(watch.Ended().empty());
  const control_block::BlockId second{4026531836, 1235, 5679};
  AddBlock([](syncline_block* block) { std::strcpy(block->command_line, "torchrun train.py"); },
           second);
  EXPECT_TRUE(watch.Ended().empty());
}

// In another pid namespace, which the agent does not see into.
TEST_F(RankWatchTest, WhatCannotBeSeenIsBelievedWhenItSaysThatItEnded) {
  End();
  std::filesystem::remove_all(runtime_);
  EXPECT_TRUE(MakeDirectories(runtime_, 0700).ok());
  AddBlock(nullptr, {1, 77, 5678});
  RankWatch watch = Make();
  EXPECT_TRUE(watch.Ended().empty());
  AddBlock([](syncline_block* block) { block->state = SYNCLINE_STATE_EXITED; }, {1, 78, 5678});
  ASSERT_EQ(watch.Ended().size(), 1u);
  EXPECT_EQ(watch.Ended()[0].ending(), v1::EndedProcess::IN_ORDER);
}

TEST_F(RankWatchTest, ABlockOfAnotherBootIsNoBlock) {
  End();
  EXPECT_TRUE(MakeDirectories(root_ / "proc/sys/kernel/random", 0700).ok());
  EXPECT_TRUE(WriteFileAtomically(root_ / "proc/sys/kernel/random/boot_id", "this\n").ok());
  AddBlock([](syncline_block* block) { std::strcpy(block->boot_id, "that"); });
  EXPECT_TRUE(Make().Ended().empty());
  AddBlock([](syncline_block* block) { std::strcpy(block->boot_id, "this"); });
  EXPECT_EQ(Make().Ended().size(), 1u);
}

TEST_F(RankWatchTest, SoManyAreRememberedAndNoMore) {
  End();
  for (int pid = 1; pid <= 5; ++pid) AddBlock(nullptr, {4026531836, pid, 5678});
  RankWatch watch = Make({.ended_max = 3});
  EXPECT_EQ(watch.Ended().size(), 3u);
  const auto first = watch.Ended().at(0).process().own_pid();
  EXPECT_EQ(watch.Ended().at(0).process().own_pid(), first);
}

// A real child of this test, by the real /proc.
class RealRank : public RankWatchTest {
 protected:
  RealRank() {
    real_proc_ = true;
    std::filesystem::remove_all(runtime_);
    EXPECT_TRUE(MakeDirectories(runtime_, 0700).ok());
  }
  // Waits for its end, and does not ask for its status yet.
  void Run(const std::function<void()>& end, RankWatch* watch) {
    int gate[2];
    ASSERT_EQ(::pipe(gate), 0);
    child_ = ::fork();
    if (child_ == 0) {
      char byte;
      ::close(gate[1]);
      while (::read(gate[0], &byte, 1) > 0) {
      }
      end();
      ::_exit(7);
    }
    ::close(gate[0]);
    std::filesystem::remove_all(runtime_);
    EXPECT_TRUE(MakeDirectories(runtime_, 0700).ok());
    const auto entry = ReadProcess("/proc", child_);
    ASSERT_TRUE(entry.has_value());
    AddBlock(nullptr, {entry->pid_namespace, entry->own_pid, entry->start_ticks});
    EXPECT_TRUE(watch->Ended().empty());
    ::close(gate[1]);
    siginfo_t info;
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT), 0);
  }
  pid_t child_ = 0;
};

TEST_F(RealRank, TheKernelTellsHowItEnded) {
  RankWatch watch = Make();
  Run([] {}, &watch);
  v1::EndedProcess ended = watch.Ended().at(0);
  EXPECT_TRUE(ended.status_known());
  EXPECT_EQ(ended.exit_code(), 7u);
  EXPECT_EQ(ended.ending(), v1::EndedProcess::ABRUPT);
  ::waitpid(child_, nullptr, 0);

  RankWatch another = Make();
  Run([] { ::raise(SIGKILL); }, &another);
  ended = another.Ended().at(0);
  EXPECT_TRUE(ended.status_known());
  EXPECT_EQ(ended.signal_number(), static_cast<uint32_t>(SIGKILL));
  ::waitpid(child_, nullptr, 0);
}

// Its parent has asked already: then it depends on the kernel.
TEST_F(RealRank, OfOneThatIsGoneTheDescriptorTells) {
  RankWatch watch = Make();
  Run([] { ::raise(SIGKILL); }, &watch);
  ::waitpid(child_, nullptr, 0);
  const v1::EndedProcess ended = watch.Ended().at(0);
  EXPECT_EQ(ended.signal_number(), ended.status_known() ? static_cast<uint32_t>(SIGKILL) : 0u);
}

}  // namespace
}  // namespace syncline::agent
