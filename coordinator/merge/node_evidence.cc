// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/node_evidence.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/why/usage.h"
#include "coordinator/merge/growth.h"
#include "coordinator/merge/node_file.h"

namespace syncline::merge {
namespace {

constexpr double kPercent = 100;  // of one processor
constexpr double kMsPerSecond = 1000;
constexpr double kKhzInGhz = 1e6;

// Of one that was recorded.
std::optional<ProcessKey> KeyOf(const evidence::Process& process) {
  if (process.relation != evidence::Relation::kRecorded) return std::nullopt;
  return ProcessKey{0, static_cast<uint64_t>(process.pid_namespace_inode), process.own_pid,
                    process.start_ticks};
}

void AddThreads(const evidence::Evidence& evidence, std::vector<timeline::CounterSeries>* all) {
  std::vector<Growth> on_cpu(evidence.threads.size(), Growth(kPercent));
  std::vector<Growth> run_queue(evidence.threads.size(), Growth(kMsPerSecond));
  std::vector<std::vector<timeline::CounterPoint>> clocks(evidence.threads.size());
  for (const evidence::ThreadSample& sample : evidence.thread_samples) {
    on_cpu[sample.thread].Add(sample, sample.on_cpu_ns);
    run_queue[sample.thread].Add(sample, sample.run_queue_ns);
    if (sample.clock_khz <= 0) continue;
    const double ghz = static_cast<double>(sample.clock_khz) / kKhzInGhz;
    clocks[sample.thread].push_back({sample.at_ns, ghz});
  }
  for (size_t i = 0; i < evidence.threads.size(); ++i) {
    const evidence::Thread& thread = evidence.threads[i];
    const evidence::Process& process = evidence.processes[thread.process];
    timeline::CounterSeries series;
    // The number by which the timeline's own tracks call the thread.
    const int32_t tid = thread.own_tid != 0 ? thread.own_tid : thread.tid;
    const std::string who = absl::StrCat(" · ", thread.name, " (tid ", tid, ")");
    series.process = KeyOf(process);
    series.name = absl::StrCat("on CPU", who);
    series.unit = "%";
    on_cpu[i].Finish(series, all);
    series.name = absl::StrCat("run queue", who);
    series.unit = "ms/s";
    run_queue[i].Finish(series, all);
    if (clocks[i].empty()) continue;
    series.name = absl::StrCat("clock of its CPU", who);
    series.unit = "GHz";
    series.points = std::move(clocks[i]);
    all->push_back(std::move(series));
  }
}

void AddGroups(const evidence::Evidence& evidence, std::vector<timeline::CounterSeries>* all) {
  std::vector<Growth> throttled(evidence.groups.size(), Growth(kMsPerSecond));
  for (const evidence::GroupSample& sample : evidence.group_samples) {
    throttled[sample.group].Add(sample, sample.throttled_ns);
  }
  for (size_t i = 0; i < evidence.groups.size(); ++i) {
    timeline::CounterSeries series;
    series.name = absl::StrCat("throttled · cgroup ", evidence.groups[i].path);
    series.unit = "ms/s";
    throttled[i].Finish(std::move(series), all);
  }
}

void AddProcesses(const evidence::Evidence& evidence, std::vector<timeline::CounterSeries>* all) {
  std::vector<Growth> cpu(evidence.processes.size(), Growth(kPercent));
  for (const evidence::ProcessSample& sample : evidence.process_samples) {
    cpu[sample.process].Add(sample, sample.cpu_ns);
  }
  for (size_t i = 0; i < evidence.processes.size(); ++i) {
    timeline::CounterSeries series;
    const evidence::Process& process = evidence.processes[i];
    series.name = absl::StrCat("CPU · ", process.name, " (pid ", process.pid, ")");
    series.unit = "%";
    cpu[i].Finish(std::move(series), all);
  }
}

void AddStealTime(const evidence::Evidence& evidence, std::vector<timeline::CounterSeries>* all) {
  std::vector<Growth> stolen(evidence.processes.size(), Growth(kMsPerSecond));
  for (const evidence::StealSample& sample : evidence.steal_samples) {
    stolen[sample.process].Add(sample, sample.stolen_ns);
  }
  for (size_t i = 0; i < evidence.processes.size(); ++i) {
    timeline::CounterSeries series;
    series.process = KeyOf(evidence.processes[i]);
    series.name = "steal time";
    series.unit = "ms/s";
    stolen[i].Finish(std::move(series), all);
  }
}

std::optional<evidence::Evidence> ReadNode(const std::string& node, OpenedInputs* inputs) {
  return ReadNodeFile(node, {evidence::kFileName, "the samples of the node", "samples"},
                      evidence::ParseEvidence, inputs);
}

}  // namespace

std::deque<std::optional<evidence::Evidence>> ReadEvidence(OpenedInputs* inputs) {
  std::deque<std::optional<evidence::Evidence>> all;
  for (const timeline::NodeInput& node : inputs->nodes) all.push_back(ReadNode(node.name, inputs));
  return all;
}

std::vector<timeline::CounterSeries> CountersOf(const evidence::Evidence& evidence) {
  std::vector<timeline::CounterSeries> all;
  AddThreads(evidence, &all);
  AddGroups(evidence, &all);
  AddProcesses(evidence, &all);
  AddStealTime(evidence, &all);
  return all;
}

void AddSamples(timeline::Interval counted, bool draw, OpenedInputs* inputs) {
  if (inputs->run.empty()) return;
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    // One node's samples at a time: they are several times as large as the counters.
    const std::optional<evidence::Evidence> evidence = ReadNode(inputs->nodes[i].name, inputs);
    if (!evidence.has_value()) continue;
    if (draw) inputs->nodes[i].counters = CountersOf(*evidence);
    const timeline::Placement* placement = inputs->facts[i].placement;
    if (placement == nullptr || !inputs->build.window.has_value()) continue;
    inputs->facts[i].usage = analysis::why::UsageOf(
        *evidence, {placement->ClockNs(counted.begin), placement->ClockNs(counted.end)});
  }
}

}  // namespace syncline::merge
