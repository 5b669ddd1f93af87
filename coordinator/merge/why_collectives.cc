// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why_collectives.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/communicators.h"
#include "analysis/why/collective_explain.h"

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

}  // namespace

absl::StatusOr<std::optional<analysis::why::CollectiveAnswer>> ExplainCollectivesOf(
    const timeline::BuiltTimeline& built, const std::optional<std::string>& job) {
  std::vector<analysis::CommunicatorReport> communicators = analysis::CommunicatorsOf(built.nodes);
  if (job.has_value()) {
    std::erase_if(communicators, [&](const auto& one) { return one.job != *job; });
  }
  if (communicators.empty()) return std::nullopt;
  std::set<std::string> jobs;
  for (const analysis::CommunicatorReport& one : communicators) jobs.insert(one.job);
  if (jobs.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "several jobs were recorded; choose one with --job: ", absl::StrJoin(jobs, ", ")));
  }
  std::vector<std::string> nodes;
  for (const timeline::NodeResult& node : built.nodes) nodes.push_back(node.name);
  return analysis::why::ExplainCollectives(communicators, nodes, RanksOf(built, *jobs.begin()));
}

}  // namespace syncline::merge
