// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/takers.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "analysis/why/task_names.h"

namespace syncline::analysis::why {
namespace {

using evidence::Evidence;
using evidence::Relation;

constexpr int64_t kWaitMinNs = 1'000'000;  // shorter waits are the scheduler's usual ones
constexpr uint64_t kStatesMin = 20;        // fewer samples of a worker's state say little

// Somebody's processor time over time.
struct Candidate {
  Taker taker;
  std::vector<Reading> readings;
  int64_t gained_ns = 0;
};

bool IsChildOf(const Evidence& evidence, const evidence::Process& process, int32_t pid) {
  // A worker may have helpers of its own. Chains are short; a cycle cannot be (pids are reused).
  int32_t parent = process.parent_pid;
  for (int depth = 0; depth < 8 && parent > 1; ++depth) {
    if (parent == pid) return true;
    const auto found =
        std::find_if(evidence.processes.begin(), evidence.processes.end(),
                     [&](const evidence::Process& other) { return other.pid == parent; });
    if (found == evidence.processes.end()) return false;
    parent = found->parent_pid;
  }
  return false;
}

// `job`: the pids of all ranks of the job on this node.
Taker::Kind KindOf(const Evidence& evidence, uint32_t process, uint32_t own,
                   const std::set<int32_t>& job) {
  const evidence::Process& other = evidence.processes[process];
  if (process == own) return Taker::Kind::kOwnThread;
  if (other.relation == Relation::kSyncline) return Taker::Kind::kSyncline;
  if (IsChildOf(evidence, other, evidence.processes[own].pid)) return Taker::Kind::kOwnLoader;
  const bool of_job = job.contains(other.pid) ||
                      std::any_of(job.begin(), job.end(),
                                  [&](int32_t pid) { return IsChildOf(evidence, other, pid); });
  return of_job ? Taker::Kind::kRank : Taker::Kind::kOutside;
}

std::set<int32_t> PidsOf(std::span<const RankInput> job, const RankInput& rank) {
  std::set<int32_t> pids;
  for (const RankInput& other : job) {
    if (other.evidence != rank.evidence || !other.evidence_process.has_value()) continue;
    pids.insert(rank.evidence->processes[*other.evidence_process].pid);
  }
  return pids;
}

std::vector<Candidate> CandidatesOf(std::span<const RankInput> job, const RankInput& rank,
                                    int32_t driver_tid) {
  const std::set<int32_t> pids = PidsOf(job, rank);
  const Evidence& evidence = *rank.evidence;
  const uint32_t own = *rank.evidence_process;
  std::map<uint32_t, Candidate> threads;
  std::map<uint32_t, Candidate> processes;
  for (const evidence::ThreadSample& sample : evidence.thread_samples) {
    const evidence::Thread& thread = evidence.threads[sample.thread];
    if (thread.process == own && thread.own_tid == driver_tid) continue;
    threads[sample.thread].readings.push_back(
        {sample.at_ns, sample.on_cpu_ns, sample.run_queue_ns, sample.cpu});
  }
  for (const evidence::ProcessSample& sample : evidence.process_samples) {
    processes[sample.process].readings.push_back({sample.at_ns, sample.cpu_ns, 0, sample.cpu});
  }
  std::vector<Candidate> candidates;
  const auto add = [&](Candidate candidate, uint32_t process, const std::string& name) {
    candidate.taker.kind = KindOf(evidence, process, own, pids);
    candidate.taker.name = name;
    candidate.taker.transfers =
        candidate.taker.kind == Taker::Kind::kOwnThread && IsTransferThread(name);
    candidate.taker.pid = evidence.processes[process].pid;
    candidates.push_back(std::move(candidate));
  };
  for (auto& [thread, candidate] : threads) {
    add(std::move(candidate), evidence.threads[thread].process, evidence.threads[thread].name);
  }
  for (auto& [process, candidate] : processes) {
    add(std::move(candidate), process, evidence.processes[process].name);
  }
  return candidates;
}

// Where somebody last ran, as far as that was read; -1: not known.
int32_t CpuAt(std::span<const Reading> readings, int64_t at_ns) {
  auto after =
      std::upper_bound(readings.begin(), readings.end(), at_ns + kWaitMinNs,
                       [](int64_t at, const Reading& reading) { return at < reading.at_ns; });
  while (after != readings.begin()) {
    --after;
    if (after->cpu >= 0) return after->cpu;
  }
  return -1;
}

}  // namespace

Taker::Kind KindOfProcess(std::span<const RankInput> job, const RankInput& rank, int32_t pid) {
  if (rank.evidence == nullptr || !rank.evidence_process.has_value()) return Taker::Kind::kUnknown;
  const std::vector<evidence::Process>& processes = rank.evidence->processes;
  const auto found = std::find_if(processes.begin(), processes.end(),
                                  [&](const evidence::Process& one) { return one.pid == pid; });
  if (found == processes.end()) return Taker::Kind::kUnknown;
  return KindOf(*rank.evidence, static_cast<uint32_t>(found - processes.begin()),
                *rank.evidence_process, PidsOf(job, rank));
}

std::optional<Taker> TakerOf(std::span<const RankInput> job, const RankInput& rank,
                             int32_t driver_tid, const RankSamples& samples, size_t steps) {
  std::vector<Candidate> candidates = CandidatesOf(job, rank, driver_tid);
  int64_t waited_ns = 0;
  for (const Growth& growth : samples.growths) {
    const int64_t wait_ns = growth.run_queue_ns - growth.throttled_ns;
    if (wait_ns < kWaitMinNs || growth.judged <= 0) continue;
    const auto in_steps = [&](int64_t ns) {
      return static_cast<int64_t>(static_cast<double>(ns) * growth.judged);
    };
    waited_ns += in_steps(wait_ns);
    for (Candidate& candidate : candidates) {
      const int32_t cpu = CpuAt(candidate.readings, growth.interval.end_ns);
      if (cpu >= 0 && growth.cpu >= 0 && cpu != growth.cpu) continue;
      const int64_t gained_ns =
          ValueAt(candidate.readings, &Reading::on_cpu_ns, growth.interval.end_ns) -
          ValueAt(candidate.readings, &Reading::on_cpu_ns, growth.interval.begin_ns);
      candidate.gained_ns += in_steps(std::max<int64_t>(0, gained_ns));
    }
  }
  if (waited_ns == 0) return std::nullopt;  // its helpers waited: nobody was looked for
  std::map<Taker::Kind, int64_t> by_kind;
  int64_t all_ns = 0;
  for (const Candidate& candidate : candidates) {
    by_kind[candidate.taker.kind] += candidate.gained_ns;
    all_ns += candidate.gained_ns;
  }
  Taker best;
  if (all_ns * 2 < waited_ns || all_ns == 0) return best;
  const auto most =
      std::max_element(by_kind.begin(), by_kind.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  int64_t largest_ns = -1;
  for (const Candidate& candidate : candidates) {
    if (candidate.taker.kind != most->first || candidate.gained_ns <= largest_ns) continue;
    largest_ns = candidate.gained_ns;
    best = candidate.taker;
  }
  best.cpu_ns = most->second / static_cast<int64_t>(std::max<size_t>(1, steps));
  return best;
}

int64_t LoaderRunQueueNs(const RankInput& rank, const RankSamples& samples) {
  if (!samples.measured()) return 0;
  const Evidence& evidence = *rank.evidence;
  const uint32_t own = *rank.evidence_process;
  int64_t longest_ns = 0;
  for (uint32_t i = 0; i < evidence.threads.size(); ++i) {
    const uint32_t process = evidence.threads[i].process;
    if (process == own || KindOf(evidence, process, own, {}) != Taker::Kind::kOwnLoader) continue;
    const std::vector<Reading> readings = ReadingsOf(evidence, i);
    if (readings.empty()) continue;
    double waited_ns = 0;
    for (const Growth& growth : samples.growths) {
      waited_ns +=
          growth.judged *
          static_cast<double>(ValueAt(readings, &Reading::run_queue_ns, growth.interval.end_ns) -
                              ValueAt(readings, &Reading::run_queue_ns, growth.interval.begin_ns));
    }
    longest_ns = std::max(longest_ns, static_cast<int64_t>(waited_ns));
  }
  return longest_ns;
}

std::optional<double> LoaderBlocked(const RankInput& rank, const RankSamples& samples) {
  if (!samples.measured()) return std::nullopt;
  const Evidence& evidence = *rank.evidence;
  const uint32_t own = *rank.evidence_process;
  const int64_t begin_ns = samples.growths.front().interval.begin_ns;
  const int64_t end_ns = samples.growths.back().interval.end_ns;
  std::optional<double> most;
  for (uint32_t i = 0; i < evidence.threads.size(); ++i) {
    const uint32_t process = evidence.threads[i].process;
    if (process == own || KindOf(evidence, process, own, {}) != Taker::Kind::kOwnLoader) continue;
    uint64_t known = 0;
    uint64_t blocked = 0;
    for (const Reading& reading : ReadingsOf(evidence, i)) {
      if (reading.state == 0 || reading.at_ns < begin_ns || reading.at_ns > end_ns) continue;
      ++known;
      blocked += reading.state == kBlockedState ? 1 : 0;
    }
    if (known < kStatesMin) continue;
    most = std::max(most.value_or(0), static_cast<double>(blocked) / static_cast<double>(known));
  }
  return most;
}

}  // namespace syncline::analysis::why
