// SPDX-License-Identifier: Apache-2.0
// What happens between the handlers that run before a fork and those that run after it.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "control_block/live_block.h"
#include "gtest/gtest.h"

extern "C" {
#include "instrumentation/block/internal.h"
}

namespace {

using syncline::control_block::ListBlocks;
using syncline::control_block::LiveBlock;

// The calls that a tracer gets.
struct Calls {
  int before_fork, after_fork_parent, after_fork_child, begins;
};
Calls older, newer;

template <Calls* calls>
syncline_emit Tracer() {
  syncline_emit tracer = *syncline_process.emit;
  tracer.on = [](uint32_t, uint32_t, int32_t, uint64_t, uint64_t) { return ++calls->begins; };
  tracer.thread_begins = [] { ++calls->begins; };
  tracer.before_fork = [](sigset_t*) { ++calls->before_fork; };
  tracer.after_fork_parent = [](sigset_t*) { ++calls->after_fork_parent; };
  tracer.after_fork_child = [](sigset_t*) { ++calls->after_fork_child; };
  return tracer;
}

std::function<void()> while_forking;  // after the block's own handler

class ForkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/fork_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    ::setenv("SYNCLINE_RUNTIME_DIR", name, 1);
    const auto prepare = [] {
      if (while_forking) while_forking();
    };
    ASSERT_EQ(::pthread_atfork(prepare, nullptr, nullptr), 0);  // what is added first comes last
    ASSERT_EQ(syncline_open(SYNCLINE_SOURCE_ITT), 0);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory_); }
  void TearDown() override { while_forking = nullptr; }

  // What the child returns.
  static int Fork(const std::function<int()>& child) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(child());
    int status = -1;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static void OpenOwnGate() {
    const auto ids = *ListBlocks(directory_, ::geteuid());
    for (const auto& id : ids) {
      if (id.pid != ::getpid()) continue;
      if (!LiveBlock::Open(directory_, id, ::geteuid())->SetGeneration(5).ok()) std::abort();
    }
  }

  static std::filesystem::path directory_;
};
std::filesystem::path ForkTest::directory_;

TEST_F(ForkTest, ATracerThatIsLoadedMeanwhileIsNotToldOfTheFork) {
  static const syncline_emit old_tracer = Tracer<&older>(), new_tracer = Tracer<&newer>();
  syncline_process.emit = &old_tracer;
  while_forking = [] { syncline_process.emit = &new_tracer; };
  const int in_child = Fork([] {
    const bool told = older.after_fork_child == 1 && newer.after_fork_child == 0;
    syncline_thread* thread = syncline_thread_self();
    syncline_gate_changed(thread);  // makes the child's block
    OpenOwnGate();
    const bool records = *syncline_gate != 5 || syncline_gate_changed(thread) != 0;
    const bool called = older.begins + newer.begins != 0;
    return told && !records && !called ? 7 : 8;
  });
  EXPECT_EQ(in_child, 7) << "the new tracer has no threads there";
  EXPECT_EQ(older.before_fork, 1);
  EXPECT_EQ(older.after_fork_parent, 1);
  EXPECT_EQ(newer.before_fork + newer.after_fork_parent + newer.after_fork_child, 0);
  EXPECT_EQ(syncline_process.emit, &new_tracer);
  while_forking = nullptr;
  EXPECT_EQ(Fork([] { return newer.after_fork_child; }), 1) << "the next fork is told";
  EXPECT_EQ(newer.before_fork, 1);
  EXPECT_EQ(newer.after_fork_parent, 1);
}

std::atomic<int> reached;

// As in a handler that interrupted what the fork will wait for.
void* CallFirstInHandler(void*) {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const syncline_thread* thread = syncline_thread_self();
    const bool made = syncline_name_intern(SYNCLINE_NAME_STRING, "in a handler", 12) != 0;
    reached = thread && thread->busy && !made ? 1 : 2;
  };
  ::sigaction(SIGUSR1, &action, nullptr);
  ::raise(SIGUSR1);
  return nullptr;
}

TEST_F(ForkTest, ACallInAHandlerDoesNotWaitForTheFork) {
  pthread_t thread;
  int in_time = 0;
  while_forking = [&thread, &in_time] {
    ASSERT_EQ(::pthread_create(&thread, nullptr, CallFirstInHandler, nullptr), 0);
    for (int tries = 0; reached == 0 && tries < 5000; ++tries) ::usleep(1000);
    in_time = reached;
  };
  EXPECT_EQ(Fork([] { return 0; }), 0);
  while_forking = nullptr;
  ::pthread_join(thread, nullptr);
  EXPECT_EQ(in_time, 1);
}

}  // namespace
