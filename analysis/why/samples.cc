// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/samples.h"

#include <algorithm>
#include <map>

#include "analysis/why/task_names.h"

namespace syncline::analysis::why {
namespace {

using evidence::Evidence;
using evidence::GroupSample;

// A thread that computes for the driver has at least this part of its processor time.
constexpr int64_t kHelperPercent = 20;

int64_t Middle(int64_t at_ns, int64_t until_ns) { return at_ns + (until_ns - at_ns) / 2; }

std::optional<uint32_t> FindThread(const Evidence& evidence, uint32_t process, int32_t own_tid) {
  for (uint32_t i = 0; i < evidence.threads.size(); ++i) {
    const evidence::Thread& thread = evidence.threads[i];
    if (thread.process == process && thread.own_tid == own_tid) return i;
  }
  return std::nullopt;
}

std::vector<GroupSample> SamplesOfGroup(const Evidence& evidence, uint32_t group) {
  std::vector<GroupSample> samples;
  for (const GroupSample& sample : evidence.group_samples) {
    if (sample.group == group) samples.push_back(sample);
  }
  return samples;
}

// Of the process's group and its ancestors, the one with a quota whose throttled time grew most.
std::vector<GroupSample> FindGroup(const Evidence& evidence, uint32_t process,
                                   const OwnInterval& within, RankSamples* result) {
  std::vector<GroupSample> best;
  int64_t best_ns = 0;
  for (const uint32_t index : evidence.processes[process].groups) {
    if (index >= evidence.groups.size()) continue;
    result->group_version = evidence.groups[index].version;
    std::vector<GroupSample> samples = SamplesOfGroup(evidence, index);
    std::erase_if(samples, [&](const GroupSample& sample) {
      return sample.at_ns < within.begin_ns - kMarginNs || sample.at_ns > within.end_ns + kMarginNs;
    });
    if (samples.size() < 2) continue;
    const bool limited = std::any_of(samples.begin(), samples.end(),
                                     [](const GroupSample& one) { return one.quota_ns > 0; });
    const int64_t grown_ns = samples.back().throttled_ns - samples.front().throttled_ns;
    if (!limited || grown_ns <= best_ns) continue;
    best_ns = grown_ns;
    result->group = {&evidence.groups[index], samples.back().quota_ns, samples.back().period_ns,
                     samples.back().periods - samples.front().periods,
                     samples.back().throttled_periods - samples.front().throttled_periods};
    best = std::move(samples);
  }
  return best;
}

// The group's throttled time as a series like a thread's.
std::vector<Reading> SeriesOf(std::span<const GroupSample> samples) {
  std::vector<Reading> readings;
  for (const GroupSample& sample : samples) {
    readings.push_back({Middle(sample.at_ns, sample.until_ns), 0, sample.throttled_ns, -1});
  }
  return readings;
}

// What the group says of each interval: how much its throttled time grew.
std::vector<int64_t> GroupGrowth(std::span<const Reading> group, std::span<const Growth> growths) {
  std::vector<int64_t> grown(growths.size(), 0);
  if (group.empty()) return grown;
  // A round reads the group right after the thread: its reading belongs to the interval that ended
  // last, so a reading is taken at the interval's end or up to half an interval behind it.
  size_t next = 0;
  int64_t before_ns = group.front().run_queue_ns;
  for (size_t i = 0; i < growths.size(); ++i) {
    const OwnInterval& interval = growths[i].interval;
    const int64_t until_ns = interval.end_ns + interval.length_ns() / 2;
    int64_t now_ns = before_ns;
    while (next < group.size() && group[next].at_ns < until_ns) {
      if (group[next].at_ns <= interval.begin_ns) before_ns = group[next].run_queue_ns;
      now_ns = group[next++].run_queue_ns;
    }
    grown[i] = std::max<int64_t>(0, now_ns - before_ns);
    before_ns = std::max(before_ns, now_ns);
  }
  return grown;
}

// A thread is told that it runs again a moment before or behind its group: what an interval's own
// growth does not explain may be explained by what its neighbours' has left over.
void ShareOut(std::vector<int64_t> grown, std::vector<Growth>* growths) {
  const auto take = [&](size_t from, Growth* to) {
    const int64_t most = to->run_queue_ns - to->throttled_ns;
    const int64_t taken = std::min(most, grown[from]);
    grown[from] -= taken;
    to->throttled_ns += taken;
  };
  for (size_t i = 0; i < growths->size(); ++i) take(i, &(*growths)[i]);
  for (size_t i = 0; i < growths->size(); ++i) {
    if (i > 0) take(i - 1, &(*growths)[i]);
    if (i + 1 < growths->size()) take(i + 1, &(*growths)[i]);
  }
}

// The process's threads, other than the driver and those that carry out collectives, that compute.
std::vector<std::vector<Reading>> HelpersOf(const Evidence& evidence, uint32_t process,
                                            uint32_t driver, int64_t driver_cpu_ns,
                                            std::span<const int32_t> worker_tids) {
  std::vector<std::vector<Reading>> helpers;
  for (uint32_t i = 0; i < evidence.threads.size(); ++i) {
    const evidence::Thread& thread = evidence.threads[i];
    const bool works =
        std::find(worker_tids.begin(), worker_tids.end(), thread.own_tid) != worker_tids.end();
    if (thread.process != process || i == driver || works) continue;
    std::vector<Reading> readings = ReadingsOf(evidence, i);
    if (readings.size() < 2) continue;
    const int64_t cpu_ns = readings.back().on_cpu_ns - readings.front().on_cpu_ns;
    if (cpu_ns >= driver_cpu_ns / 100 * kHelperPercent) helpers.push_back(std::move(readings));
  }
  return helpers;
}

// How long compute threads were kept waiting longer than the driver, which waits for them.
void AddHelpers(std::span<const std::vector<Reading>> helpers, std::span<const int64_t> grown,
                std::vector<Growth>* growths) {
  for (size_t i = 0; i < growths->size(); ++i) {
    Growth& growth = (*growths)[i];
    int64_t most_ns = 0;
    for (const std::vector<Reading>& readings : helpers) {
      most_ns = std::max(most_ns,
                         ValueAt(readings, &Reading::run_queue_ns, growth.interval.end_ns) -
                             ValueAt(readings, &Reading::run_queue_ns, growth.interval.begin_ns));
    }
    growth.helpers_ns = std::max<int64_t>(0, most_ns - growth.run_queue_ns);
    const int64_t left_ns = std::max<int64_t>(0, grown[i] - growth.throttled_ns);
    growth.helpers_throttled_ns = std::min(growth.helpers_ns, left_ns);
  }
}

double Rate(std::span<const Reading> readings, const OwnInterval& within) {
  const int64_t grown_ns = ValueAt(readings, &Reading::on_cpu_ns, within.end_ns) -
                           ValueAt(readings, &Reading::on_cpu_ns, within.begin_ns);
  return static_cast<double>(grown_ns) / static_cast<double>(within.length_ns());
}

// Of the process as a whole, in the time of the driver's readings.
std::vector<evidence::ProcessSample> WholeSamples(const Evidence& evidence, uint32_t process,
                                                  std::span<const Reading> driver) {
  std::vector<evidence::ProcessSample> samples;
  for (const evidence::ProcessSample& sample : evidence.recorded_samples) {
    const int64_t at_ns = Middle(sample.at_ns, sample.until_ns);
    if (sample.process != process || at_ns < driver.front().at_ns) continue;
    if (at_ns <= driver.back().at_ns) samples.push_back(sample);
  }
  return samples;
}

std::optional<ThreadCount> ThreadsOf(std::span<const evidence::ProcessSample> whole) {
  if (whole.empty()) return std::nullopt;
  ThreadCount count{UINT32_MAX, 0};
  for (const evidence::ProcessSample& sample : whole) {
    if (sample.threads == 0) return std::nullopt;
    count.least = std::min(count.least, sample.threads);
    count.most = std::max(count.most, sample.threads);
  }
  return count;
}

// Of the process's threads that carry out collectives, but for the driver: by tid as the process
// sees it, or less than 0 where that is not known. One that was dropped and found again is two
// threads of the evidence; one that was never sampled has no readings.
std::map<int32_t, std::vector<Reading>> TransfersOf(const Evidence& evidence, uint32_t process,
                                                    int32_t driver_tid,
                                                    std::span<const int32_t> worker_tids) {
  std::map<int32_t, std::vector<Reading>> transfers;
  for (const int32_t tid : worker_tids) transfers[tid];
  for (uint32_t i = 0; i < evidence.threads.size(); ++i) {
    const evidence::Thread& thread = evidence.threads[i];
    const int32_t tid = thread.own_tid > 0 ? thread.own_tid : -thread.tid;
    if (thread.process != process) continue;
    if (!IsTransferThread(thread.name) && !transfers.contains(tid)) continue;
    std::vector<Reading>& readings = transfers[tid];
    for (const Reading& reading : ReadingsOf(evidence, i)) readings.push_back(reading);
  }
  transfers.erase(driver_tid);
  return transfers;
}

// What the whole process used, less its driver and those who carry out collectives, in the time in
// which all of these are known: at least half of the driver's. The threads that are left need not
// have been sampled one by one.
std::optional<double> HelperCpus(std::span<const evidence::ProcessSample> whole,
                                 std::span<const Reading> driver,
                                 const std::map<int32_t, std::vector<Reading>>& transfers) {
  OwnInterval known{driver.front().at_ns, driver.back().at_ns};
  for (const auto& [tid, readings] : transfers) {
    if (readings.empty()) return std::nullopt;
    known.begin_ns = std::max(known.begin_ns, readings.front().at_ns);
    known.end_ns = std::min(known.end_ns, readings.back().at_ns);
  }
  std::vector<Reading> all;
  for (const evidence::ProcessSample& sample : whole) {
    const int64_t at_ns = Middle(sample.at_ns, sample.until_ns);
    if (at_ns < known.begin_ns || at_ns > known.end_ns) continue;
    all.push_back({at_ns, sample.cpu_ns, 0, -1});
  }
  if (all.size() < 2) return std::nullopt;
  const OwnInterval within{all.front().at_ns, all.back().at_ns};
  if (within.length_ns() <= 0) return std::nullopt;
  if (within.length_ns() * 2 < driver.back().at_ns - driver.front().at_ns) return std::nullopt;
  double cpus = Rate(all, within) - Rate(driver, within);
  for (const auto& [tid, readings] : transfers) cpus -= Rate(readings, within);
  return std::max(0.0, cpus);
}

}  // namespace

std::vector<Reading> ReadingsOf(const Evidence& evidence, uint32_t thread) {
  std::vector<Reading> readings;
  for (const evidence::ThreadSample& sample : evidence.thread_samples) {
    if (sample.thread != thread) continue;
    readings.push_back({Middle(sample.at_ns, sample.until_ns), sample.on_cpu_ns,
                        sample.run_queue_ns, sample.cpu, sample.state, sample.major_faults,
                        sample.minor_faults, sample.clock_khz});
  }
  return readings;
}

bool StatesKnown(std::span<const Reading> readings) {
  const auto known = std::count_if(readings.begin(), readings.end(),
                                   [](const Reading& one) { return one.state != 0; });
  return static_cast<size_t>(known) * 10 >= readings.size() * 9;
}

std::optional<BytesRead> BytesReadOf(const Evidence& evidence, uint32_t process,
                                     const OwnInterval& within) {
  const evidence::ProcessSample* first = nullptr;
  const evidence::ProcessSample* last = nullptr;
  for (const evidence::ProcessSample& sample : evidence.recorded_samples) {
    if (sample.process != process || sample.read_bytes < 0) continue;
    if (sample.at_ns < within.begin_ns || sample.at_ns > within.end_ns) continue;
    if (first == nullptr) first = &sample;
    last = &sample;
  }
  if (first == last || last->at_ns <= first->at_ns) return std::nullopt;
  return BytesRead{std::max<int64_t>(0, last->read_bytes - first->read_bytes),
                   last->at_ns - first->at_ns};
}

std::optional<FullGroup> FullGroupOf(const Evidence& evidence, uint32_t process,
                                     const OwnInterval& within) {
  std::optional<FullGroup> most;
  for (const uint32_t group : evidence.processes[process].memory_groups) {
    const evidence::MemorySample* first = nullptr;
    const evidence::MemorySample* last = nullptr;
    int64_t times = 0;
    bool one_limit = true;
    for (const evidence::MemorySample& sample : evidence.memory_samples) {
      if (sample.group != group) continue;
      if (sample.at_ns < within.begin_ns || sample.at_ns > within.end_ns) continue;
      if (first == nullptr) first = &sample;
      if (last != nullptr) {  // somebody may set the count to 0
        times += std::max<int64_t>(0, sample.full - last->full);
        one_limit = one_limit && sample.limit_bytes == last->limit_bytes;
      }
      last = &sample;
    }
    // Of those that were full as often the inner one, which comes first.
    if (times <= (most.has_value() ? most->times : 0) || last->at_ns <= first->at_ns) continue;
    const evidence::Group& found = evidence.memory_groups[group];
    most = FullGroup{found.path, found.version, one_limit ? last->limit_bytes : -1, times,
                     last->at_ns - first->at_ns};
  }
  return most;
}

double SampledPart(std::span<const OwnInterval> steps, std::span<const Reading> driver) {
  if (driver.empty()) return 0;
  int64_t all_ns = 0;
  int64_t sampled_ns = 0;
  for (const OwnInterval& step : steps) {
    all_ns += step.length_ns();
    const int64_t begin_ns = std::max(step.begin_ns, driver.front().at_ns);
    const int64_t end_ns = std::min(step.end_ns, driver.back().at_ns);
    sampled_ns += std::max<int64_t>(0, end_ns - begin_ns);
  }
  return all_ns <= 0 ? 0 : static_cast<double>(sampled_ns) / static_cast<double>(all_ns);
}

void SetJudged(std::span<const OwnInterval> steps, std::vector<Growth>* growths) {
  size_t first = 0;
  for (Growth& growth : *growths) {
    const OwnInterval& interval = growth.interval;
    while (first < steps.size() && steps[first].end_ns <= interval.begin_ns) ++first;
    int64_t inside_ns = 0;
    for (size_t i = first; i < steps.size() && steps[i].begin_ns < interval.end_ns; ++i) {
      inside_ns += std::min(steps[i].end_ns, interval.end_ns) -
                   std::max(steps[i].begin_ns, interval.begin_ns);
    }
    if (interval.length_ns() <= 0) continue;
    growth.judged = static_cast<double>(inside_ns) / static_cast<double>(interval.length_ns());
  }
}

RankSamples SamplesOf(const RankInput& rank, int32_t driver_tid, const OwnInterval& within,
                      std::span<const int32_t> worker_tids) {
  RankSamples result;
  if (rank.evidence == nullptr || !rank.evidence_process.has_value()) return result;
  const Evidence& evidence = *rank.evidence;
  const uint32_t process = *rank.evidence_process;
  const std::optional<uint32_t> driver = FindThread(evidence, process, driver_tid);
  if (!driver.has_value()) return result;
  result.driver = ReadingsOf(evidence, *driver);
  std::erase_if(result.driver, [&](const Reading& reading) {
    return reading.at_ns < within.begin_ns - kMarginNs || reading.at_ns > within.end_ns + kMarginNs;
  });
  for (size_t i = 1; i < result.driver.size(); ++i) {
    const Reading& before = result.driver[i - 1];
    const Reading& now = result.driver[i];
    Growth growth;
    growth.interval = {before.at_ns, now.at_ns};
    growth.run_queue_ns = std::max<int64_t>(0, now.run_queue_ns - before.run_queue_ns);
    growth.cpu = now.cpu;
    result.growths.push_back(growth);
  }
  if (result.growths.empty()) return result;
  const std::vector<GroupSample> group = FindGroup(evidence, process, within, &result);
  const std::vector<int64_t> grown = GroupGrowth(SeriesOf(group), result.growths);
  ShareOut(grown, &result.growths);
  const int64_t cpu_ns = result.driver.back().on_cpu_ns - result.driver.front().on_cpu_ns;
  const std::vector<evidence::ProcessSample> whole = WholeSamples(evidence, process, result.driver);
  result.threads = ThreadsOf(whole);
  result.helper_cpus =
      HelperCpus(whole, result.driver, TransfersOf(evidence, process, driver_tid, worker_tids));
  AddHelpers(HelpersOf(evidence, process, *driver, cpu_ns, worker_tids), grown, &result.growths);
  return result;
}

}  // namespace syncline::analysis::why
