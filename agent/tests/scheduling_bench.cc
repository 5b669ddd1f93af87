// SPDX-License-Identifier: Apache-2.0
// What `record --scheduling` costs: two recorded processes hand a byte to and fro on one CPU, with
// and without a recording, by turns.
//
//   syncline-scheduling-bench [PAIRS]
//
// For each pair, the time of a switch with and without, and the agent's processor time for one.
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/host/process_table.h"
#include "agent/scheduling/scheduling_recorder.h"
#include "common/files.h"
#include "control_block/testing.h"
#include "evidence/scheduling.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWindowNs = 2'000'000'000;

// Writes a byte and waits for another one, until it is killed. Counts round trips in `*count`.
[[noreturn]] void PassOn(int from, int to, volatile int64_t* count) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  ::sched_setaffinity(0, sizeof cpus, &cpus);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (char byte = 0;;) {
    if (::read(from, &byte, 1) != 1 || ::write(to, &byte, 1) != 1) ::_exit(0);
    if (count != nullptr) *count = *count + 1;
  }
}

void Mark(const fs::path& folder, pid_t pid) {
  const auto entry = ReadProcess("/proc", pid);
  if (!entry.has_value()) return;
  const auto bytes = control_block::MakeBlockBytes();
  const fs::path block =
      folder / (std::to_string(entry->pid_namespace) + "-" + std::to_string(entry->own_pid) + "-" +
                std::to_string(entry->start_ticks) + ".block");
  if (!WriteFileAtomically(block, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0600)
           .ok()) {
    std::exit(1);
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Two children that hand a byte to and fro, and what the second one counts.
struct Pair {
  std::vector<pid_t> children;
  volatile int64_t* round_trips = nullptr;
};

Pair Start(const fs::path& root) {
  Pair pair;
  pair.round_trips = static_cast<volatile int64_t*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int there[2];
  int back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) std::exit(1);
  for (const bool first : {true, false}) {
    const pid_t child = ::fork();
    if (child == 0 && first) PassOn(back[0], there[1], pair.round_trips);
    if (child == 0) PassOn(there[0], back[1], nullptr);
    pair.children.push_back(child);
    Mark(root, child);
  }
  if (::write(back[1], "x", 1) != 1) std::exit(1);
  return pair;
}

struct Cost {
  double switch_ns = 0;
  double agent_ns = 0;  // of a turn
};

Cost Measure(const fs::path& root, const Pair& pair, bool recorded, const std::string& id) {
  SystemClock clock;
  Log log(2, &clock);
  SchedulingOptions options;
  options.sampler.events.tracefs = {root / "tracefs", "/sys/kernel/tracing"};
  SchedulingRecorder recorder([&] { return std::vector{std::pair(uint32_t{::geteuid()}, root)}; },
                              &clock, &log, options);
  if (recorded) {
    recorder.Find({});
    recorder.Begin({.recording_id = id, .directory = root / id});
  }
  clock.SleepNs(kWindowNs / 10);
  const int64_t begin_ns = clock.MonotonicNs();
  const int64_t before = *pair.round_trips;
  clock.SleepNs(kWindowNs);
  const auto switches = 2 * static_cast<double>(*pair.round_trips - before);
  Cost cost{.switch_ns = static_cast<double>(clock.MonotonicNs() - begin_ns) / switches};
  if (!recorded) return cost;
  recorder.End();
  for (const auto& complaint : recorder.Collect()) {
    std::fprintf(stderr, "%s\n", complaint.what().c_str());
  }
  auto text = ReadFile(root / id / "evidence" / evidence::kSchedulingFileName);
  const auto parsed = evidence::ParseScheduling(text.ok() ? *text : "");
  if (!parsed.ok() || parsed->turns.empty()) return cost;
  const auto turns = static_cast<double>(parsed->turns.size());
  cost.agent_ns = static_cast<double>(parsed->cost_ns) / turns;
  std::printf(
      "with %.0f ns a switch (%.0f a second); agent %.0f ns a turn, %.1f bytes; "
      "%zu losses\n",
      cost.switch_ns, 1e9 / cost.switch_ns, cost.agent_ns,
      static_cast<double>(text->size()) / turns, parsed->losses.size());
  return cost;
}

int Run(int pairs) {
  std::string pattern = "/tmp/scheduling-bench-XXXXXX";
  const fs::path root = ::mkdtemp(pattern.data());
  fs::create_directory(root / "tracefs");
  const bool mounted = ::mount("nodev", (root / "tracefs").c_str(), "tracefs", 0, nullptr) == 0;
  const Pair pair = Start(root);
  std::vector<double> without;
  std::vector<double> with;
  std::vector<double> agent;
  for (int i = 0; i < pairs; ++i) {
    without.push_back(Measure(root, pair, false, "").switch_ns);
    std::printf("without %.0f ns; ", without.back());
    const Cost cost = Measure(root, pair, true, "r" + std::to_string(i));
    with.push_back(cost.switch_ns);
    agent.push_back(cost.agent_ns);
  }
  for (const pid_t child : pair.children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  if (mounted) ::umount2((root / "tracefs").c_str(), MNT_DETACH);
  fs::remove_all(root);
  const double kernel = Median(with) - Median(without);
  std::printf(
      "medians of %d: %.0f and %.0f ns: the kernel %.0f ns a switch, the agent %.0f ns; "
      "50,000 switches a second take %.2f %% of a processor\n",
      pairs, Median(without), Median(with), kernel, Median(agent),
      (kernel + Median(agent)) * 50'000 / 1e9 * 100);
  return Median(agent) > 0 ? 0 : 1;
}

}  // namespace
}  // namespace syncline::agent

int main(int argc, char** argv) {
  return syncline::agent::Run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 5);
}
