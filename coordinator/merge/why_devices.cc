// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why_devices.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analysis/why/device_explain.h"
#include "analysis/why/device_steps.h"

namespace syncline::merge {
namespace {

namespace why = analysis::why;

// Of the groups with all ranks of the job, the one in which most is launched: numbers of one group
// are the same on all ranks.
std::optional<uint32_t> GroupOfAll(const WhyJob& job, const timeline::BuiltTimeline& built) {
  std::map<uint32_t, uint64_t> launches;
  for (const why::RankInput& rank : job.input.ranks) {
    for (const why::CollectiveEntry& entry : rank.collectives) {
      if (entry.transfer) continue;
      const uint32_t size = built.collectives.groups[entry.group].size;
      if (size == job.input.ranks.size()) ++launches[entry.group];
    }
  }
  const auto most =
      std::max_element(launches.begin(), launches.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == launches.end()) return std::nullopt;
  return most->first;
}

// The ranks, with named steps; none: no device of the job did anything that was recorded.
std::vector<why::DeviceRank> DeviceRanksOf(const WhyJob& job, std::optional<uint32_t> group,
                                           const OpenedInputs& inputs,
                                           timeline::BuiltTimeline* built) {
  std::vector<why::DeviceRank> ranks;
  bool any = false;
  for (size_t i = 0; i < job.input.ranks.size(); ++i) {
    const why::RankInput& given = job.input.ranks[i];
    timeline::ProcessDevices* const devices = DevicesOf(job.processes[i], built);
    any = any || (devices != nullptr && !devices->work.empty());
    if (devices != nullptr) {
      timeline::Placement& placement = *inputs.facts[job.processes[i].node].placement;
      std::vector<why::NumberedLaunch> launches;
      for (const why::CollectiveEntry& entry : given.collectives) {
        if (entry.group != group) continue;
        launches.push_back({placement.At(entry.entered_ns), entry.number});
      }
      why::NameSteps(launches, devices);
    }
    why::DeviceRank& rank = ranks.emplace_back();
    rank.rank = given.rank;
    rank.source = given.node;
    rank.devices = devices;
    rank.recorded = true;
  }
  if (!any) ranks.clear();
  return ranks;
}

// Without a group of all ranks that launches anything their steps have no names. `judged`: an
// answer, or a side of a comparison.
template <class Judged>
void CheckGroup(std::optional<uint32_t> group, size_t ranks, Judged* judged) {
  if (judged->refusal != why::DeviceRefusal::kNoSteps || group.has_value() || ranks < 2) return;
  judged->refusal = why::DeviceRefusal::kRanksDisagree;
  judged->refusal_text =
      "no process group of all ranks launches collectives in the window: the steps of ranks are "
      "paired by their numbers";
}

// Why something of the rank's profile is not here; empty: all is.
std::string AbsenceOf(const ProcessKey& process, const timeline::BuiltTimeline& built) {
  for (const timeline::ProfileResult& profile : built.nodes[process.node].profiles) {
    if (profile.process == process && !profile.absence.empty()) return profile.absence;
  }
  return "";
}

template <class Judged>
void AddAbsences(const WhyJob& job, const timeline::BuiltTimeline& built,
                 std::span<const why::DeviceRank> ranks, Judged* judged) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::string absence = AbsenceOf(job.processes[i], built);
    if (absence.empty()) continue;
    judged->incomplete = true;
    const std::string text = absl::StrCat("rank ", ranks[i].rank, " (", ranks[i].source,
                                          "): a part of its profile is missing: ", absence);
    const bool nothing = ranks[i].devices == nullptr || ranks[i].devices->work.empty();
    if (nothing && judged->refusal == why::DeviceRefusal::kNoDeviceWork) {
      judged->refusal_text = text;
    }
    judged->notes.push_back(text);
  }
}

// A device that has more to do than others gets warmer and draws more power: there, that it is held
// back may be an effect, and says nothing of why it takes longer.
bool IsSlowerAtTheSameWork(const why::DeviceCause& cause) {
  return cause.part == why::DevicePart::kComputing && cause.work.has_value() &&
         cause.work->is_comparable && !cause.work->is_more_work();
}

}  // namespace

const analysis::DeviceHealth* HealthOf(const ProcessKey& process, const OpenedInputs& inputs) {
  const analysis::DeviceHealth* found = nullptr;
  ProcessKey key = process;
  key.node = 0;
  for (const analysis::DeviceHealth& health : inputs.facts[process.node].health) {
    const bool uses = std::any_of(health.users.begin(), health.users.end(),
                                  [&](const auto& user) { return user.process == key; });
    if (!uses) continue;
    if (found != nullptr) return nullptr;
    found = &health;
  }
  return found;
}

timeline::ProcessDevices* DevicesOf(const ProcessKey& process, timeline::BuiltTimeline* built) {
  std::vector<timeline::ProcessDevices>& all = built->nodes[process.node].devices;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const timeline::ProcessDevices& devices) {
        // What `run --devices` recorded is not judged yet: its steps are no PyTorch's.
        return devices.key == process && devices.steps_by != timeline::StepsBy::kTask;
      });
  return found == all.end() ? nullptr : &*found;
}

std::optional<why::DeviceAnswer> ExplainDevicesOf(const WhyJob& job, const OpenedInputs& inputs,
                                                  timeline::BuiltTimeline* built) {
  if (!job.conflict.empty() || !job.missing_ranks.empty()) return std::nullopt;
  const std::optional<uint32_t> group = GroupOfAll(job, *built);
  const std::vector<why::DeviceRank> ranks = DeviceRanksOf(job, group, inputs, built);
  if (ranks.empty()) return std::nullopt;
  why::DeviceAnswer answer = why::ExplainDevices(ranks);
  answer.incomplete = answer.incomplete || job.input.incomplete;
  CheckGroup(group, ranks.size(), &answer);
  AddAbsences(job, *built, ranks, &answer);
  AddHeldBack(job, inputs, &answer);
  return answer;
}

std::optional<why::DeviceSide> DeviceSideOf(const WhyJob& job, const OpenedInputs& inputs,
                                            timeline::BuiltTimeline* built) {
  if (!job.conflict.empty() || !job.missing_ranks.empty()) return std::nullopt;
  const std::optional<uint32_t> group = GroupOfAll(job, *built);
  const std::vector<why::DeviceRank> ranks = DeviceRanksOf(job, group, inputs, built);
  if (ranks.empty()) return std::nullopt;
  why::DeviceSide side = why::DeviceSideOf(ranks);
  CheckGroup(group, ranks.size(), &side);
  AddAbsences(job, *built, ranks, &side);
  side.job = job.job;
  side.incomplete = side.incomplete || job.input.incomplete;
  side.lost_events = job.input.lost_events;
  if (inputs.build.window.has_value()) {
    side.window_ns = inputs.build.window->end.ns - inputs.build.window->begin.ns;
  }
  return side;
}

void AddHeldBack(const WhyJob& job, const OpenedInputs& inputs, why::DeviceAnswer* answer) {
  std::vector<const analysis::DeviceHealth*> health;
  for (const why::DeviceRankSummary& rank : answer->ranks) {
    const auto is_it = [&](const why::RankInput& input) { return input.rank == rank.rank; };
    const auto given = std::find_if(job.input.ranks.begin(), job.input.ranks.end(), is_it);
    const auto index = static_cast<size_t>(given - job.input.ranks.begin());
    health.push_back(given == job.input.ranks.end() ? nullptr
                                                    : HealthOf(job.processes[index], inputs));
  }
  for (why::DeviceFinding& finding : answer->findings) {
    const bool is_slower =
        std::any_of(finding.causes.begin(), finding.causes.end(), IsSlowerAtTheSameWork);
    if (is_slower) finding.held_back = why::HeldBackMore(health, finding.index);
  }
}

}  // namespace syncline::merge
