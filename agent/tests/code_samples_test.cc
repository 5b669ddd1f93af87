// SPDX-License-Identifier: Apache-2.0
// Real threads of a real process, sampled by the real kernel: what they ran, by their own clocks.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "agent/code/code_recorder.h"
#include "agent/code/elf_file.h"
#include "agent/host/process_table.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "evidence/code_samples.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;

volatile uint64_t burnt = 0;

int64_t CpuNs() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

// With names that are in the program's table of symbols.
#define SYNCLINE_BURN(name)                                   \
  extern "C" __attribute__((noinline)) void name() {          \
    uint64_t value = burnt;                                   \
    for (int i = 0; i < 100'000; ++i) value = value * 31 + 7; \
    burnt = value;                                            \
  }
SYNCLINE_BURN(syncline_burn_much)
SYNCLINE_BURN(syncline_burn_little)

namespace {

// Three parts of one function's time, one of the other's, in random turns; what it used is written
// to the pipe at the end.
[[noreturn]] void Burn(int64_t for_ns, int fd) {
  std::map<void (*)(), int64_t> used_ns;
  uint64_t seed = 88172645463325252u;
  const int64_t begin_ns = CpuNs();
  for (int64_t now_ns = begin_ns; now_ns - begin_ns < for_ns;) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    void (*const call)() = seed % 4 == 0 ? syncline_burn_little : syncline_burn_much;
    call();
    const int64_t after_ns = CpuNs();
    used_ns[call] += after_ns - now_ns;
    now_ns = after_ns;
  }
  const int64_t witness[2] = {used_ns[syncline_burn_much], used_ns[syncline_burn_little]};
  [[maybe_unused]] const ssize_t written = ::write(fd, witness, sizeof witness);
  ::pause();
  ::_exit(0);
}

class RealCode : public ::testing::Test {
 protected:
  RealCode() {
    std::string pattern = ::testing::TempDir() + "code-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::permissions(root_, fs::perms::owner_all);
  }
  ~RealCode() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    fs::remove_all(root_);
  }
  void Start(int64_t for_ns) {
    ASSERT_EQ(::pipe(pipe_), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Burn(for_ns, pipe_[1]);
    }
    const auto entry = ReadProcess("/proc", child_);
    ASSERT_TRUE(entry.has_value());
    const fs::path block =
        root_ / (std::to_string(entry->pid_namespace) + "-" + std::to_string(entry->own_pid) + "-" +
                 std::to_string(entry->start_ticks) + ".block");
    const auto bytes = control_block::MakeBlockBytes();
    ASSERT_TRUE(WriteFileAtomically(
                    block, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0600)
                    .ok());
  }

  fs::path root_;
  SystemClock clock_;
  pid_t child_ = 0;
  int pipe_[2] = {-1, -1};
};

TEST_F(RealCode, SharesAreThoseOfTheThreadsOwnClock) {
  Log log(2, &clock_);
  const RuntimeDirectories directories = [this] {
    return std::vector{std::pair(uint32_t{::geteuid()}, root_)};
  };
  CodeRecorder recorder(directories, &clock_, &log, {});
  recorder.Find({});
  Start(3'000'000'000);
  const int64_t begin_ns = clock_.MonotonicNs();
  recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
  int64_t witness[2] = {0, 0};
  ASSERT_EQ(::read(pipe_[0], witness, sizeof witness), static_cast<ssize_t>(sizeof witness));
  recorder.End();
  for (const auto& complaint : recorder.Collect()) ADD_FAILURE() << complaint.what();
  const auto text = ReadFile(root_ / "r1/evidence" / evidence::kCodeFileName);
  ASSERT_TRUE(text.ok());
  const auto code = evidence::ParseCodeSamples(*text);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(code->damaged_lines, 0U);
  EXPECT_TRUE(code->ended);
  ASSERT_FALSE(code->samples.empty());
  // No child has named the frames here: the same file's symbols say it.
  std::map<std::string, uint64_t> found;
  for (const evidence::CodeSample& sample : code->samples) {
    for (const uint32_t number : code->stacks[sample.stack]) {
      const evidence::CodeFrame& frame = code->frames[number];
      const std::string& module = code->modules[frame.module];
      if (!module.starts_with('/')) continue;
      const auto file = ElfFile::Open("", module);
      ASSERT_TRUE(file.ok()) << file.status();
      ++found[(*file)->Functions(std::vector<uint64_t>{frame.offset}).front()];
      break;
    }
  }
  const auto much = static_cast<double>(found["syncline_burn_much"]);
  const auto little = static_cast<double>(found["syncline_burn_little"]);
  const double total_ns = static_cast<double>(witness[0] + witness[1]);
  const double share = static_cast<double>(witness[0]) / total_ns;
  const double samples = much + little;
  ASSERT_GT(samples, 100);
  // Five standard deviations: wrong once in a million runs.
  const double bound = 5 * std::sqrt(share * (1 - share) / samples) + 1 / samples;
  EXPECT_NEAR(much / samples, share, bound) << much << " of " << samples;
  EXPECT_LE(samples, total_ns / static_cast<double>(kCodePeriodNs) * 1.05 + 5);
  EXPECT_GE(samples, 0.7 * total_ns / static_cast<double>(kCodePeriodNs));
  ASSERT_EQ(code->thread_times.size(), 1U);
  // Of a processor, as of the thread where it had one to itself.
  EXPECT_LE(code->cost_ns, (clock_.MonotonicNs() - begin_ns) / 100);
  RecordProperty("cost_us", static_cast<int>(code->cost_ns / 1000));
}

}  // namespace
}  // namespace syncline::agent
