// SPDX-License-Identifier: Apache-2.0
#include "analysis/devices.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace syncline::analysis {
namespace {

using timeline::DeviceWork;
using timeline::ProcessDevices;

// A stretch in which the device did one thing.
struct Stretch {
  TimelineTime begin;
  TimelineTime end;
  bool idle = false;
  DeviceWork::Kind kind = DeviceWork::Kind::kCompute;  // of what counts, where not idle
  std::optional<TimelineTime> launched;                // of the work that ends an idle one
};

// From the first begin to the last end without a gap. `work` by begin.
class Stretches {
 public:
  explicit Stretches(const std::vector<const DeviceWork*>& work) {
    for (const DeviceWork* one : work) {
      CloseUntil(one->begin);
      // Not by the last stretch: work without a length makes none.
      if (open_count_ == 0 && at_.ns != kUnknownLo && at_ < one->begin) {
        made_.push_back({at_, one->begin, true, {}, one->launched});
      }
      if (open_count_ == 0) at_ = one->begin;
      Advance(one->begin);
      Open(*one);
    }
    CloseUntil({kUnknownHi});
  }

  std::vector<Stretch> Take() { return std::move(made_); }

 private:
  void Open(const DeviceWork& work) {
    ends_.insert({work.end, work.kind});
    ++open_[static_cast<size_t>(work.kind)];
    ++open_count_;
  }

  void CloseUntil(TimelineTime time) {
    while (!ends_.empty() && ends_.begin()->first <= time) {
      const auto [end, kind] = *ends_.begin();
      Advance(end);
      ends_.erase(ends_.begin());
      --open_[static_cast<size_t>(kind)];
      --open_count_;
    }
  }

  // What is open was so until `time`.
  void Advance(TimelineTime time) {
    if (open_count_ == 0 || time <= at_) return;
    size_t kind = 0;
    while (open_[kind] == 0) ++kind;
    made_.push_back({at_, time, false, static_cast<DeviceWork::Kind>(kind), {}});
    at_ = time;
  }

  std::vector<Stretch> made_;
  std::multimap<TimelineTime, DeviceWork::Kind> ends_;  // of what is open
  std::array<uint64_t, 3> open_ = {};                   // by kind, the one that counts first
  uint64_t open_count_ = 0;
  TimelineTime at_{kUnknownLo};
};

static_assert(DeviceWork::Kind::kCompute < DeviceWork::Kind::kCollective &&
              DeviceWork::Kind::kCollective < DeviceWork::Kind::kCopy);

// How much of [begin, end) lies in `intervals`, which are by begin and apart from each other.
int64_t CoveredNs(const std::vector<timeline::Interval>& intervals, TimelineTime begin,
                  TimelineTime end) {
  auto at = std::partition_point(
      intervals.begin(), intervals.end(),
      [&](const timeline::Interval& interval) { return interval.end <= begin; });
  int64_t covered_ns = 0;
  for (; at != intervals.end() && at->begin < end; ++at) {
    covered_ns += std::min(at->end, end).ns - std::max(at->begin, begin).ns;
  }
  return covered_ns;
}

// `intervals` as above.
bool OneBeginsIn(const timeline::Interval& within,
                 const std::vector<timeline::Interval>& intervals) {
  const auto first = std::partition_point(
      intervals.begin(), intervals.end(),
      [&](const timeline::Interval& interval) { return interval.begin < within.begin; });
  return first != intervals.end() && within.Contains(first->begin);
}

// What the program did in its step.
void SetProgram(const ProcessDevices& process, const timeline::ProgramStep& program,
                DeviceStep* step) {
  step->name = program.name;
  step->program = {program.begin, program.end};
  const auto covered_ns = [&](const std::vector<timeline::Interval>& intervals) {
    return CoveredNs(intervals, program.begin, program.end);
  };
  step->program_ns = program.end.ns - program.begin.ns - covered_ns(process.blocked);
  step->program_loading_ns = covered_ns(process.loading);
  step->program_collectives_ns = covered_ns(process.host_collectives);
  step->peer_to_peer = OneBeginsIn(step->program, process.sends);
}

void AddIdle(const Stretch& stretch, const std::vector<timeline::Interval>& loading,
             DeviceUse* use) {
  const int64_t idle_ns = stretch.end.ns - stretch.begin.ns;
  if (!stretch.launched.has_value()) {
    use->unknown_ns += idle_ns;
    return;
  }
  const int64_t waited_ns =
      std::clamp<int64_t>(stretch.launched->ns - stretch.begin.ns, 0, idle_ns);
  use->unlaunched_ns += waited_ns;
  use->loading_ns += CoveredNs(loading, stretch.begin, TimelineTime{stretch.begin.ns + waited_ns});
  use->unstarted_ns += idle_ns - waited_ns;
}

void AddBusy(DeviceWork::Kind kind, int64_t ns, DeviceUse* use) {
  switch (kind) {
    case DeviceWork::Kind::kCompute:
      use->computing_ns += ns;
      break;
    case DeviceWork::Kind::kCollective:
      use->communication_ns += ns;
      break;
    case DeviceWork::Kind::kCopy:
      use->copies_ns += ns;
      break;
  }
}

// The step in which `time` lies; -1: none.
ptrdiff_t StepAt(const std::vector<timeline::ProgramStep>& steps, TimelineTime time) {
  const auto after = std::upper_bound(
      steps.begin(), steps.end(), time,
      [](TimelineTime at, const timeline::ProgramStep& step) { return at < step.begin; });
  if (after == steps.begin() || time >= std::prev(after)->end) return -1;
  return after - steps.begin() - 1;
}

// Whether the program went on without a pause from one of its steps to another one behind it.
// Profiles of several windows have pauses, in which the device may have done anything.
// An optimizer's steps begin where the one before ends.
bool Follows(const ProcessDevices& process, ptrdiff_t from, ptrdiff_t to) {
  const std::vector<timeline::ProgramStep>& steps = process.steps;
  const bool joined = process.steps_by == timeline::StepsBy::kOptimizer;
  for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i) {
    const int64_t length_ns = joined ? 0 : steps[i].end.ns - steps[i].begin.ns;
    if (steps[i + 1].begin.ns - steps[i].end.ns > length_ns) return false;
  }
  return true;
}

// Whether work is of the step in which it was launched.
bool StepsByLaunch(const ProcessDevices& process) {
  return process.steps_by != timeline::StepsBy::kDevice &&
         process.steps_by != timeline::StepsBy::kTable;
}

// Of the work; -1: none, or it is not known.
ptrdiff_t StepOf(const ProcessDevices& process, const DeviceWork& work) {
  if (!StepsByLaunch(process))
    return work.step.has_value() ? static_cast<ptrdiff_t>(*work.step) : -1;
  return work.launched.has_value() ? StepAt(process.steps, *work.launched) : -1;
}

// The device's steps, without what it did in them.
std::vector<DeviceStep> StepsOf(const ProcessDevices& process,
                                const std::vector<const DeviceWork*>& work) {
  std::map<ptrdiff_t, DeviceStep> by_step;
  for (const DeviceWork* one : work) {
    const ptrdiff_t step = StepOf(process, *one);
    if (step < 0) continue;
    const auto [found, is_new] = by_step.try_emplace(step);
    if (is_new) {
      SetProgram(process, process.steps[static_cast<size_t>(step)], &found->second);
      found->second.begin = one->begin;
      found->second.end = one->end;
    }
    ++found->second.work;
    if (one->kind == DeviceWork::Kind::kCollective) ++found->second.collectives;
    found->second.peer_to_peer |= one->peer_to_peer;
    found->second.end = std::max(found->second.end, one->end);
  }
  std::vector<DeviceStep> steps;
  ptrdiff_t before = 0;
  for (auto& [index, step] : by_step) {
    // Queues may begin a later step's work first: then the earlier step has no time of its own.
    if (!steps.empty()) {
      step.begin = std::max(step.begin, steps.back().begin);
      // What is known of a device's own steps, or a table's, does not tell a pause from idle time.
      const bool follows = !StepsByLaunch(process) || Follows(process, before, index);
      steps.back().last = !follows;
      steps.back().end = follows ? step.begin : std::min(steps.back().end, step.begin);
    }
    step.last = true;
    steps.push_back(std::move(step));
    before = index;
  }
  std::erase_if(steps, [](const DeviceStep& step) { return step.begin >= step.end; });
  return steps;
}

void Fill(const std::vector<Stretch>& stretches, const std::vector<timeline::Interval>& loading,
          std::vector<DeviceStep>* steps) {
  size_t next = 0;
  for (DeviceStep& step : *steps) {
    while (next < stretches.size() && stretches[next].end <= step.begin) ++next;
    for (size_t i = next; i < stretches.size() && stretches[i].begin < step.end; ++i) {
      Stretch part = stretches[i];
      part.begin = std::max(part.begin, step.begin);
      part.end = std::min(part.end, step.end);
      if (part.idle) {
        AddIdle(part, loading, &step.use);
      } else {
        AddBusy(part.kind, part.end.ns - part.begin.ns, &step.use);
      }
    }
  }
}

std::vector<DeviceOperator> OperatorsOf(const ProcessDevices& process,
                                        const std::vector<const DeviceWork*>& work) {
  struct Sum {
    uint64_t count = 0;
    int64_t total_ns = 0;
    std::map<uint32_t, int64_t> by_kernel;
  };
  std::map<uint32_t, Sum> sums;
  for (const DeviceWork* one : work) {
    Sum& sum = sums[one->operator_name];
    const int64_t ns = one->end.ns - one->begin.ns;
    ++sum.count;
    sum.total_ns += ns;
    sum.by_kernel[one->name] += ns;
  }
  std::vector<DeviceOperator> operators;
  for (const auto& [name, sum] : sums) {
    const auto longest =
        std::max_element(sum.by_kernel.begin(), sum.by_kernel.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    operators.push_back(
        {process.texts[name], sum.count, sum.total_ns, process.texts[longest->first]});
  }
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  return operators;
}

void Count(const ProcessDevices& process, const std::vector<const DeviceWork*>& work,
           DeviceReport* report) {
  report->work = work.size();
  for (const DeviceWork* one : work) {
    const bool known = one->launched.has_value() || !StepsByLaunch(process);
    if (report->has_steps && known && StepOf(process, *one) < 0) ++report->outside_steps;
    if (!one->launched.has_value()) {
      ++report->without_launch;
      continue;
    }
    if (!process.texts[one->operator_name].empty()) continue;
    const bool recorded = !one->operator_unknown && process.operators.has_value() &&
                          process.operators->Contains(*one->launched);
    ++(recorded ? report->outside_operators : report->without_operators);
  }
}

}  // namespace

std::vector<DeviceReport> DevicesOf(const ProcessDevices& process,
                                    const std::optional<timeline::Interval>& window) {
  std::vector<DeviceReport> reports;
  for (uint32_t device = 0; device < process.devices.size(); ++device) {
    std::vector<const DeviceWork*> work;
    std::vector<const DeviceWork*> counted;
    for (const DeviceWork& one : process.work) {
      if (one.device != device) continue;
      work.push_back(&one);
      if (!window.has_value() || window->Contains(one.begin)) counted.push_back(&one);
    }
    DeviceReport report;
    report.process = process.process;
    report.device = process.devices[device];
    report.has_steps = !process.steps.empty();
    report.steps_by = process.steps_by;
    report.unfinished = device == 0 ? process.unfinished : 0;
    Count(process, counted, &report);
    report.operators = OperatorsOf(process, counted);
    const std::vector<Stretch> stretches = Stretches(work).Take();
    if (report.has_steps) {
      report.steps = StepsOf(process, work);
      std::erase_if(report.steps, [&](const DeviceStep& step) {
        return window.has_value() && (step.begin < window->begin || step.end > window->end);
      });
    } else if (!stretches.empty()) {
      DeviceStep all;
      all.begin = stretches.front().begin;
      all.end = stretches.back().end;
      all.work = report.work;
      if (window.has_value()) {
        all.begin = std::max(all.begin, window->begin);
        all.end = std::min(all.end, window->end);
      }
      if (all.begin < all.end) report.steps.push_back(std::move(all));
    }
    Fill(stretches, process.loading, &report.steps);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace syncline::analysis
