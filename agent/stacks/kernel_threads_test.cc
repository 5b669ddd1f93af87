// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/kernel_threads.h"

#include <filesystem>
#include <string>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class KernelThreadsTest : public testing::Test {
 protected:
  KernelThreadsTest() {
    std::string pattern = testing::TempDir() + "threads-XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
  }
  ~KernelThreadsTest() override { std::filesystem::remove_all(proc_); }

  void Write(int tid, const std::string& file, const std::string& text) {
    const std::filesystem::path directory = proc_ / "12/task" / std::to_string(tid);
    EXPECT_TRUE(MakeDirectories(directory, 0700).ok());
    EXPECT_TRUE(WriteFileAtomically(directory / file, text).ok());
  }

  std::filesystem::path proc_;
};

TEST_F(KernelThreadsTest, TheMainThreadIsFirstAndAllIsRead) {
  Write(9, "comm", "worker\n");
  Write(9, "stat", "9 (work) er)) R 1 1\n");
  Write(9, "syscall", "running\n");
  Write(9, "wchan", "0");
  Write(12, "comm", "python\n");
  Write(12, "stat", "12 (python) S 1 1\n");
  Write(12, "syscall", "202 0x7f 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n");
  Write(12, "wchan", "futex_do_wait");
  Write(12, "stack", "[<0>] futex_do_wait+0x69/0xd0\n[<0>] do_futex+0x1/0x2\n");
  v1::ProcessStacks stacks;
  AddKernelThreads(proc_, 12, &stacks);
  ASSERT_EQ(stacks.kernel_threads_size(), 2);
  const v1::KernelThread& main = stacks.kernel_threads(0);
  EXPECT_EQ(main.tid(), 12);
  EXPECT_EQ(main.name(), "python");
  EXPECT_EQ(main.state(), "S");
  EXPECT_EQ(main.wait_channel(), "futex_do_wait");
  EXPECT_EQ(main.system_call(), "202");
  EXPECT_THAT(main.kernel_stack(), ElementsAre("futex_do_wait", "do_futex"));
  const v1::KernelThread& other = stacks.kernel_threads(1);
  EXPECT_EQ(other.state(), "R");
  EXPECT_EQ(other.wait_channel(), "");
  EXPECT_EQ(other.system_call(), "running");
  EXPECT_THAT(other.kernel_stack(), IsEmpty());
}

TEST_F(KernelThreadsTest, AProcessThatIsGoneHasNoneAndManyAreCut) {
  v1::ProcessStacks gone;
  AddKernelThreads(proc_, 12, &gone);
  EXPECT_EQ(gone.kernel_threads_size(), 0);
  for (int tid = 12; tid < 112; ++tid) Write(tid, "stat", "1 (x) S 1\n");
  v1::ProcessStacks many;
  AddKernelThreads(proc_, 12, &many);
  EXPECT_EQ(many.kernel_threads_size(), 64);
  EXPECT_EQ(many.kernel_threads_left_out_count(), 36u);
}

}  // namespace
}  // namespace syncline::agent
