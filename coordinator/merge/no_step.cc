// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/no_step.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/process_part.h"

namespace syncline::merge {
namespace {

namespace why = analysis::why;

bool IsOfJob(const recording::ProcessRecord& process, const std::optional<std::string>& job) {
  return !job.has_value() || process.job == *job ||
         absl::StrCat(process.job, "/", process.incarnation) == *job;
}

// It has Syncline's hook for PyTorch, and is no helper of a rank's.
bool IsRank(const recording::ProcessRecord& process) {
  const auto& sources = process.sources;
  return std::find(sources.begin(), sources.end(), "python") != sources.end() &&
         IsRankPart(process.part);
}

// nullptr: it recorded nothing.
const why::CollectedProcess* Find(const NoStepSource& source, const std::string& node,
                                  const recording::ProcessRecord& process) {
  for (const why::CollectedProcess& one : source.collected->processes) {
    if (source.nodes[one.node] == node && one.key.pid == process.own_pid &&
        one.key.start_ticks == process.start_ticks &&
        one.key.pid_namespace == static_cast<uint64_t>(process.pid_namespace_inode)) {
      return &one;
    }
  }
  return nullptr;
}

// Whether nothing that the node's processes did in the window is missing. A node whose ranks made
// no call at all counts as incomplete elsewhere: here that is what is looked for.
bool IsWhole(const recording::NodeRecord& node) {
  if (node.state == recording::NodeState::kMissing || node.state == recording::NodeState::kLeft) {
    return false;
  }
  const recording::Volume volume = recording::VolumeOf(node);
  if (volume.discarded_events.value_or(0) > 0 || volume.lost_packets.value_or(0) > 0) return false;
  if (recording::EarlyEndNs(node).has_value() || recording::LateStartNs(node).has_value()) {
    return false;
  }
  return std::all_of(node.processes.begin(), node.processes.end(),
                     [](const recording::ProcessRecord& process) { return process.lost == 0; });
}

}  // namespace

bool MayHaveNoStep(const recording::Recording& recording) {
  return std::any_of(recording.nodes.begin(), recording.nodes.end(),
                     [](const recording::NodeRecord& node) {
                       return std::any_of(node.processes.begin(), node.processes.end(), IsRank);
                     });
}

std::optional<why::NoStep> NoStepOf(const NoStepSource& source) {
  const recording::Window& window = source.recording->window;
  why::NoStep found;
  found.window_ns = window.end_timeline_ns - window.begin_timeline_ns;
  for (const recording::NodeRecord& node : source.recording->nodes) {
    found.certain = found.certain && IsWhole(node);
    for (const recording::ProcessRecord& process : node.processes) {
      if (!IsOfJob(process, source.job)) continue;
      const why::CollectedProcess* const recorded = Find(source, node.name, process);
      if (recorded != nullptr) found.steps += recorded->ended_steps;
      if (!IsRank(process)) continue;
      why::RankActivity& rank = found.ranks.emplace_back();
      rank.node = node.name;
      rank.pid = process.own_pid;
      rank.rank = process.rank;
      rank.job = process.job;
      rank.lost = process.lost;
      rank.ended = process.ended_monotonic_ns != 0;
      rank.quiet_ns = found.window_ns;
      if (recorded == nullptr || !recorded->last_call_ns.has_value()) continue;
      rank.calls = recorded->calls;
      rank.collectives = recorded->ended_launches;
      rank.quiet_ns = std::clamp<int64_t>(
          source.window_end_clock_ns[recorded->node] - *recorded->last_call_ns, 0, found.window_ns);
    }
  }
  // Also where there is none. A job that is over does not stand still.
  if (std::all_of(found.ranks.begin(), found.ranks.end(),
                  [](const why::RankActivity& rank) { return rank.ended; })) {
    return std::nullopt;
  }
  if (found.steps > 0 && found.quiet_ns() < found.window_ns / 2) return std::nullopt;
  std::stable_sort(
      found.ranks.begin(), found.ranks.end(),
      [](const why::RankActivity& a, const why::RankActivity& b) { return a.rank < b.rank; });
  return found;
}

std::vector<std::string> JobsThatStandStill(NoStepSource source) {
  std::set<std::string> names;
  for (const recording::NodeRecord& node : source.recording->nodes) {
    for (const recording::ProcessRecord& process : node.processes) {
      if (IsRank(process) && !process.job.empty()) names.insert(process.job);
    }
  }
  std::vector<std::string> jobs;
  for (const std::string& name : names) {
    source.job = name;
    const auto found = NoStepOf(source);
    if (!found.has_value() || !found->certain || found->ranks.size() < 2) continue;
    if (found->quiet_ns() >= found->window_ns / 2) jobs.push_back(name);
  }
  return jobs;
}

}  // namespace syncline::merge
