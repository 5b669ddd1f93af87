// SPDX-License-Identifier: Apache-2.0
// Samples of real threads, real control groups and a real agent's thread, against the truth: what
// the threads know of themselves, and what was done to them.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/evidence/evidence_recorder.h"
#include "agent/evidence/proc_text.h"
#include "agent/evidence/sampler.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;
using evidence::Evidence;

constexpr auto kPeriod = std::chrono::milliseconds(50);

int64_t ClockNs(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void SpinUntil(int64_t monotonic_ns) {
  while (ClockNs(CLOCK_MONOTONIC) < monotonic_ns) {
  }
}

void SleepUntil(int64_t monotonic_ns) {
  const timespec at = {monotonic_ns / 1'000'000'000, monotonic_ns % 1'000'000'000};
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

// A process that did nothing but begin; killed with this one, and when this ends.
class Child {
 public:
  template <class Work>
  explicit Child(Work work) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    ::_exit(0);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    Wait();
  }
  void Wait() {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class RealEvidence : public ::testing::Test {
 protected:
  RealEvidence() {
    std::string pattern = ::testing::TempDir() + "evidence-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    runtime_ = root_ / "run";
    fs::create_directories(runtime_);
    fs::permissions(runtime_, fs::perms::owner_all);
  }
  ~RealEvidence() override { fs::remove_all(root_); }

  // Makes the control block of process `pid`, whose thread `tid` has written events.
  void Record(pid_t pid, pid_t tid = 0) {
    const auto process = ReadProcess("/proc", pid);
    ASSERT_TRUE(process.has_value());
    std::vector<uint8_t> bytes = control_block::MakeBlockBytes();
    auto* block = reinterpret_cast<syncline_block*>(bytes.data());
    block->pid = process->own_pid;
    block->pid_namespace = process->pid_namespace;
    block->start_ticks = process->start_ticks;
    block->uid = ::geteuid();
    auto* slots = reinterpret_cast<syncline_thread_slot*>(block + 1);
    slots[1].tid = tid != 0 ? tid : process->own_pid;
    const control_block::BlockId id = {process->pid_namespace, process->own_pid,
                                       process->start_ticks};
    ASSERT_TRUE(WriteFileAtomically(runtime_ / control_block::NamesFileName(id),
                                    control_block::MakeNamesBytes({}), 0600)
                    .ok());
    ASSERT_TRUE(WriteFileAtomically(runtime_ / control_block::BlockFileName(id),
                                    {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                    0600)
                    .ok());
  }
  RuntimeDirectories Directories() {
    return [this] { return std::vector{std::pair(uint32_t{::geteuid()}, runtime_)}; };
  }
  static Evidence Parsed(const std::string& lines) {
    auto parsed = evidence::ParseEvidence(std::string(evidence::kHead) + "\n" + lines);
    EXPECT_TRUE(parsed.ok());
    return parsed.ok() ? *std::move(parsed) : Evidence();
  }
  Evidence ReadBack() {
    const auto text = ReadFile(root_ / "r1/evidence" / evidence::kFileName);
    EXPECT_TRUE(text.ok());
    auto parsed = evidence::ParseEvidence(text.ok() ? *text : "");
    EXPECT_TRUE(parsed.ok());
    return parsed.ok() ? *std::move(parsed) : Evidence();
  }
  // How far the counters of a thread have grown from its first sample to its last.
  static SchedStat GrowthOf(const Evidence& evidence, pid_t tid) {
    std::optional<evidence::ThreadSample> first, last;
    for (const evidence::ThreadSample& one : evidence.thread_samples) {
      if (evidence.threads[one.thread].tid != tid) continue;
      if (!first.has_value()) first = one;
      last = one;
    }
    EXPECT_TRUE(first.has_value()) << "thread " << tid << " was not sampled";
    if (!first.has_value()) return {};
    return {last->on_cpu_ns - first->on_cpu_ns, last->run_queue_ns - first->run_queue_ns};
  }

  fs::path root_, runtime_;
  SystemClock clock_;
};

int FirstCpu() {
  cpu_set_t allowed;
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) return cpu;
  }
  return 0;
}

void PinTo(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
}

// What a thread knows of itself.
struct Truth {
  int64_t window_ns = 0;
  int64_t on_cpu_ns = 0;
  int64_t asleep_ns = 0;  // until it was to wake up; what comes after is waiting for a processor
};

// Alternates: alone on its core, asleep, and sharing the core with a second busy thread.
Truth Alternate(int cpu) {
  constexpr int64_t kPhaseNs = 100'000'000;
  Truth truth;
  const int64_t cpu_begin_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  const int64_t begin_ns = ClockNs(CLOCK_MONOTONIC);
  for (int i = 0; i < 6; ++i) {
    SpinUntil(ClockNs(CLOCK_MONOTONIC) + kPhaseNs);
    const int64_t now_ns = ClockNs(CLOCK_MONOTONIC);
    SleepUntil(now_ns + kPhaseNs);
    truth.asleep_ns += kPhaseNs;
    std::jthread thief([cpu, until_ns = ClockNs(CLOCK_MONOTONIC) + kPhaseNs] {
      PinTo(cpu);
      SpinUntil(until_ns);
    });
    SpinUntil(ClockNs(CLOCK_MONOTONIC) + kPhaseNs);
    const int64_t joins_ns = ClockNs(CLOCK_MONOTONIC);
    thief.join();
    truth.asleep_ns += ClockNs(CLOCK_MONOTONIC) - joins_ns;
  }
  truth.window_ns = ClockNs(CLOCK_MONOTONIC) - begin_ns;
  truth.on_cpu_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID) - cpu_begin_ns;
  return truth;
}

TEST_F(RealEvidence, RunningSleepingAndWaitingAreRightToTwoPercentOfTheWindow) {
  std::promise<void> go;
  std::promise<pid_t> tid;
  std::promise<Truth> done;
  std::promise<void> end;
  auto finished = done.get_future();
  std::jthread worker([&] {
    const int cpu = FirstCpu();
    PinTo(cpu);
    tid.set_value(::gettid());
    go.get_future().wait();
    done.set_value(Alternate(cpu));
    end.get_future().wait();
  });
  const pid_t worker_tid = tid.get_future().get();
  const auto self = ReadProcess("/proc", ::getpid());
  ASSERT_TRUE(self.has_value());
  ASSERT_EQ(self->own_pid, self->pid) << "needs /proc of its own pid namespace";
  Record(::getpid(), worker_tid);
  Sampler sampler(Directories(), &clock_, {.own_pid = -1});
  sampler.Search();
  sampler.Round();
  go.set_value();
  while (finished.wait_for(kPeriod) == std::future_status::timeout) sampler.Round();
  const Truth truth = finished.get();
  std::this_thread::sleep_for(kPeriod);  // until it waits for `end`
  sampler.Round();
  end.set_value();

  const SchedStat grown = GrowthOf(Parsed(sampler.TakeText()), worker_tid);
  const int64_t waited_ns = truth.window_ns - truth.on_cpu_ns - truth.asleep_ns;
  std::cout << "window " << truth.window_ns / 1000 << " us; on a processor "
            << grown.on_cpu_ns / 1000 << ", in truth " << truth.on_cpu_ns / 1000 << "; waiting "
            << grown.run_queue_ns / 1000 << ", in truth " << waited_ns / 1000 << "\n";
  EXPECT_GT(waited_ns, truth.window_ns / 20) << "the thread has waited in this test";
  EXPECT_NEAR(grown.on_cpu_ns, truth.on_cpu_ns, truth.window_ns / 50);
  EXPECT_NEAR(grown.run_queue_ns, waited_ns, truth.window_ns / 50);
}

// Its parent waits in the kernel until a child that shares its memory ends: as for a disk.
TEST_F(RealEvidence, AProcessThatIsBlockedInTheKernelIsSaidToBe) {
  Child job([] {
    if (::vfork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }
  });
  Record(job.pid());
  Sampler sampler(Directories(), &clock_, {.own_pid = -1});
  sampler.Search();
  const std::string declared = sampler.TakeText();
  sampler.Round();
  Evidence evidence = Parsed(declared + sampler.TakeText());
  ASSERT_EQ(evidence.recorded_samples.size(), 1U);
  const int64_t read_bytes = evidence.recorded_samples[0].read_bytes;
  std::cout << "read from storage " << read_bytes << " bytes; states ";
  EXPECT_GE(read_bytes, ReadFile("/proc/self/io").ok() ? 0 : -1);
  const int64_t patience_ns = ClockNs(CLOCK_MONOTONIC) + 5'000'000'000;
  char state = 0;
  while (state != 'D' && ClockNs(CLOCK_MONOTONIC) < patience_ns) {
    ASSERT_EQ(evidence.thread_samples.size(), 1U);
    state = evidence.thread_samples[0].state;
    std::cout << state;
    ASSERT_TRUE(std::isalpha(static_cast<unsigned char>(state)));
    ASSERT_GE(evidence.thread_samples[0].major_faults, 0);
    sampler.Round();  // it may not have got there yet
    evidence = Parsed(declared + sampler.TakeText());
  }
  std::cout << "\n";
  EXPECT_EQ(state, 'D');
}

// Control groups that are removed again.
class MadeGroups {
 public:
  // Of a controller of v1: outer, and inner below it.
  static std::optional<MadeGroups> Make(std::string_view controller) {
    const auto mounts = ReadFile("/proc/self/mountinfo");
    for (const CgroupMount& mount : ParseMounts(mounts.ok() ? *mounts : "", controller)) {
      if (mount.version != 1 || mount.root != "/") continue;
      MadeGroups made;
      made.outer = fs::path(mount.point) / ("syncline-test-" + std::to_string(::getpid()));
      made.inner = made.outer / "inner";
      std::error_code error;
      if (!fs::create_directory(made.outer, error) || !fs::create_directory(made.inner, error)) {
        return std::nullopt;
      }
      return made;
    }
    return std::nullopt;
  }
  MadeGroups(MadeGroups&& other) noexcept
      : outer(std::exchange(other.outer, {})), inner(std::exchange(other.inner, {})) {}
  ~MadeGroups() {
    for (const fs::path& group : {inner, outer}) {
      // The kernel lets go of an ended process a little later.
      for (int i = 0; i < 100 && !group.empty() && ::rmdir(group.c_str()) != 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }
  fs::path outer;
  fs::path inner;

 private:
  MadeGroups() = default;
};

TEST_F(RealEvidence, TheAncestorThatHasTheQuotaShowsTheThrottling) {
  const std::optional<MadeGroups> groups = MadeGroups::Make("cpu");
  if (!groups.has_value()) GTEST_SKIP() << "needs root, and the cpu controller of cgroup v1";
  std::ofstream(groups->outer / "cpu.cfs_period_us") << 100000;
  std::ofstream(groups->outer / "cpu.cfs_quota_us") << 5000;
  Child child([] { SpinUntil(INT64_MAX); });
  std::ofstream(groups->inner / "cgroup.procs") << child.pid();
  Record(child.pid());
  Sampler sampler(Directories(), &clock_, {});
  sampler.Search();
  sampler.Round();
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(kPeriod);
    sampler.Round();
  }
  const Evidence evidence = Parsed(sampler.TakeText());
  ASSERT_GE(evidence.groups.size(), 2U);
  EXPECT_EQ(evidence.groups[0].path, "/" + groups->outer.filename().string() + "/inner");
  EXPECT_EQ(evidence.groups[1].path, "/" + groups->outer.filename().string());
  std::array<std::vector<evidence::GroupSample>, 2> samples;
  for (const evidence::GroupSample& one : evidence.group_samples) {
    if (one.group < 2) samples[one.group].push_back(one);
  }
  ASSERT_EQ(samples[1].size(), 31U);
  EXPECT_EQ(samples[1].back().quota_ns, 5'000'000);
  EXPECT_EQ(samples[1].back().period_ns, 100'000'000);
  EXPECT_EQ(samples[0].back().quota_ns, -1);
  EXPECT_EQ(samples[0].back().throttled_ns, samples[0].front().throttled_ns);
  const int64_t throttled_ns = samples[1].back().throttled_ns - samples[1].front().throttled_ns;
  const SchedStat grown = GrowthOf(evidence, child.pid());
  std::cout << "throttled " << throttled_ns / 1000 << " us; run queue " << grown.run_queue_ns / 1000
            << " us; on a processor " << grown.on_cpu_ns / 1000 << " us\n";
  EXPECT_GT(throttled_ns, 500'000'000) << "of 1.5 s with a quota of 5 %";
  EXPECT_GE(samples[1].back().throttled_periods - samples[1].front().throttled_periods, 8);
  // Throttled time is booked when the thread runs again: one period may be missing at either end.
  EXPECT_GT(grown.run_queue_ns, throttled_ns - 200'000'000);
}

// Writes a file anew over and over: all of it is cached, and counts as the memory of the group in
// which its writer is then.
void FillTheCache() {
  FILE* const file = std::tmpfile();
  std::vector<char> block(size_t{1} << 20);
  while (file != nullptr) {
    if (::ftruncate(::fileno(file), 0) != 0) return;
    std::rewind(file);
    for (int i = 0; i < 64 && std::fwrite(block.data(), block.size(), 1, file) == 1; ++i) {
    }
    std::fflush(file);
  }
}

TEST_F(RealEvidence, TheAncestorThatHasTheLimitShowsThatItsMemoryWasFull) {
  constexpr int64_t kLimit = 20 << 20;
  const std::optional<MadeGroups> groups = MadeGroups::Make("memory");
  if (!groups.has_value()) GTEST_SKIP() << "needs root, and the memory controller of cgroup v1";
  std::ofstream(groups->outer / "memory.use_hierarchy") << 1;
  std::ofstream(groups->outer / "memory.limit_in_bytes") << kLimit;
  Child child(FillTheCache);
  std::ofstream(groups->inner / "cgroup.procs") << child.pid();
  Record(child.pid());
  Sampler sampler(Directories(), &clock_, {});
  sampler.Search();
  std::string text = sampler.TakeText();
  std::array<std::vector<evidence::MemorySample>, 2> samples;
  const int64_t patience_ns = ClockNs(CLOCK_MONOTONIC) + 20'000'000'000;
  const auto grown = [&] {
    return samples[1].size() < 2 ? 0 : samples[1].back().full - samples[1].front().full;
  };
  while (grown() == 0 && ClockNs(CLOCK_MONOTONIC) < patience_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    sampler.Round();
    text += sampler.TakeText();
    const Evidence evidence = Parsed(text);
    ASSERT_GE(evidence.memory_groups.size(), 2U);
    EXPECT_EQ(evidence.memory_groups[1].path, "/" + groups->outer.filename().string());
    samples = {};
    for (const evidence::MemorySample& one : evidence.memory_samples) {
      if (one.group < 2) samples[one.group].push_back(one);
    }
  }
  EXPECT_GT(grown(), 0);
  std::cout << "full " << grown() << " times\n";
  ASSERT_FALSE(samples[1].empty());
  EXPECT_EQ(samples[1].back().limit_bytes, kLimit);
  EXPECT_EQ(samples[0].back().limit_bytes, -1);
}

// An agent that records `runtime`, until it is killed.
Child Recording(const RuntimeDirectories& directories, const fs::path& directory) {
  return Child([&] {
    SystemClock clock;
    Log log(-1, &clock);
    EvidenceRecorder recorder(directories, &clock, &log);
    recorder.Find({});
    recorder.Begin({.recording_id = "r1", .directory = directory});
    ::pause();
  });
}

TEST_F(RealEvidence, StoppedTheGapIsSaidAndKilledTheFileStaysWhole) {
  Child job([] { SpinUntil(INT64_MAX); });
  Record(job.pid());
  Child agent = Recording(Directories(), root_ / "r1");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(agent.pid(), SIGSTOP);
  const int64_t stopped_ns = ClockNs(CLOCK_MONOTONIC);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  const int64_t goes_on_ns = ClockNs(CLOCK_MONOTONIC);
  ::kill(agent.pid(), SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(agent.pid(), SIGKILL);
  agent.Wait();
  const Evidence evidence = ReadBack();
  EXPECT_FALSE(evidence.ended);
  EXPECT_EQ(evidence.damaged_lines, 0U);
  EXPECT_GE(evidence.thread_samples.size(), 5U);
  const bool said = std::any_of(evidence.gaps.begin(), evidence.gaps.end(), [&](const auto& gap) {
    return gap.begin_ns <= stopped_ns && gap.end_ns >= goes_on_ns;
  });
  EXPECT_TRUE(said);
  ASSERT_FALSE(evidence.thread_samples.empty());
  EXPECT_GT(evidence.thread_samples.back().at_ns, goes_on_ns) << "it goes on afterwards";
}

#ifdef SYNCLINE_MEASURE  // a measurement, not a test: evidence_measure --gtest_filter='*Measure*'
TEST_F(RealEvidence, MeasureWhatTheSamplerTakesOf64Processes) {
  std::vector<Child> job;
  for (int i = 0; i < 64; ++i) {
    job.emplace_back([i] {
      for (int thread = 0; thread < 7; ++thread) {
        std::thread([number = 7 * i + thread] {
          // Not all at once.
          SleepUntil(ClockNs(CLOCK_MONOTONIC) + number * 223'000);
          for (;;) {
            SpinUntil(ClockNs(CLOCK_MONOTONIC) + 100'000);
            SleepUntil(ClockNs(CLOCK_MONOTONIC) + 100'000'000);
          }
        }).detach();
      }
      ::pause();
    });
    Record(job.back().pid());
  }
  Log log(-1, &clock_);
  EvidenceRecorder recorder(Directories(), &clock_, &log);
  const int64_t find_begin_ns = ClockNs(CLOCK_MONOTONIC);
  recorder.Find({});
  const int64_t found_ns = ClockNs(CLOCK_MONOTONIC);
  const int64_t cpu_begin_ns = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
  std::this_thread::sleep_for(std::chrono::seconds(20));
  recorder.End();
  const auto complaints = recorder.Collect();
  const int64_t cpu_ns = ClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin_ns;
  const Evidence evidence = ReadBack();
  const double seconds = static_cast<double>(ClockNs(CLOCK_MONOTONIC) - found_ns) / 1e9;
  std::cout << "Find " << (found_ns - find_begin_ns) / 1000 << " us; then "
            << static_cast<double>(cpu_ns) / 1e7 / seconds << " % of a core; "
            << evidence.processes.size() << " processes, " << evidence.threads.size()
            << " threads, " << evidence.thread_samples.size() << " samples, "
            << fs::file_size(root_ / "r1/evidence" / evidence::kFileName) << " bytes in " << seconds
            << " s; gaps " << evidence.gaps.size() << "; periods";
  for (const auto& rate : evidence.rates) std::cout << " " << rate.period_ns / 1'000'000 << " ms";
  for (const auto& one : complaints) std::cout << "; " << one.what();
  std::cout << "\n";
}
#endif

}  // namespace
}  // namespace syncline::agent
