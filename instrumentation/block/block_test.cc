// SPDX-License-Identifier: Apache-2.0
// The block as a process makes it, read back as the agent reads it. The gate is opened without a
// tracer's session, so that events are counted as lost: no LTTng is needed.
#include "instrumentation/block/block.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/files.h"
#include "control_block/live_block.h"
#include "gtest/gtest.h"

namespace {

using syncline::control_block::BlockFileName;
using syncline::control_block::BlockId;
using syncline::control_block::ListBlocks;
using syncline::control_block::LiveBlock;
using syncline::control_block::NameTable;
using syncline::control_block::ParseNames;

// One block for all tests: a process has one for life.
class BlockTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/block_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    ::setenv("SYNCLINE_RUNTIME_DIR", name, 1);
    ASSERT_EQ(syncline_open(SYNCLINE_SOURCE_ITT), 0);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory_); }

  static LiveBlock Open(pid_t pid = ::getpid()) {
    const auto ids = ListBlocks(directory_, ::geteuid());
    for (const BlockId& id : *ids) {
      if (id.pid == pid) return *LiveBlock::Open(directory_, id, ::geteuid());
    }
    std::abort();
  }
  static NameTable ReadNames(const LiveBlock& block) {
    const std::string bytes = *block.ReadNamesBytes();
    return *ParseNames({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }
  static uint32_t Intern(const std::string& text, uint8_t kind = SYNCLINE_NAME_STRING) {
    return syncline_name_intern(kind, text.data(), text.size());
  }

  static std::filesystem::path directory_;
};
std::filesystem::path BlockTest::directory_;

TEST_F(BlockTest, OneTextOneIdAndKindsAreApart) {
  std::string text = "convolution";
  const uint32_t id = Intern(text);
  ASSERT_NE(id, 0u);
  text[0] = '?';  // it was copied
  EXPECT_EQ(Intern("convolution"), id);
  EXPECT_NE(Intern("convolution", SYNCLINE_NAME_DOMAIN), id);
  EXPECT_STREQ(syncline_name_text(id), "convolution");
  EXPECT_EQ(syncline_name_find(SYNCLINE_NAME_STRING, "nobody's", 8), 0u);
  EXPECT_EQ(ReadNames(Open()).Text(id), "convolution");
}

TEST_F(BlockTest, TextsOfEveryLength) {
  std::vector<uint32_t> ids;
  for (size_t n = 0; n < 100; ++n) ids.push_back(Intern(std::string(n, 'x') + "y"));
  const NameTable names = ReadNames(Open());
  for (size_t n = 0; n < 100; ++n) {
    EXPECT_EQ(Intern(std::string(n, 'x') + "y"), ids[n]);
    EXPECT_EQ(names.Text(ids[n]), std::string(n, 'x') + "y");
  }
  const uint32_t cut = Intern(std::string(70000, 'z'));
  EXPECT_EQ(ReadNames(Open()).Text(cut), std::string(65534, 'z'));
}

TEST_F(BlockTest, ThreadsAgreeAboutIds) {
  constexpr int kNames = 20000;
  std::vector<std::vector<uint32_t>> ids(4, std::vector<uint32_t>(kNames));
  std::vector<std::jthread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kNames; ++i) mine[i] = Intern("shared " + std::to_string(i));
    });
  }
  threads.clear();
  for (const auto& mine : ids) EXPECT_EQ(mine, ids[0]);
  const NameTable names = ReadNames(Open());
  EXPECT_FALSE(names.damaged());
  for (int i = 0; i < kNames; ++i) ASSERT_EQ(names.Text(ids[0][i]), "shared " + std::to_string(i));
}

TEST_F(BlockTest, TheGateIsAnsweredAndThreadsAreNamed) {
  LiveBlock block = Open();
  ASSERT_TRUE(block.SetGeneration(5).ok());
  std::jthread([] {
    syncline_thread* thread = syncline_thread_self();
    EXPECT_NE(*syncline_gate, thread->generation);
    EXPECT_EQ(syncline_gate_changed(thread), 0);  // there is no session
    EXPECT_EQ(*syncline_gate, thread->generation);
    EXPECT_EQ(syncline_gate_ask_again(thread), 0);
    syncline_thread_rename(thread, "loader");
  }).join();
  auto read = *block.Read();
  EXPECT_EQ(read.gate.generation_seen, 5u);
  EXPECT_EQ(read.gate.recording_generation, 5u);
  EXPECT_GT(read.gate.asked_monotonic_ns, 0u);
  EXPECT_EQ(read.gate.on_monotonic_ns, 0u);
  EXPECT_EQ(read.gate.off_monotonic_ns, 0u);
  bool found = false;
  for (const auto& slot : read.threads) found |= slot.name == "loader";
  EXPECT_TRUE(found);
  ASSERT_TRUE(block.SetGeneration(0).ok());
  EXPECT_EQ(syncline_gate_changed(syncline_thread_self()), 0);
  read = *block.Read();
  EXPECT_EQ(read.gate.generation_seen, 0u);
  EXPECT_EQ(read.gate.recording_generation, 5u);
  EXPECT_GE(read.gate.off_monotonic_ns, read.gate.asked_monotonic_ns);
}

TEST_F(BlockTest, AForkedChildHasItsOwnBlockAndTheSameIds) {
  const uint32_t id = Intern("before the fork");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool same = Intern("before the fork") == id;
    const bool made = Intern("after the fork") != 0;
    syncline_gate_changed(syncline_thread_self());
    const char answer = same && made ? 'y' : 'n';
    (void)!::write(ends[1], &answer, 1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ends[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_EQ(syncline_name_find(SYNCLINE_NAME_STRING, "after the fork", 14), 0u);
  const LiveBlock block = Open(child);
  EXPECT_EQ(block.Read()->facts.id.pid, child);
  EXPECT_NE(block.Read()->facts.process_key, Open().Read()->facts.process_key);
  EXPECT_EQ(ReadNames(block).Text(id), "before the fork");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(BlockTest, TicksAreTime) {
  const auto clock_ns = [] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const auto outer_begin_ns = clock_ns();
  const uint64_t begin = syncline_cost_ticks();
  const auto inner_begin_ns = clock_ns();
  while (clock_ns() < inner_begin_ns + 20'000'000) {
  }
  const auto inner_ns = clock_ns() - inner_begin_ns;
  const uint64_t ticks = syncline_cost_ticks() - begin;
  const auto outer_ns = clock_ns() - outer_begin_ns;
  const auto ns = static_cast<int64_t>(syncline_cost_ns(ticks));
  const int64_t slack_ns =
      outer_ns / 1000 + 1000;  // two readings' distance, to the time since then
  EXPECT_GE(ns, inner_ns - slack_ns);
  EXPECT_LE(ns, outer_ns + slack_ns);
  EXPECT_EQ(syncline_cost_ns(uint64_t{0} - 100), 0u) << "another CPU's counter was behind";
}

TEST_F(BlockTest, MoreThreadsThanSlots) {
  const auto before = Open().Read()->threads.size();
  for (int i = 0; i < 1200; ++i) {
    std::jthread([] {
      syncline_thread* thread = syncline_thread_self();
      EXPECT_NE(thread->key, 0u);
      syncline_count(thread, 1);
    }).join();
  }
  const auto read = *Open().Read();
  EXPECT_GT(read.threads.size(), before);
  EXPECT_LE(read.threads.size(), 1024u);
  EXPECT_GE(read.events(), 1200u);  // slots of dead threads count on
}

TEST_F(BlockTest, AFullFileSystemIsAskedRarelyAndAskedAgain) {
  rlimit was;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
  const rlimit full = {1, was.rlim_max};  // nothing can grow
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const std::string filler(60000, 'g');
  int number = 0;
  uint32_t last = 1;
  while (last != 0 && number < 100) last = Intern(std::to_string(number++) + filler);
  EXPECT_EQ(last, 0u);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &was), 0);
  int tries = 0;
  while (last == 0 && tries < 5000) last = Intern(std::to_string(number + ++tries) + filler);
  EXPECT_NE(last, 0u) << "there is room again";
  EXPECT_GT(tries, 100) << "a try costs a millisecond where there is none";
}

TEST_F(BlockTest, AFullTableRefusesAndCounts) {  // the last test: nothing fits afterwards
  const std::string filler(60000, 'f');
  uint32_t last = 1;
  for (int i = 0; last != 0 && i < 2000; ++i) last = Intern(std::to_string(i) + filler);
  EXPECT_EQ(last, 0u);
  const auto read = *Open().Read();
  EXPECT_GT(read.names_refused, 0u);
  EXPECT_LE(read.names_bytes, 64u << 20);
  EXPECT_FALSE(ReadNames(Open()).damaged());
  EXPECT_NE(Intern("convolution"), 0u);  // what was there stays
}

}  // namespace
