// SPDX-License-Identifier: Apache-2.0
#include "analysis/against/recording_sums.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/against/members.h"
#include "common/process_part.h"

namespace syncline::analysis::against {
namespace {

// Steps of one name, of all who mark it: the mean of their k-th steps. Ranks of a job step
// together, and where one has a step more than another at the ends, the last ones are left out.
class StepRows {
 public:
  void Add(const std::string& name, std::vector<int64_t> ns) {
    if (ns.empty()) return;
    marks_[name].push_back(std::move(ns));
  }

  std::vector<StepLengths> Take() const {
    std::vector<StepLengths> rows;
    for (const auto& [name, marks] : marks_) {
      size_t steps = SIZE_MAX;
      for (const std::vector<int64_t>& one : marks) steps = std::min(steps, one.size());
      StepLengths& row = rows.emplace_back();
      row.name = name;
      row.marked_by = marks.size();
      for (size_t i = 0; i < steps; ++i) {
        int64_t sum_ns = 0;
        for (const std::vector<int64_t>& one : marks) sum_ns += one[i];
        row.ns.push_back(sum_ns / static_cast<int64_t>(marks.size()));
      }
    }
    return rows;
  }

 private:
  std::map<std::string, std::vector<std::vector<int64_t>>> marks_;
};

void AddDevice(const DeviceReport& device, StepRows* rows) {
  if (!device.has_steps) return;
  std::vector<int64_t> step;
  std::vector<int64_t> computing;
  std::vector<int64_t> communication;
  std::vector<int64_t> copies;
  std::vector<int64_t> idle;
  for (const DeviceStep& one : device.steps) {
    if (one.last) continue;  // it ends with its work
    step.push_back(one.duration_ns());
    computing.push_back(one.use.computing_ns);
    communication.push_back(one.use.communication_ns);
    copies.push_back(one.use.copies_ns);
    idle.push_back(one.use.idle_ns());
  }
  rows->Add(device.device + ": step", std::move(step));
  rows->Add(device.device + ": computing", std::move(computing));
  rows->Add(device.device + ": exposed communication", std::move(communication));
  rows->Add(device.device + ": exposed copies", std::move(copies));
  rows->Add(device.device + ": idle", std::move(idle));
}

std::vector<StepLengths> StepsOf(const Report& report) {
  StepRows rows;
  for (const StepSeries& series : report.steps) {
    std::vector<int64_t> ns;
    for (const Step& step : series.steps) ns.push_back(step.end.ns - step.begin.ns);
    rows.Add(series.domain.empty() ? series.name : series.domain + " · " + series.name,
             std::move(ns));
  }
  for (const NodeReport& node : report.nodes) {
    for (const DeviceReport& device : node.devices) AddDevice(device, &rows);
  }
  return rows.Take();
}

// "python train.py" of "/usr/bin/python train.py --seed 3": what runs, not how it is called today.
std::string ProgramOf(const std::string& command_line) {
  std::string program;
  for (size_t begin = 0; begin < command_line.size();) {
    const size_t end = std::min(command_line.find(' ', begin), command_line.size());
    const std::string word = command_line.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    if (word.starts_with("-")) continue;
    const std::string base = word.substr(word.rfind('/') + 1);
    if (!program.empty() && base.find('.') == std::string::npos) break;
    absl::StrAppend(&program, program.empty() ? "" : " ", base);
    if (base.ends_with(".py")) break;
  }
  return program;
}

std::vector<Condition> ConditionsOf(const Report& report) {
  int64_t sampled_ns = 0;
  int64_t waiting_ns = 0;
  int64_t throttled_ns = 0;
  int64_t blocked_ns = 0;
  bool blocked_known = true;
  for (const MachineReport& machine : report.machines) {
    for (const MachineReport::Process& process : machine.processes) {
      const bool is_rank = process.rank >= 0 && (process.part.empty() || process.part == kPartRank);
      if (report.ranks > 0 && !is_rank) continue;
      const ProcessUsage& usage = process.usage;
      sampled_ns += usage.sampled_ns;
      waiting_ns += usage.waiting_ns;
      throttled_ns += usage.throttled_ns;
      blocked_ns += usage.blocked_ns.value_or(0);
      blocked_known = blocked_known && usage.blocked_ns.has_value();
    }
  }
  if (sampled_ns <= 0) return {};
  const auto ppm = [&](int64_t ns) {
    return static_cast<int64_t>(static_cast<double>(ns) * 1e6 / static_cast<double>(sampled_ns));
  };
  std::vector<Condition> conditions = {{Condition::Kind::kWaiting, ppm(waiting_ns)},
                                       {Condition::Kind::kThrottled, ppm(throttled_ns)}};
  if (blocked_known) conditions.push_back({Condition::Kind::kBlocked, ppm(blocked_ns)});
  return conditions;
}

// The largest of both ends' bounds, of nodes that differ.
std::optional<int64_t> ClockNs(const Report& report, const timeline::Collective& collective) {
  std::set<uint32_t> nodes;
  for (const timeline::CollectiveMember& member : collective.members) nodes.insert(member.node);
  if (nodes.size() < 2) return 0;
  int64_t largest_ns = 0;
  for (const uint32_t node : nodes) {
    if (!report.nodes[node].bound_ns.has_value()) return std::nullopt;
    largest_ns = std::max(largest_ns, *report.nodes[node].bound_ns);
  }
  return 2 * largest_ns;
}

class CollectiveRows {
 public:
  CollectiveRows(const Report& report, Recording* recording)
      : report_(report), recording_(*recording) {}

  void Add() {
    const timeline::Collectives& found = report_.collectives.found;
    for (const timeline::Collective& one : found.collectives) {
      if (!one.members.empty()) AddOne(one, found.groups[one.group]);
    }
    for (auto& [name, sums] : rows_) {
      for (int64_t& ns : sums.ns) ns = recording_.units.PerOne(ns);
      const double ones = std::max(1.0, recording_.units.Ones());
      sums.clock_ns = static_cast<int64_t>(static_cast<double>(sums.clock_ns) / ones) +
                      (sums.clock_ns > 0 ? 1 : 0);
      if (!unbounded_.contains(name)) recording_.rows[name] = std::move(sums);
    }
  }

 private:
  void AddOne(const timeline::Collective& collective, const timeline::CollectiveGroup& group) {
    TimelineTime begin = collective.members.front().entered_at;
    for (const auto& member : collective.members) begin = std::min(begin, member.entered_at);
    const std::optional<size_t> unit = recording_.units.At(begin, &hint_);
    const bool whole = std::all_of(collective.members.begin(), collective.members.end(),
                                   [](const auto& member) { return member.left.has_value(); });
    if (!unit.has_value() || !whole) return;
    const std::string& named = group.description.empty() ? group.name : group.description;
    Sums& stay = RowOf({RowKind::kCollective, named, collective.name});
    ++stay.calls;
    const bool of_all = group.size == recording_.members.size() && recording_.has_ranks;
    std::optional<TimelineTime> last_in;
    std::optional<TimelineTime> last_out;
    for (const timeline::CollectiveMember& member : collective.members) {
      const int64_t ns = member.left->ns - member.entered.ns;
      stay.ns[*unit] += ns;
      if (of_all && member.rank >= 0 && static_cast<size_t>(member.rank) < stay.member_ns.size()) {
        stay.member_ns[static_cast<size_t>(member.rank)] += ns;
      }
      last_in = std::max(last_in.value_or(member.entered_at), member.entered_at);
      last_out = std::max(last_out.value_or(*member.left_at), *member.left_at);
    }
    if (collective.members.size() != group.size || group.size < 2) return;
    const RowName name{RowKind::kAllIn, named, collective.name};
    const std::optional<int64_t> clock_ns = ClockNs(report_, collective);
    if (!clock_ns.has_value()) {
      unbounded_.insert(name);
      return;
    }
    Sums& together = RowOf(name);
    ++together.calls;
    together.ns[*unit] += last_out->ns - last_in->ns;
    together.clock_ns += *clock_ns;
  }

  Sums& RowOf(const RowName& name) {
    Sums& sums = rows_[name];
    sums.ns.resize(recording_.units.size());
    if (name.kind != RowKind::kAllIn) sums.member_ns.resize(recording_.members.size());
    return sums;
  }

  const Report& report_;
  Recording& recording_;
  size_t hint_ = 0;
  std::map<RowName, Sums> rows_;
  std::set<RowName> unbounded_;
};

}  // namespace

Recording RecordingOf(const Report& report, Per per) {
  Recording recording;
  recording.id = report.recording_id;
  recording.detail = report.detail;
  recording.incomplete = report.incomplete;
  for (const timeline::Interval& one : CoverageOf(report)) {
    recording.counted_ns += one.end.ns - one.begin.ns;
  }
  recording.nodes = report.nodes.size();
  recording.members = MembersOf(report);
  recording.has_ranks = report.ranks > 0;
  recording.units = UnitsOf(report, per);
  recording.step_name = PeriodsOf(report).name;
  recording.steps = StepsOf(report);
  recording.conditions = ConditionsOf(report);
  recording.edges = EdgesOf(report, recording.units);
  for (const NodeReport& node : report.nodes) {
    recording.processes += node.processes.empty() ? node.profiles.size() : node.processes.size();
    recording.has_processes |= !node.processes.empty();
    for (const ProcessReport& process : node.processes) {
      std::string program = ProgramOf(process.command_line);
      if (!program.empty()) recording.programs.push_back(std::move(program));
    }
  }
  std::sort(recording.programs.begin(), recording.programs.end());
  recording.programs.erase(std::unique(recording.programs.begin(), recording.programs.end()),
                           recording.programs.end());
  CollectiveRows(report, &recording).Add();
  return recording;
}

}  // namespace syncline::analysis::against
