// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why_collectives.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/communicators.h"
#include "analysis/why/collective_explain.h"
#include "coordinator/merge/why_devices.h"

namespace syncline::merge {
namespace {

// As its processes say; -1: they do not.
int32_t RanksOf(const timeline::BuiltTimeline& built, const std::string& job) {
  int32_t ranks = -1;
  for (const timeline::NodeResult& node : built.nodes) {
    for (const timeline::ProcessResult& process : node.processes) {
      if (process.job == job) ranks = std::max(ranks, process.world_size);
    }
  }
  return ranks;
}

void AddHeldBack(const OpenedInputs& inputs, analysis::why::CollectiveAnswer* answer) {
  std::vector<const analysis::DeviceHealth*> health;
  for (const analysis::why::CollectiveRank& rank : answer->ranks) {
    health.push_back(HealthOf(rank.process, inputs));
  }
  for (analysis::why::CollectiveFinding& finding : answer->findings) {
    finding.held_back = analysis::why::HeldBackMore(health, finding.index);
  }
}

// What came to an end meanwhile.
void NoteEnds(const timeline::BuiltTimeline& built, analysis::why::CollectiveAnswer* answer) {
  for (const analysis::why::CollectiveRank& rank : answer->ranks) {
    const std::vector<timeline::ProcessResult>& all = built.nodes[rank.process.node].processes;
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& one) { return one.key == rank.process; });
    if (found == all.end() || !found->ended_ns.has_value()) continue;
    answer->notes.push_back(absl::StrCat(
        "rank ", rank.rank, " ended while it was recorded: this is about the time before"));
  }
}

}  // namespace

std::set<std::string> JobsWithCollectives(const timeline::BuiltTimeline& built) {
  std::set<std::string> jobs;
  for (const timeline::NodeResult& node : built.nodes) {
    for (const timeline::ProcessCollectives& of : node.device_collectives) {
      const auto process = std::find_if(node.processes.begin(), node.processes.end(),
                                        [&](const auto& one) { return one.key == of.key; });
      jobs.insert(process == node.processes.end() ? "" : process->job);
    }
  }
  return jobs;
}

absl::StatusOr<std::optional<analysis::why::CollectiveAnswer>> ExplainCollectivesOf(
    const OpenedInputs& inputs, const timeline::BuiltTimeline& built,
    const std::optional<std::string>& job, bool incomplete) {
  std::vector<analysis::CommunicatorReport> communicators =
      analysis::CommunicatorsOf(built.nodes, inputs.models());
  if (job.has_value()) {
    std::erase_if(communicators, [&](const auto& one) { return one.job != *job; });
  }
  if (communicators.empty()) return std::nullopt;
  const std::set<std::string> jobs =
      job.has_value() ? std::set<std::string>{*job} : JobsWithCollectives(built);
  if (jobs.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "several jobs were recorded; choose one with --job: ", absl::StrJoin(jobs, ", ")));
  }
  std::vector<std::string> nodes;
  for (const timeline::NodeResult& node : built.nodes) nodes.push_back(node.name);
  analysis::why::CollectiveAnswer answer = analysis::why::ExplainCollectives(
      communicators, nodes, RanksOf(built, *jobs.begin()), incomplete);
  AddHeldBack(inputs, &answer);
  NoteEnds(built, &answer);
  return answer;
}

}  // namespace syncline::merge
