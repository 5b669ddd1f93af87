// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

extern "C" {
#include "instrumentation/block/internal.h"
}

namespace {

#ifdef __x86_64__

int said_in_handler = -1;

void OnSignal(int) { said_in_handler = syncline_in_handler(); }

// Where handlers return to; as the kernel has it.
uintptr_t ReturnsTo(int number) {
  struct {
    uintptr_t handler;
    unsigned long flags;
    uintptr_t returns_to;
    uint64_t mask;
  } action = {};
  ::syscall(SYS_rt_sigaction, number, nullptr, &action, sizeof action.mask);
  return action.returns_to;
}

class HandlerTest : public testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_ONSTACK;
    ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  }
  void TearDown() override { ::signal(SIGUSR1, SIG_DFL); }
};

// In a thread that blocks the signal, whose stack was used for calls that left the address there.
void* Blocking(void* result) {
  volatile uintptr_t left_over[64];
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (volatile uintptr_t& word : left_over) word = ReturnsTo(SIGUSR1);
  *static_cast<int*>(result) = syncline_in_handler();
  return left_over[0] != 0 ? nullptr : result;  // they lie there all the time
}

TEST_F(HandlerTest, AThreadThatBlocksSignalsIsInNone) {
  int result = -1;
  pthread_t thread;
  ASSERT_EQ(::pthread_create(&thread, nullptr, Blocking, &result), 0);
  ::pthread_join(thread, nullptr);
  EXPECT_EQ(result, 0);
}

TEST_F(HandlerTest, AHandlerIsOneOnWhateverStack) {
  EXPECT_EQ(syncline_in_handler(), 0);
  errno = 7;
  ::raise(SIGUSR1);
  EXPECT_EQ(said_in_handler, 1);
  EXPECT_EQ(errno, 7);
  static std::array<char, 1 << 16> room;
  stack_t stack = {};
  stack.ss_sp = room.data();
  stack.ss_size = room.size();
  ASSERT_EQ(::sigaltstack(&stack, nullptr), 0);
  said_in_handler = -1;
  ::raise(SIGUSR1);
  EXPECT_EQ(said_in_handler, 1);
  stack.ss_flags = SS_DISABLE;
  ::sigaltstack(&stack, nullptr);
}

#endif

}  // namespace
