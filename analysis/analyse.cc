// SPDX-License-Identifier: Apache-2.0
#include "analysis/analyse.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/contradictions.h"
#include "common/process_part.h"

namespace syncline::analysis {
namespace {

using timeline::Interval;
using timeline::NodeResult;
using timeline::ProcessResult;

Interval WindowOf(const AnalyseInput& input) {
  if (input.window.has_value()) return *input.window;
  std::optional<Interval> seen;
  for (size_t i = 0; i < input.nodes.size(); ++i) {
    if (!input.nodes[i].seen.has_value()) continue;
    timeline::Placement& placement = *input.facts[i].placement;
    const TimelineTime begin = placement.At(input.nodes[i].seen->begin_ns);
    const TimelineTime end = placement.At(input.nodes[i].seen->end_ns);
    if (!seen.has_value()) seen = Interval{begin, end};
    seen->begin = std::min(seen->begin, begin);
    seen->end = std::max(seen->end, end);
  }
  return seen.value_or(Interval{});
}

ProcessReport OfProcess(const ProcessResult& process, timeline::Placement* placement,
                        const Interval& window) {
  ProcessReport report;
  report.name = process.name;
  report.command_line = process.command_line;
  report.job = process.job;
  report.role = process.role;
  report.part = process.part;
  report.pid = process.key.pid;
  report.rank = process.rank;
  report.end_known = process.end_known;
  report.cut_off = process.cut_off;
  report.events = process.found_events;
  report.counted_events = process.counted_events;
  report.lost = process.counted_lost;
  report.cost = process.cost;
  report.threads = process.threads;
  for (const timeline::ClockInterval& interval : process.coverage) {
    const TimelineTime begin = std::max(placement->At(interval.begin_ns), window.begin);
    const TimelineTime end = std::min(placement->At(interval.end_ns), window.end);
    if (begin >= end) continue;
    report.covered_ns += end.ns - begin.ns;
    report.coverage.push_back({begin, end});
    if (!report.covered_begin.has_value()) report.covered_begin = begin;
    report.covered_end = end;
  }
  if (process.ended_ns.has_value()) {
    report.ended = ProcessEnd{report.covered_end, placement->At(*process.ended_ns)};
  }
  report.missing_ns = std::max<int64_t>(0, window.end.ns - window.begin.ns - report.covered_ns);
  return report;
}

// How far the wall clocks of two nodes disagree at one instant: wall(b) - wall(a), less what really
// lies between the two readings.
std::optional<DurationEstimate> WallError(const AnalyseInput& input, uint32_t a, uint32_t b,
                                          TimelineTime at) {
  if (input.model == nullptr) return std::nullopt;
  const NodeFacts& facts_a = input.facts[a];
  const NodeFacts& facts_b = input.facts[b];
  if (!facts_a.wall_offset_ns.has_value() || !facts_b.wall_offset_ns.has_value()) {
    return std::nullopt;
  }
  const NodeTime time_a{facts_a.placement->clock(), facts_a.placement->ClockNs(at)};
  const NodeTime time_b{facts_b.placement->clock(), facts_b.placement->ClockNs(at)};
  const int64_t wall_ns =
      (time_b.ns + *facts_b.wall_offset_ns) - (time_a.ns + *facts_a.wall_offset_ns);
  const DurationEstimate truth = input.model->Difference(time_a, time_b);
  DurationEstimate error;
  error.est_ns = wall_ns - truth.est_ns;
  if (truth.bounded()) {
    error.lo_ns = wall_ns - truth.hi_ns;
    error.hi_ns = wall_ns - truth.lo_ns;
  }
  return error;
}

// Of a clock that files of profiles share: at the worst instant of all that they cover, as its
// bound grows between collectives. Between bends both ends of its interval are straight lines.
std::optional<int64_t> LargestBound(const AnalyseInput& input, const timeline::Placement& placement,
                                    const std::vector<timeline::ProfileResult>& profiles) {
  std::vector<int64_t> bends;
  if (input.model != nullptr) bends = input.model->BendsOf(placement.clock()).value_or(bends);
  std::optional<int64_t> largest_ns;
  for (const timeline::ProfileResult& profile : profiles) {
    if (!profile.begin.has_value() || !profile.end.has_value()) continue;
    const int64_t begin_ns = placement.ClockNs(*profile.begin);
    const int64_t end_ns = placement.ClockNs(*profile.end);
    std::vector<int64_t> at = {begin_ns, end_ns};
    std::copy_if(bends.begin(), bends.end(), std::back_inserter(at),
                 [&](int64_t ns) { return ns > begin_ns && ns < end_ns; });
    for (const int64_t ns : at) {
      const std::optional<int64_t> bound_ns = placement.BoundNs(ns);
      if (!bound_ns.has_value()) return std::nullopt;
      largest_ns = std::max(largest_ns.value_or(0), *bound_ns);
    }
  }
  return largest_ns;
}

NodeReport OfNode(const AnalyseInput& input, uint32_t index, const Interval& window) {
  const NodeResult& node = input.nodes[index];
  const NodeFacts& facts = input.facts[index];
  const TimelineTime middle{window.begin.ns + (window.end.ns - window.begin.ns) / 2};
  const Models models{input.model, input.likely};
  NodeReport report;
  report.name = node.name;
  report.role = facts.role;
  report.state = facts.state;
  report.failure = facts.failure;
  report.streams = node.streams;
  report.events = node.events;
  report.foreign_events = node.foreign_events;
  report.undecodable_events = node.undecodable_events;
  report.losses = node.losses;
  report.profiles = node.profiles;
  report.partitions = node.partitions;
  for (const timeline::ProcessDevices& process : node.devices) {
    for (DeviceReport& device : DevicesOf(process, input.window)) {
      report.devices.push_back(std::move(device));
    }
  }
  if (input.model != nullptr && facts.gate_opened.has_value() &&
      input.start_requested.has_value()) {
    report.start_skew = Difference(models, *input.start_requested, *facts.gate_opened);
  }
  if (input.model != nullptr && facts.gate_closed.has_value() && input.stop_requested.has_value()) {
    report.stop_skew = Difference(models, *input.stop_requested, *facts.gate_closed);
  }
  const int64_t middle_ns = facts.placement->ClockNs(middle);
  report.bound_ns = facts.placement->clock().kind == ClockKind::kRealtime
                        ? LargestBound(input, *facts.placement, node.profiles)
                        : facts.placement->BoundNs(middle_ns);
  if (input.likely != nullptr && input.likely->Knows(facts.placement->clock())) {
    const TimelineEstimate where = input.likely->Locate({facts.placement->clock(), middle_ns});
    if (where.bounded() && report.bound_ns.has_value()) report.likely_bound_ns = where.bound_ns();
  }
  if (input.reference.has_value() && *input.reference != index) {
    report.wall_error = WallError(input, *input.reference, index, middle);
  }
  for (const ProcessResult& process : node.processes) {
    report.processes.push_back(OfProcess(process, facts.placement, window));
  }
  return report;
}

void FillStatistics(StepSeries* series) {
  std::vector<int64_t> lengths;
  for (const Step& step : series->steps) lengths.push_back(step.end.ns - step.begin.ns);
  if (lengths.empty()) return;
  std::sort(lengths.begin(), lengths.end());
  series->min_ns = lengths.front();
  series->median_ns = lengths[lengths.size() / 2];
  series->max_ns = lengths.back();
  series->mean_ns = std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) /
                    static_cast<int64_t>(lengths.size());
}

// The step during which `time` lies, the pause behind a step belonging to it; -1 before the first
// and after the last.
int64_t StepAt(const std::vector<Step>& steps, TimelineTime time) {
  const auto after =
      std::upper_bound(steps.begin(), steps.end(), time,
                       [](TimelineTime instant, const Step& step) { return instant < step.begin; });
  const int64_t index = (after - steps.begin()) - 1;
  if (index + 1 == static_cast<int64_t>(steps.size()) && time >= steps.back().end) return -1;
  return index;
}

struct Building {
  StepGroup group;
  NodeTime node_begin;
  NodeTime node_end;
};

StepGroup::Inside DecideBy(const clocksync::ClockModel* model, const Step& step,
                           const Building& group) {
  if (model == nullptr) return StepGroup::Inside::kUndecided;
  const Ordering begin = model->Order(step.node_begin, group.node_begin);
  const Ordering end = model->Order(group.node_end, step.node_end);
  if (begin == Ordering::kAfter || end == Ordering::kAfter) return StepGroup::Inside::kNo;
  if (begin == Ordering::kBefore && end == Ordering::kBefore) return StepGroup::Inside::kYes;
  return StepGroup::Inside::kUndecided;
}

// What is proven; only where that is nothing, what the assumption makes likely.
StepGroup::Inside Decide(const AnalyseInput& input, const Step& step, const Building& group) {
  const StepGroup::Inside proven = DecideBy(input.model, step, group);
  if (proven != StepGroup::Inside::kUndecided) return proven;
  switch (DecideBy(input.likely, step, group)) {
    case StepGroup::Inside::kYes:
      return StepGroup::Inside::kLikely;
    case StepGroup::Inside::kNo:
      return StepGroup::Inside::kLikelyNot;
    default:
      return StepGroup::Inside::kUndecided;
  }
}

void Count(StepGroup::Inside inside, GroupSeries* series) {
  switch (inside) {
    case StepGroup::Inside::kYes:
      ++series->inside;
      break;
    case StepGroup::Inside::kNo:
      ++series->outside;
      break;
    case StepGroup::Inside::kLikely:
      ++series->likely_inside;
      break;
    case StepGroup::Inside::kLikelyNot:
      ++series->likely_outside;
      break;
    case StepGroup::Inside::kUndecided:
      ++series->undecided;
      break;
  }
}

GroupSeries GroupsOf(const AnalyseInput& input, const StepSeries& main, uint32_t node,
                     const std::vector<Cluster>& clusters, TimelineTime middle) {
  GroupSeries series;
  series.node = node;
  std::vector<Building> groups;
  for (const Cluster& cluster : clusters) {
    const TimelineTime centre{cluster.begin.ns + (cluster.end.ns - cluster.begin.ns) / 2};
    const int64_t step = StepAt(main.steps, centre);
    // What is done in the pause between two steps (an evaluation, say) belongs to neither.
    if (step < 0 || centre >= main.steps[static_cast<size_t>(step)].end) continue;
    if (groups.empty() || groups.back().group.step != static_cast<uint32_t>(step)) {
      StepGroup group;
      group.step = static_cast<uint32_t>(step);
      group.begin = cluster.begin;
      group.end = cluster.end;
      groups.push_back({group, cluster.node_begin, cluster.node_end});
    }
    Building& last = groups.back();
    last.group.tasks += cluster.tasks;
    if (cluster.end > last.group.end) {
      last.group.end = cluster.end;
      last.node_end = cluster.node_end;
    }
  }
  series.wall_shift = WallError(input, main.node, node, middle);
  for (Building& building : groups) {
    StepGroup& group = building.group;
    group.inside = Decide(input, main.steps[group.step], building);
    Count(group.inside, &series);
    if (series.wall_shift.has_value()) {
      const TimelineTime moved{group.begin.ns + (group.end.ns - group.begin.ns) / 2 +
                               series.wall_shift->est_ns};
      if (StepAt(main.steps, moved) != group.step) ++series.moved_by_wall_clock;
    }
    series.groups.push_back(group);
  }
  return series;
}

// The step that a process makes, else that of the main series.
std::optional<int64_t> StepOf(const Report& report, uint32_t node, const ProcessReport& process) {
  if (report.steps.empty()) return std::nullopt;
  for (const StepSeries& series : report.steps) {
    if (series.node == node && series.process == process.name) return series.median_ns;
  }
  // What a launcher or a loader worker spends is no part of its ranks' steps.
  if (process.part == kPartLauncher || process.part == kPartLoaderWorker) return std::nullopt;
  return report.steps.front().median_ns;
}

// In which its cost arose. One that stands still was on until the window's end, behind its last
// event.
int64_t OnNs(const Report& report, const ProcessReport& process) {
  if (process.end_known || process.cut_off || process.ended || !process.covered_end) {
    return process.covered_ns;
  }
  return process.covered_ns + std::max<int64_t>(0, report.window_end.ns - process.covered_end->ns);
}

NodeReceipt ReceiptOf(const Report& report, uint32_t node, const NodeFacts& facts) {
  NodeReceipt receipt;
  receipt.name = report.nodes[node].name;
  receipt.trace_bytes = facts.trace_bytes;
  receipt.discarded_events = facts.discarded_events;
  receipt.lost_packets = facts.lost_packets;
  for (const timeline::ProfileResult& profile : report.nodes[node].profiles) {
    if (profile.events == 0) continue;
    receipt.kineto |= profile.profiler == timeline::Profiler::kKineto;
    receipt.tensorflow_profiler |= profile.profiler == timeline::Profiler::kTensorFlow;
    receipt.jax |= profile.profiler == timeline::Profiler::kJax;
  }
  for (const ProcessReport& process : report.nodes[node].processes) {
    receipt.processes.push_back({.name = process.name,
                                 .part = process.part,
                                 .job = process.job,
                                 .rank = process.rank,
                                 .events = process.counted_events.value_or(process.events),
                                 .covered_ns = OnNs(report, process),
                                 .cost = process.cost,
                                 .step_ns = StepOf(report, node, process)});
  }
  return receipt;
}

// The samples of a node know its processes by their keys, the timeline by their names.
MachineReport MachineOf(const AnalyseInput& input, uint32_t node, const MachineUsage& usage) {
  MachineReport machine;
  machine.node = node;
  machine.window_ns = usage.window_ns;
  machine.others = usage.others;
  for (const ProcessResult& process : input.nodes[node].processes) {
    ProcessKey key = process.key;
    key.node = 0;
    const auto found = std::find_if(usage.processes.begin(), usage.processes.end(),
                                    [&key](const ProcessUsage& one) { return one.process == key; });
    if (found == usage.processes.end()) continue;
    machine.processes.push_back({process.name, process.part, process.rank, *found});
  }
  return machine;
}

// Likewise who used a device.
DeviceHealth HealthAt(const AnalyseInput& input, uint32_t node, DeviceHealth health) {
  health.node = node;
  for (DeviceUserReport& user : health.users) {
    for (const ProcessResult& process : input.nodes[node].processes) {
      ProcessKey key = process.key;
      key.node = 0;
      if (key != user.process) continue;
      user.name = process.name;
      user.rank = process.rank;
    }
  }
  return health;
}

// What both have; each in order.
std::vector<Interval> Common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const TimelineTime begin = std::max(a[i].begin, b[j].begin);
    const TimelineTime end = std::min(a[i].end, b[j].end);
    if (begin < end) common.push_back({begin, end});
    ++(a[i].end < b[j].end ? i : j);
  }
  return common;
}

// Of each rank of each job on each node the process with the most events.
std::vector<const ProcessReport*> RanksOf(const Report& report) {
  std::map<std::tuple<std::string, std::string, int32_t>, const ProcessReport*> ranks;
  for (const NodeReport& node : report.nodes) {
    for (const ProcessReport& process : node.processes) {
      if (process.rank < 0) continue;
      // A child stays: where a rank is a wrapper, the child is who trains.
      if (process.part == kPartLauncher || process.part == kPartLoaderWorker) continue;
      const ProcessReport*& rank = ranks[{node.name, process.job, process.rank}];
      if (rank == nullptr || process.events > rank->events) rank = &process;
    }
  }
  std::vector<const ProcessReport*> found;
  for (const auto& [key, process] : ranks) found.push_back(process);
  return found;
}

void FillCommonCoverage(Report* report) {
  std::vector<const ProcessReport*> all = RanksOf(*report);
  report->ranks = all.size();
  for (const NodeReport& node : report->nodes) {
    if (report->ranks > 0) break;
    for (const ProcessReport& process : node.processes) all.push_back(&process);
  }
  for (const ProcessReport* process : all) {
    report->common_coverage = process == all.front()
                                  ? process->coverage
                                  : Common(report->common_coverage, process->coverage);
  }
}

Report AnalyseWith(const AnalyseInput& input, const SummarySink& summary) {
  const Models models{input.model, input.likely};
  Report report;
  report.assumption = input.assumption;
  const Interval window = WindowOf(input);
  const TimelineTime middle{window.begin.ns + (window.end.ns - window.begin.ns) / 2};
  report.window_begin = window.begin;
  report.window_end = window.end;
  for (uint32_t i = 0; i < input.nodes.size(); ++i) {
    report.nodes.push_back(OfNode(input, i, window));
    report.events += input.nodes[i].events;
    report.incomplete = report.incomplete || !input.nodes[i].losses.empty() ||
                        input.nodes[i].undecodable_events > 0;
  }
  if (input.reference.has_value()) report.reference = input.nodes[*input.reference].name;
  report.tensors = SummariseTensors(input.nodes, models);
  report.communicators = CommunicatorsOf(input.nodes, models, window);
  std::vector<std::optional<int64_t>> wall_offsets_ns;
  for (const NodeFacts& facts : input.facts) wall_offsets_ns.push_back(facts.wall_offset_ns);
  report.messages = SummariseMessages(input.nodes, wall_offsets_ns, models);
  if (input.collectives != nullptr) {
    report.collectives = SummariseCollectives(*input.collectives, models);
  }
  if (input.transfers != nullptr) {
    report.transfers = SummariseTransfers(*input.transfers, models);
  }
  FillCommonCoverage(&report);
  for (SummarySink::Total& total : summary.TakeTotals()) {
    total.total.node = report.nodes[total.node].name;
    report.tasks.push_back(std::move(total.total));
  }
  for (SummarySink::Series& series : summary.TakeSteps()) {
    FillStatistics(&series.series);
    report.steps.push_back(std::move(series.series));
  }
  for (uint32_t i = 0; i < input.nodes.size(); ++i) {
    report.receipt.push_back(ReceiptOf(report, i, input.facts[i]));
    const std::optional<MachineUsage>& usage = input.facts[i].usage;
    if (usage.has_value()) report.machines.push_back(MachineOf(input, i, *usage));
    for (const DeviceHealth& health : input.facts[i].health) {
      report.health.push_back(HealthAt(input, i, health));
    }
    if (input.facts[i].scheduling.has_value()) {
      report.scheduling.push_back(Named(*input.facts[i].scheduling, i, input.nodes[i].processes));
    }
  }
  report.network = NetworkOf(input.nodes, input.facts);
  if (report.steps.empty()) return report;
  const StepSeries& main = report.steps.front();
  for (const auto& [node, busy] : summary.busy()) {
    const bool marks_steps =
        std::any_of(report.steps.begin(), report.steps.end(),
                    [node = node](const StepSeries& series) { return series.node == node; });
    if (marks_steps) continue;
    GroupSeries groups = GroupsOf(input, main, node, busy.clusters(), middle);
    if (!groups.groups.empty()) report.groups.push_back(std::move(groups));
  }
  return report;
}

}  // namespace

std::vector<NetworkLink> NetworkOf(std::span<const timeline::NodeResult> nodes,
                                   std::span<const NodeFacts> facts,
                                   const std::optional<std::string>& job) {
  std::vector<NodeConnections> connections(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    std::map<ProcessKey, NetworkEnd> known;
    for (const ProcessResult& process : nodes[i].processes) {
      if (job.has_value() && process.job != *job) continue;
      ProcessKey key = process.key;
      key.node = 0;
      // Children and workers of loaders have the number of their rank.
      const bool is_rank = process.part.empty() || process.part == kPartRank;
      known[key] = {nodes[i].name, process.name, is_rank ? process.rank : -1};
    }
    connections[i].usages = facts[i].connections;
    for (const ConnectionUsage& usage : facts[i].connections) {
      const auto found = known.find(usage.process);
      connections[i].ends.push_back(found == known.end() ? std::nullopt
                                                         : std::optional(found->second));
    }
  }
  return LinksOf(connections);
}

Report Analyse(const AnalyseInput& input, const SummarySink& summary) {
  Report report = AnalyseWith(input, summary);
  const Contradictions found = ContradictionsOf(report);
  if (found.proven == 0 && found.likely == 0) return report;
  AnalyseInput without = input;
  without.likely = nullptr;
  if (found.likely > 0) {
    without.assumption.refuted_by =
        absl::StrCat(found.likely, " of the recorded messages, tensors, transfers and collectives ",
                     found.likely == 1 ? "contradicts it" : "contradict it");
  }
  if (found.proven == 0) return AnalyseWith(without, summary);
  // Nothing across nodes is proven by bounds that do not hold.
  without.model = nullptr;
  Report undecided = AnalyseWith(without, summary);
  KeepContradictions(report, &undecided);
  return undecided;
}

}  // namespace syncline::analysis
