// SPDX-License-Identifier: Apache-2.0
// Real threads under the real scheduler: when they ran, waited and slept, by their own diaries.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "agent/host/process_table.h"
#include "agent/scheduling/scheduling_recorder.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "evidence/scheduling.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kNaps = 200;
constexpr int64_t kNapNs = 2'000'000;
// Between a reading of the clock and the switch lies the way into the kernel and out of it.
constexpr int64_t kToleranceNs = 100'000;

// Of the kernel's counts in /proc/stat.
const int64_t kTickNs = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);

int64_t Now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void Burn(int64_t for_ns) {
  const int64_t end_ns = Now(CLOCK_MONOTONIC) + for_ns;
  while (Now(CLOCK_MONOTONIC) < end_ns) {
  }
}

// Of CPU 0, in whole clock ticks: what a hypervisor gave to others while somebody ran there. It is
// in no thread's processor time, and the scheduler does not see it.
int64_t StolenNs() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word && word != "cpu0") {
  }
  int64_t ticks = 0;
  for (int field = 0; field < 8; ++field) file >> ticks;
  return file ? ticks * kTickNs : 0;
}

// What a thread says of itself.
struct Diary {
  int64_t before_ns[kNaps];  // it was about to sleep
  int64_t after_ns[kNaps];   // it had slept
  int64_t napper_cpu_ns;     // of both threads: processor time from the first to the last nap
  int64_t burner_cpu_ns;
  int64_t stolen_ns;  // meanwhile by the hypervisor, of their CPU: at most
  int64_t begin_ns;
  int64_t end_ns;
};

// Two threads on one CPU: one works 1 ms and sleeps 2, the other one never sleeps.
[[noreturn]] void Work(Diary* diary, int go, int done) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  ::sched_setaffinity(0, sizeof cpus, &cpus);
  std::atomic<bool> ended{false};
  std::atomic<bool> begun{false};
  int64_t burner_cpu_ns = 0;
  std::thread burner([&] {
    ::prctl(PR_SET_NAME, "burner");
    while (!begun) ::usleep(1000);
    const int64_t cpu_ns = Now(CLOCK_THREAD_CPUTIME_ID);
    while (!ended) Burn(100'000);
    burner_cpu_ns = Now(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  });
  char byte = 0;
  [[maybe_unused]] const ssize_t got = ::read(go, &byte, 1);
  begun = true;
  const int64_t stolen_ns = StolenNs();
  diary->begin_ns = Now(CLOCK_MONOTONIC);
  const int64_t cpu_ns = Now(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kNaps; ++i) {
    Burn(1'000'000);
    const timespec nap{0, kNapNs};
    diary->before_ns[i] = Now(CLOCK_MONOTONIC);
    ::nanosleep(&nap, nullptr);
    diary->after_ns[i] = Now(CLOCK_MONOTONIC);
  }
  diary->napper_cpu_ns = Now(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  diary->end_ns = Now(CLOCK_MONOTONIC);
  // Where a hypervisor steals at all, up to a tick more than whole ones.
  const int64_t stolen_at_end_ns = StolenNs();
  diary->stolen_ns = stolen_at_end_ns == 0 ? 0 : stolen_at_end_ns - stolen_ns + kTickNs;
  ended = true;
  burner.join();
  diary->burner_cpu_ns = burner_cpu_ns;
  [[maybe_unused]] const ssize_t said = ::write(done, diary, sizeof *diary);
  ::pause();
  ::_exit(0);
}

class RealScheduler : public ::testing::Test {
 protected:
  RealScheduler() {
    std::string pattern = ::testing::TempDir() + "scheduling-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::permissions(root_, fs::perms::owner_all);
    fs::create_directory(root_ / "tracefs");
    mounted_ = ::mount("nodev", (root_ / "tracefs").c_str(), "tracefs", 0, nullptr) == 0;
  }
  ~RealScheduler() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    if (mounted_) ::umount2((root_ / "tracefs").c_str(), MNT_DETACH);
    fs::remove_all(root_);
  }
  void Start() {
    ASSERT_EQ(::pipe(go_), 0);
    ASSERT_EQ(::pipe(done_), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Diary diary{};
      Work(&diary, go_[0], done_[1]);
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
    while (ListThreads("/proc", child_).size() < 2) std::this_thread::yield();
  }
  // The recording of a child's work, and what it says itself.
  void Record(evidence::Scheduling* scheduling, Diary* diary) {
    Log log(2, &clock_);
    SchedulingOptions options;
    options.sampler.events.tracefs = {root_ / "tracefs"};
    SchedulingRecorder recorder(
        [this] { return std::vector{std::pair(uint32_t{::geteuid()}, root_)}; }, &clock_, &log,
        options);
    recorder.Find({});
    Start();
    const int64_t begin_ns = clock_.MonotonicNs();
    recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
    const fs::path file = root_ / "r1/evidence" / evidence::kSchedulingFileName;
    ::usleep(200'000);  // so that it is certainly watched before the work begins
    ASSERT_EQ(::write(go_[1], "x", 1), 1);
    ASSERT_EQ(::read(done_[0], diary, sizeof *diary), static_cast<ssize_t>(sizeof *diary));
    recorder.End();
    for (const auto& complaint : recorder.Collect()) ADD_FAILURE() << complaint.what();
    const auto text = ReadFile(file);
    ASSERT_TRUE(text.ok());
    auto parsed = evidence::ParseScheduling(*text);
    ASSERT_TRUE(parsed.ok());
    *scheduling = *std::move(parsed);
    EXPECT_EQ(scheduling->damaged_lines, 0U);
    EXPECT_TRUE(scheduling->ended);
    EXPECT_LE(scheduling->cost_ns, (clock_.MonotonicNs() - begin_ns) / 20);
    RecordProperty("cost_us", static_cast<int>(scheduling->cost_ns / 1000));
  }

  fs::path root_;
  bool mounted_ = false;
  SystemClock clock_;
  pid_t child_ = 0;
  int go_[2] = {-1, -1};
  int done_[2] = {-1, -1};
};

int64_t Overlap(int64_t from_ns, int64_t until_ns, const Diary& diary) {
  return std::max<int64_t>(0, std::min(until_ns, diary.end_ns) - std::max(from_ns, diary.begin_ns));
}

// Between which of its turns something is left open.
void PrintOpen(const evidence::Scheduling& all, uint32_t thread, const Diary& diary) {
  int64_t known_ns = diary.begin_ns;
  for (const evidence::Turn& turn : all.turns) {
    if (turn.thread != thread || turn.until_ns < diary.begin_ns) continue;
    if (turn.from_ns() > known_ns + 1000) {
      std::cout << "  from " << known_ns - diary.begin_ns << " to "
                << turn.from_ns() - diary.begin_ns << "\n";
    }
    known_ns = turn.until_ns;
  }
  if (known_ns < diary.end_ns) std::cout << "  from " << known_ns - diary.begin_ns << " on\n";
  for (const std::string& note : all.notes) std::cout << "  " << note << "\n";
}

// Nothing is left open, unless the recording itself says that a switch was not reported: then the
// turn around it, and no more than that. Of what is left open nothing is claimed. Interrupts are
// the kernel's, not the threads', in both counts of processor time; ticks are booked alike.
void ExpectKnown(const evidence::Scheduling& all, uint32_t thread, const Diary& diary,
                 int64_t cpu_ns, int64_t ran_ns, int64_t covered_ns) {
  const int64_t all_ns = diary.end_ns - diary.begin_ns;
  const int64_t open_ns = all_ns - covered_ns;
  const int64_t near_ns = std::max<int64_t>(cpu_ns / 100, 2'000'000);
  EXPECT_GE(open_ns, -1000) << all.threads[thread].name;
  EXPECT_LE(open_ns, all.notes.empty() ? 1000 : all_ns / 50) << all.threads[thread].name;
  EXPECT_LE(ran_ns, cpu_ns + near_ns + diary.stolen_ns) << all.threads[thread].name;
  EXPECT_GE(ran_ns, cpu_ns - open_ns - near_ns) << all.threads[thread].name;
  if (open_ns <= 1000) return;
  std::cout << all.threads[thread].name << " left open: " << open_ns << " ns of " << all_ns << "\n";
  PrintOpen(all, thread, diary);
}

TEST_F(RealScheduler, TurnsAreThoseOfTheThreadsOwnDiaries) {
  if (!mounted_) GTEST_SKIP() << "tracefs cannot be mounted here";
  evidence::Scheduling all;
  Diary diary{};
  Record(&all, &diary);
  ASSERT_FALSE(HasFailure());
  ASSERT_EQ(all.threads.size(), 2U);
  EXPECT_TRUE(all.losses.empty());
  const auto burner = static_cast<uint32_t>(all.threads[1].name == "burner" ? 1 : 0);
  const uint32_t napper = 1 - burner;
  int64_t ran_ns[2] = {0, 0};
  int64_t covered_ns[2] = {0, 0};
  int64_t ready_ns = 0;
  int64_t burner_had_ns = 0;
  int64_t ran_meanwhile_ns = 0;  // the burner
  for (const evidence::Turn& turn : all.turns) {
    ran_ns[turn.thread] += Overlap(turn.run_from_ns(), turn.until_ns, diary);
    covered_ns[turn.thread] += Overlap(turn.from_ns(), turn.until_ns, diary);
    if (turn.thread != napper || turn.from_ns() < diary.begin_ns) continue;
    ready_ns += turn.ready_ns;
    for (const evidence::Turn& other : all.turns) {
      if (other.thread != burner) continue;
      ran_meanwhile_ns +=
          std::max<int64_t>(0, std::min(other.until_ns, turn.run_from_ns()) -
                                   std::max(other.run_from_ns(), turn.ready_from_ns()));
    }
    for (uint32_t i = 0; i < turn.takers; ++i) {
      const evidence::Taker& taker = all.takers[turn.first_taker + i];
      if (taker.who == evidence::Who{evidence::Who::Kind::kThread, burner}) {
        burner_had_ns += taker.ns;
      }
    }
  }
  ExpectKnown(all, napper, diary, diary.napper_cpu_ns, ran_ns[napper], covered_ns[napper]);
  ExpectKnown(all, burner, diary, diary.burner_cpu_ns, ran_ns[burner], covered_ns[burner]);
  // One CPU: what the burner ran while the napper waited, it had of the napper's.
  EXPECT_GT(ready_ns, 10'000'000);
  EXPECT_GT(ran_meanwhile_ns, 5'000'000);
  EXPECT_NEAR(static_cast<double>(burner_had_ns), static_cast<double>(ran_meanwhile_ns),
              static_cast<double>(ran_meanwhile_ns) / 20);
  // Each nap: it left the CPU right behind its entry "before", and came back right before "after".
  std::vector<int64_t> off_ns;
  size_t at = 0;
  std::vector<evidence::Turn> naps;
  for (const evidence::Turn& turn : all.turns) {
    if (turn.thread == napper && turn.pause_ns > kNapNs / 2) naps.push_back(turn);
  }
  for (int i = 0; i < kNaps; ++i) {
    while (at < naps.size() && naps[at].from_ns() < diary.before_ns[i]) ++at;
    ASSERT_LT(at, naps.size()) << i;
    EXPECT_EQ(naps[at].pause, evidence::Pause::kSlept);
    EXPECT_LE(naps[at].run_from_ns(), diary.after_ns[i]) << i;
    off_ns.push_back(std::max(naps[at].from_ns() - diary.before_ns[i],
                              diary.after_ns[i] - naps[at].run_from_ns()));
  }
  std::sort(off_ns.begin(), off_ns.end());
  EXPECT_LE(off_ns[off_ns.size() / 2], kToleranceNs);
  RecordProperty("median_off_ns", static_cast<int>(off_ns[off_ns.size() / 2]));
}

TEST_F(RealScheduler, WithoutTracefsItIsRefusedAndSaysWhatToDo) {
  Log log(2, &clock_);
  SchedulingOptions options;
  options.sampler.events.tracefs = {root_ / "nowhere"};
  SchedulingRecorder recorder(
      [this] { return std::vector{std::pair(uint32_t{::geteuid()}, root_)}; }, &clock_, &log,
      options);
  recorder.Find({});
  recorder.Begin({.recording_id = "r1", .directory = root_ / "r1"});
  recorder.End();
  const auto complaints = recorder.Collect();
  ASSERT_EQ(complaints.size(), 1U);
  EXPECT_EQ(complaints[0].what(), "The scheduler is not recorded: tracefs is not mounted");
  EXPECT_EQ(complaints[0].fix(), "mount -t tracefs nodev /sys/kernel/tracing");
  const auto text = ReadFile(root_ / "r1/evidence" / evidence::kSchedulingFileName);
  ASSERT_TRUE(text.ok());
  const auto parsed = evidence::ParseScheduling(*text);
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->notes.size(), 1U);
  EXPECT_EQ(parsed->notes[0],
            "The scheduler is not recorded: tracefs is not mounted: mount -t tracefs nodev "
            "/sys/kernel/tracing");
}

TEST(SchedulingPause, FollowsTheRingsAndTheCost) {
  constexpr int64_t kMs = 1'000'000;
  EXPECT_EQ(SchedulingRecorder::PauseNs(0, 0.1, 0), 20 * kMs);
  EXPECT_EQ(SchedulingRecorder::PauseNs(0, 0.5, 20 * kMs), 10 * kMs);
  EXPECT_EQ(SchedulingRecorder::PauseNs(0, 0.01, 20 * kMs), 40 * kMs);
  EXPECT_EQ(SchedulingRecorder::PauseNs(0, 0.01, 200 * kMs), 200 * kMs);
  EXPECT_EQ(SchedulingRecorder::PauseNs(20 * kMs, 0.9, 20 * kMs), 400 * kMs);
}

}  // namespace
}  // namespace syncline::agent
