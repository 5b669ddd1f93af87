// SPDX-License-Identifier: Apache-2.0
// A job as it is judged: its drivers, the steps of one class, and of each rank and step where the
// time went. Made once; causes.h draws the conclusions. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_JUDGED_H_
#define SYNCLINE_ANALYSIS_WHY_JUDGED_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/why/blocking_sites.h"
#include "analysis/why/model.h"
#include "analysis/why/places.h"
#include "analysis/why/samples.h"
#include "analysis/why/steps.h"
#include "analysis/why/stretches.h"
#include "analysis/why/task_names.h"
#include "analysis/why/work.h"

namespace syncline::analysis::why {

// Of the steps in which there is any; in order.
struct StepTime {
  size_t step = 0;
  int64_t ns = 0;
};

struct JudgedRank {
  const RankInput* input = nullptr;
  int32_t driver_tid = 0;
  std::vector<OwnInterval> steps;    // judged; in order
  std::vector<PartTable> tables;     // beside `steps`; each adds up to the step
  std::vector<PartTable> uncut;      // the same before anything was taken away
  std::vector<PartTable> unblocked;  // with JudgeOptions::operators: blocked left where it was
  // As Judged::unjudged; nothing is taken away from the parts.
  std::vector<OwnInterval> unjudged;
  std::vector<PartTable> unjudged_tables;
  // With JudgeOptions::stretches: long silences that are own work here, in which a collective was
  // pending, so that they may be waits; in order, apart from each other.
  std::vector<OwnInterval> perhaps_waits;
  RankSamples samples;
  std::optional<BlockedSleep> sleep;  // nullopt: whether it was blocked is not known
  int64_t unplaced_ns = 0;            // of all steps
  // Of the steps' time, 0 to 1. Where it is too little the samples are not used.
  double sampled = 1;
  WorkDone work;
  // Time in oneDNN's primitives themselves, by name and shape, as in `tables`.
  std::map<std::pair<NameId, NameId>, std::vector<StepTime>> primitives;
  // With JudgeOptions::stretches: time in operators themselves, as in `tables`: by name, of each
  // block of steps (BlockOf).
  std::map<NameId, std::vector<int64_t>> operators_ns;

  // With JudgeOptions::stretches: its waits; its time between their ends, entries and ends of
  // collectives, and begins of the optimizer; and in how much of it a collective was pending where
  // it may have waited (sites that are too rare to tell).
  std::vector<Wait> waits;
  std::vector<Stretch> stretches;
  std::vector<int64_t> optimizer_ns;  // when its optimizer's steps began
  int64_t pending_ns = 0;

  // Of a step: all but wait and transfer, and what is not covered.
  int64_t OwnWork(size_t step) const;
};

// All of a step but wait and transfer, and what is not covered. `table` adds up to the step.
int64_t OwnWorkOf(const PartTable& table);

// Time that drivers spent in one operator itself, not in operators within it, and not waiting for
// what it needs: all of them together are the compute part.
struct OperatorTime {
  std::vector<int64_t> step_ns;  // of all ranks, by judged step
  std::vector<int64_t> rank_ns;  // of all judged steps, by rank
};

struct OperatorTimes {
  std::map<NameId, OperatorTime> cut;    // as JudgedRank::tables
  std::map<NameId, OperatorTime> uncut;  // as JudgedRank::uncut
};

// Steps are few if they are at most one in so many.
inline constexpr size_t kFewDivisor = 8;

struct JudgeOptions {
  bool operators = false;  // fill Judged::operators
  bool stretches = false;  // and JudgedRank::stretches, of which there are as many as collectives
  size_t threads = 1;      // at most; what comes of it does not depend on them
};

struct Judged {
  TaskNames names;
  std::vector<JudgedRank> ranks;
  std::vector<PlaceCounts> places;  // by rank
  Pairing pairing;
  size_t optimizers = 1;  // steps of optimizers in a step
  // Of the judged steps, the how manyth of the first rank's steps each is.
  std::vector<size_t> numbers;
  // Steps of other classes, and those with the same collectives on all ranks that differ in what
  // they load or in forward passes, where all of them are few: the same of these, in order.
  std::vector<size_t> unjudged;
  // Of the judged steps, the collectives that all ranks entered: by step.
  std::vector<std::vector<std::pair<uint32_t, uint64_t>>> collectives;
  bool collective_job = false;  // else nobody waits for anybody
  // Ranks also send to each other, and wait there for 2 % of the time or more.
  bool transfers = false;
  OperatorTimes operators;
  Refusal refusal = Refusal::kNone;
  std::string refusal_text;

  size_t steps() const { return ranks.empty() ? 0 : ranks[0].steps.size(); }
};

Judged Judge(const JobInput& input, const JudgeOptions& options = {});

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_JUDGED_H_
