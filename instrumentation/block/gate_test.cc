// SPDX-License-Identifier: Apache-2.0
// How threads answer the gate while another one does, with a tracer that takes its time.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "control_block/live_block.h"
#include "gtest/gtest.h"

extern "C" {
#include "instrumentation/block/internal.h"
}

namespace {

using syncline::control_block::ListBlocks;
using syncline::control_block::LiveBlock;

// A call of the tracer that does not return while it is held.
class Held {
 public:
  void Hold() { held_ = true, held_.notify_all(); }
  void LetGo() { held_ = false, held_.notify_all(); }
  void Pass() {
    ++calls_;
    calls_.notify_all();
    held_.wait(true);
  }
  void WaitForCall(int number) {
    for (int calls; (calls = calls_) < number;) calls_.wait(calls);
  }
  int calls() const { return calls_; }

 private:
  std::atomic<bool> held_ = false;
  std::atomic<int> calls_ = 0;
};
Held on, off;

int On(uint32_t, uint32_t, int32_t, uint64_t, uint64_t) {
  on.Pass();
  return 1;
}
int Off(uint32_t, uint32_t, uint64_t, uint64_t, uint64_t) {
  off.Pass();
  return 1;
}

// A thread of the program, which makes a call when it is told to.
class Caller {
 public:
  // Whether the thread records afterwards.
  std::future<bool> Call() {
    std::packaged_task<bool()> call([] {
      syncline_thread* thread = syncline_thread_self();
      return *syncline_gate == thread->generation ? thread->session != 0
                                                  : syncline_gate_changed(thread) != 0;
    });
    std::future<bool> result = call.get_future();
    next_.set_value(std::move(call));
    return result;
  }
  Caller() {
    thread_ = std::jthread([this] {
      for (;;) {
        std::packaged_task<bool()> call = next_.get_future().get();
        if (!call.valid()) return;
        next_ = {};
        call();
      }
    });
  }
  ~Caller() { next_.set_value({}); }

 private:
  std::promise<std::packaged_task<bool()>> next_;
  std::jthread thread_;
};

bool ReturnsSoon(std::future<bool>& call) {
  return call.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
}

class GateTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/gate_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    ::setenv("SYNCLINE_RUNTIME_DIR", name, 1);
    ASSERT_EQ(syncline_open(SYNCLINE_SOURCE_ITT), 0);
    static syncline_emit slow = *syncline_process.emit;
    slow.on = On;
    slow.off = Off;
    syncline_process.emit = &slow;
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory_); }

  void SetGate(uint32_t generation) { ASSERT_TRUE(block_.SetGeneration(generation).ok()); }
  uint32_t Seen() { return block_.Read()->gate.generation_seen; }

  static std::filesystem::path directory_;
  LiveBlock block_ =
      *LiveBlock::Open(directory_, ListBlocks(directory_, ::geteuid())->front(), ::geteuid());
};
std::filesystem::path GateTest::directory_;

TEST_F(GateTest, NobodyWaitsForWhoEndsARecording) {
  Caller ends, another;
  SetGate(5);
  EXPECT_TRUE(ends.Call().get());
  EXPECT_TRUE(another.Call().get());
  off.Hold();
  SetGate(0);
  const int before = off.calls();
  auto ending = ends.Call();
  off.WaitForCall(before + 1);
  auto call = another.Call();
  EXPECT_TRUE(ReturnsSoon(call));
  off.LetGo();
  EXPECT_FALSE(call.get());
  EXPECT_FALSE(ending.get());
  EXPECT_EQ(off.calls(), before + 1);
  EXPECT_EQ(Seen(), 0u);
}

TEST_F(GateTest, WhoBeginsARecordingNoticesThatItIsOver) {
  Caller late, begins;
  SetGate(7);
  EXPECT_TRUE(late.Call().get());
  on.Hold();
  SetGate(8);
  const int ons = on.calls(), offs = off.calls();
  auto beginning = begins.Call();
  on.WaitForCall(ons + 1);
  SetGate(0);
  auto call = late.Call();  // and never again
  EXPECT_TRUE(ReturnsSoon(call));
  EXPECT_FALSE(call.get());
  on.LetGo();
  EXPECT_FALSE(beginning.get());
  EXPECT_EQ(Seen(), 0u);
  EXPECT_EQ(off.calls(), offs + 2) << "of both";
}

TEST_F(GateTest, EachRecordingBeginsAndEndsOnce) {
  constexpr uint32_t kFirst = 100, kLast = 400;
  const int ons = on.calls(), offs = off.calls();
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&over] {
      syncline_thread* thread = syncline_thread_self();
      while (!over) {
        if (*syncline_gate != thread->generation) syncline_gate_changed(thread);
        std::this_thread::yield();
      }
    });
  }
  for (uint32_t generation = kFirst; generation < kLast; ++generation) {
    SetGate(generation);
    while (Seen() != generation) std::this_thread::yield();
    SetGate(0);
    while (Seen() != 0) std::this_thread::yield();
  }
  over = true;
  threads.clear();
  EXPECT_EQ(on.calls(), ons + static_cast<int>(kLast - kFirst));
  EXPECT_EQ(off.calls(), offs + static_cast<int>(kLast - kFirst));
}

}  // namespace
