// SPDX-License-Identifier: Apache-2.0
// From what the builder found in a recording to the jobs that `syncline why` explains: which
// process is which rank, whose part of which collective is whose, who entered it last, and which
// samples are the rank's.
#ifndef SYNCLINE_COORDINATOR_MERGE_WHY_INPUT_H_
#define SYNCLINE_COORDINATOR_MERGE_WHY_INPUT_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "analysis/levels.h"
#include "analysis/why/collector.h"
#include "analysis/why/model.h"
#include "coordinator/merge/inputs.h"
#include "evidence/evidence.h"
#include "evidence/scheduling.h"
#include "timeline/builder.h"

namespace syncline::merge {

// A start of a job.
struct WhyJob {
  std::string job;
  std::string incarnation;
  analysis::why::JobInput input;
  std::vector<ProcessKey> processes;  // beside input.ranks
  // Ranks of its groups that were not recorded: "2-3, 8"; empty: all were.
  std::string missing_ranks;
  // Two processes that both work as one rank; empty: there are none.
  std::string conflict;
};

struct WhySource {
  const OpenedInputs* inputs = nullptr;
  const timeline::BuiltTimeline* built = nullptr;
  analysis::why::Collected* collected = nullptr;  // tasks are moved out of it
  // Of each node, in their order; nullopt: it was recorded without.
  const std::deque<std::optional<evidence::Evidence>>* evidence = nullptr;
  const std::deque<std::optional<evidence::Scheduling>>* scheduling = nullptr;
};

// By job, then incarnation; those that launch collectives or step an optimizer. The inputs point
// into `source.evidence` and `source.scheduling`.
std::vector<WhyJob> WhyJobsOf(const WhySource& source);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WHY_INPUT_H_
