// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/usage.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/why/clock_speed.h"
#include "analysis/why/samples.h"
#include "analysis/why/steal.h"

namespace syncline::analysis::why {
namespace {

using evidence::Evidence;
using evidence::Relation;

// The first and the last sample of one thread or process.
template <class Sample>
struct Ends {
  const Sample* first = nullptr;
  const Sample* last = nullptr;

  int64_t Grown(int64_t Sample::*amount) const {
    return first == nullptr ? 0 : std::max<int64_t>(0, last->*amount - first->*amount);
  }
};

template <class Sample>
std::vector<Ends<Sample>> EndsOf(const std::vector<Sample>& samples, uint32_t Sample::*index,
                                 size_t count, const OwnInterval& within) {
  std::vector<Ends<Sample>> all(count);
  for (const Sample& sample : samples) {
    if (sample.at_ns < within.begin_ns - kMarginNs) continue;
    if (sample.at_ns > within.end_ns + kMarginNs) continue;
    Ends<Sample>& ends = all[sample.*index];
    if (ends.first == nullptr) ends.first = &sample;
    ends.last = &sample;
  }
  return all;
}

// Of its sleep, what samples that find the thread asleep find blocked. What a hypervisor took is no
// sleep. nullopt: most samples do not say.
std::optional<int64_t> BlockedOf(std::span<const Reading> readings, const ProcessUsage& usage) {
  if (!StatesKnown(readings)) return std::nullopt;
  int64_t known = 0;
  int64_t asleep = 0;
  int64_t blocked = 0;
  for (const Reading& reading : readings) {
    blocked += reading.state == kBlockedState ? 1 : 0;
    asleep += reading.state != 0 && reading.state != kRunningState ? 1 : 0;
    known += reading.state != 0 ? 1 : 0;
  }
  if (blocked == 0) return 0;
  const auto stolen = static_cast<double>(usage.cpus_stolen_ns);
  const auto busy = static_cast<double>(usage.cpus_busy_ns);
  const Stolen taken{busy > 0 ? static_cast<double>(usage.running_ns) * stolen / busy : 0, stolen};
  const double found_ns = static_cast<double>(usage.sampled_ns) * static_cast<double>(asleep) /
                          static_cast<double>(known);
  return static_cast<int64_t>(SleptOf(static_cast<double>(usage.asleep_ns()), taken, found_ns) *
                              static_cast<double>(blocked) / static_cast<double>(asleep));
}

// What its main thread did; false: that has no two samples.
bool AddMainThread(const Evidence& evidence, uint32_t index, const OwnInterval& within,
                   ProcessUsage* usage) {
  RankInput rank;
  rank.evidence = &evidence;
  rank.evidence_process = index;
  const RankSamples samples = SamplesOf(rank, evidence.processes[index].own_pid, within, {});
  if (samples.driver.size() < 2) return false;
  const Reading& first = samples.driver.front();
  const Reading& last = samples.driver.back();
  usage->sampled_ns = last.at_ns - first.at_ns;
  int64_t run_queue_ns = 0;
  for (const Growth& growth : samples.growths) {
    run_queue_ns += growth.run_queue_ns;
    usage->throttled_ns += growth.throttled_ns;
  }
  // Both are read a moment apart from the time.
  run_queue_ns = std::min(run_queue_ns, usage->sampled_ns);
  usage->throttled_ns = std::min(usage->throttled_ns, run_queue_ns);
  usage->waiting_ns = run_queue_ns - usage->throttled_ns;
  usage->running_ns =
      std::clamp<int64_t>(last.on_cpu_ns - first.on_cpu_ns, 0, usage->sampled_ns - run_queue_ns);
  usage->blocked_ns = BlockedOf(samples.driver, *usage);
  const std::vector<int64_t> clocks = ClocksIn(samples.driver);
  if (!clocks.empty()) usage->clock_khz = clocks[clocks.size() / 2];
  const OwnInterval around{within.begin_ns - kMarginNs, within.end_ns + kMarginNs};
  const auto read = BytesReadOf(evidence, index, around);
  if (read.has_value()) usage->read_bytes = read->bytes;
  if (first.minor_faults >= 0 && last.minor_faults >= first.minor_faults) {
    usage->minor_faults = last.minor_faults - first.minor_faults;
    usage->page_ns = evidence.page_ns;
  }
  usage->full_group = FullGroupOf(evidence, index, around);
  return usage->sampled_ns > 0;
}

std::vector<ProcessUsage> ProcessesOf(const Evidence& evidence, const OwnInterval& within) {
  const auto cpus = EndsOf(evidence.steal_samples, &evidence::StealSample::process,
                           evidence.processes.size(), within);
  const auto ends = EndsOf(evidence.thread_samples, &evidence::ThreadSample::thread,
                           evidence.threads.size(), within);
  std::vector<ProcessUsage> all(evidence.processes.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    ProcessUsage& usage = all[evidence.threads[i].process];
    if (ends[i].first != ends[i].last) ++usage.threads;
    usage.threads_running_ns += ends[i].Grown(&evidence::ThreadSample::on_cpu_ns);
    usage.threads_waiting_ns += ends[i].Grown(&evidence::ThreadSample::run_queue_ns);
  }
  std::vector<ProcessUsage> found;
  for (uint32_t i = 0; i < all.size(); ++i) {
    const evidence::Process& process = evidence.processes[i];
    if (process.relation != Relation::kRecorded) continue;
    all[i].process = {0, static_cast<uint64_t>(process.pid_namespace_inode), process.own_pid,
                      process.start_ticks};
    all[i].cpus_busy_ns = cpus[i].Grown(&evidence::StealSample::busy_ns);
    all[i].cpus_stolen_ns = cpus[i].Grown(&evidence::StealSample::stolen_ns);
    if (AddMainThread(evidence, i, within, &all[i])) found.push_back(all[i]);
  }
  return found;
}

std::vector<OtherUsage> OthersOf(const Evidence& evidence, const OwnInterval& within) {
  const auto ends = EndsOf(evidence.process_samples, &evidence::ProcessSample::process,
                           evidence.processes.size(), within);
  std::vector<OtherUsage> others;
  for (size_t i = 0; i < ends.size(); ++i) {
    const evidence::Process& process = evidence.processes[i];
    const int64_t running_ns = ends[i].Grown(&evidence::ProcessSample::cpu_ns);
    if (process.relation == Relation::kRecorded || running_ns == 0) continue;
    others.push_back({process.relation, process.name, process.pid, running_ns});
  }
  std::stable_sort(others.begin(), others.end(), [](const OtherUsage& a, const OtherUsage& b) {
    return a.running_ns > b.running_ns;
  });
  return others;
}

}  // namespace

MachineUsage UsageOf(const Evidence& evidence, const OwnInterval& within) {
  return {within.length_ns(), ProcessesOf(evidence, within), OthersOf(evidence, within)};
}

}  // namespace syncline::analysis::why
