// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/explain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/why/carried.h"
#include "analysis/why/causes.h"
#include "analysis/why/clock_speed.h"
#include "analysis/why/judged.h"
#include "analysis/why/judged_checks.h"
#include "analysis/why/page_faults.h"
#include "analysis/why/path.h"
#include "analysis/why/processor_time.h"
#include "analysis/why/stalls.h"
#include "analysis/why/statistics.h"
#include "analysis/why/steal.h"

namespace syncline::analysis::why {
namespace {

void SetMeans(const JudgedRank& rank, RankSummary* summary) {
  const auto steps = static_cast<int64_t>(rank.steps.size());
  if (steps == 0) return;
  int64_t steps_ns = 0;
  for (const OwnInterval& step : rank.steps) steps_ns += step.length_ns();
  summary->mean_step_ns = steps_ns / steps;
  summary->mean = MeanParts(std::span<const PartTable>(rank.tables), summary->mean_step_ns);
  summary->mean_own_ns = summary->mean_step_ns -
                         summary->mean[static_cast<size_t>(Part::kWaitAndTransfer)] -
                         summary->mean[static_cast<size_t>(Part::kNotCovered)];
  summary->unplaced_ns = rank.unplaced_ns / steps;
}

RankSummary SummaryOf(const JudgedRank& judged) {
  const RankInput& rank = *judged.input;
  RankSummary summary;
  summary.rank = rank.rank;
  summary.node = rank.node;
  summary.pid = rank.pid;
  summary.command = rank.command;
  const int64_t window_ns = rank.window.length_ns();
  summary.covered = window_ns <= 0
                        ? 1
                        : 1 - static_cast<double>(MissingNs(rank)) / static_cast<double>(window_ns);
  summary.taken_away_known = judged.samples.measured();
  summary.blocked_known = judged.sleep.has_value();
  summary.blocked_exact = judged.sleep.has_value() && judged.sleep->by_scheduler;
  summary.group_version = judged.samples.group_version;
  summary.processor = ProcessorTimeOf(judged);
  summary.page_faults = PageFaultsOf(judged);
  summary.steal = StealTimeOf(judged);
  summary.clock = CpuClockOf(judged);
  if (rank.evidence != nullptr) {
    summary.sample_gaps = rank.evidence->gaps.size();
    if (rank.evidence_process.has_value()) {
      const evidence::Process& process = rank.evidence->processes[*rank.evidence_process];
      summary.allowed_count = process.allowed_count;
      summary.allowed_cpus = process.allowed_cpus;
    }
    if (!rank.evidence->rates.empty() && summary.taken_away_known) {
      for (const evidence::Rate& rate : rank.evidence->rates) {
        summary.sample_period_ns = std::max(summary.sample_period_ns, rate.period_ns);
      }
    }
  }
  if (!judged.tables.empty()) SetMeans(judged, &summary);
  return summary;
}

void AddNotes(const JobInput& input, const Judged& judged, Answer* answer) {
  if (judged.optimizers > 1) {
    answer->notes.push_back(absl::StrCat("a step is ", judged.optimizers,
                                         " steps of optimizers: each batch is for as many"));
  }
  for (size_t i = 0; i < judged.ranks.size(); ++i) {
    const RankInput& rank = input.ranks[i];
    const std::string who = absl::StrCat("rank ", rank.rank);
    if (rank.evidence == nullptr) {
      answer->notes.push_back(absl::StrCat(
          who,
          ": recorded without samples of its node: whether it was throttled, or waited for a "
          "CPU, is not known"));
    } else if (judged.ranks[i].sampled < 1 && !judged.ranks[i].samples.measured()) {
      answer->notes.push_back(absl::StrCat(
          who, ": the samples of its node cover only ",
          static_cast<int64_t>(judged.ranks[i].sampled * 100),
          " % of the judged steps and are not used: whether it was throttled, or waited for a CPU, "
          "is not known"));
    } else if (!judged.ranks[i].samples.measured()) {
      answer->notes.push_back(absl::StrCat(
          who,
          ": its driver was not sampled: whether it was throttled, or waited for a CPU, is "
          "not known"));
    }
    if (answer->ranks[i].unplaced_ns * 50 > answer->ranks[i].mean_step_ns) {
      answer->notes.push_back(
          absl::StrFormat("%s: %.1f ms a step of waiting for a CPU found no place in its own work",
                          who, static_cast<double>(answer->ranks[i].unplaced_ns) / 1e6));
    }
  }
}

// One step that stood still makes means that no other step has.
void SetStepLengths(const Judged& judged, Answer* answer) {
  std::vector<int64_t> lengths;
  for (const JudgedRank& rank : judged.ranks) {
    for (const OwnInterval& step : rank.steps) lengths.push_back(step.length_ns());
  }
  if (lengths.empty()) return;
  answer->median_step_ns = *MedianOf(lengths);
  answer->longest_step_ns = *std::max_element(lengths.begin(), lengths.end());
  constexpr int64_t kOutlier = 10;
  const bool moved = answer->mean_step_ns > answer->median_step_ns + answer->median_step_ns / 10;
  if (answer->stalls.has_value()) return;  // which say more
  if (!moved || answer->longest_step_ns <= kOutlier * answer->median_step_ns) return;
  answer->notes.push_back(absl::StrFormat(
      "the longest step took %.1f ms, the median one %.1f ms: the means are not those of a usual "
      "step",
      static_cast<double>(answer->longest_step_ns) / 1e6,
      static_cast<double>(answer->median_step_ns) / 1e6));
}

}  // namespace

Answer Explain(const JobInput& input, size_t threads) {
  Answer answer;
  answer.job = input.job;
  answer.incomplete = input.incomplete;
  answer.lost_events = input.lost_events;
  answer.clock_bound_ns = input.clock_bound_ns;
  answer.clock_bounds_hold = input.clock_bounds_hold;
  for (const RankInput& rank : input.ranks) {
    answer.window_ns = std::max(answer.window_ns, rank.window.length_ns());
  }
  if (input.ranks.empty()) {
    answer.refusal = Refusal::kNothingRecorded;
    answer.refusal_text =
        "no process was recorded: start the job under `syncline run`, or after "
        "`eval \"$(syncline env)\"`, then ask again";
    return answer;
  }
  const Judged judged = Judge(input, {.stretches = true, .threads = threads});
  answer.refusal = judged.refusal;
  answer.refusal_text = judged.refusal_text;
  answer.unpaired_steps = judged.pairing.unpaired;
  answer.unlike_steps = judged.pairing.unlike.size();
  for (const PairedSteps& one : judged.pairing.classes) {
    answer.classes.push_back(
        {one.name, one.steps.size(), one.total_ns / static_cast<int64_t>(input.ranks.size())});
  }
  answer.steps = judged.steps();
  for (const JudgedRank& rank : judged.ranks) {
    answer.ranks.push_back(SummaryOf(rank));
    const RankSummary& summary = answer.ranks.back();
    answer.worst_not_covered_ns =
        std::max(answer.worst_not_covered_ns, summary.mean[static_cast<size_t>(Part::kNotCovered)]);
    answer.mean_step_ns += summary.mean_step_ns / static_cast<int64_t>(judged.ranks.size());
  }
  if (answer.refusal != Refusal::kNone) return answer;
  answer.transfers = judged.transfers;
  answer.few_transfers = !judged.collective_job && TransfersOf(input) > 0;
  answer.stalls = StallsOf(input, judged);
  SetStepLengths(judged, &answer);
  FindCauses(input, judged, &answer);
  AddNotes(input, judged, &answer);
  answer.path_unknown = PathUnknown(input, judged);
  if (answer.path_unknown.empty()) answer.path = PathOf(input, judged);
  return answer;
}

}  // namespace syncline::analysis::why
