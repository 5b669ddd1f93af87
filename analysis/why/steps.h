// SPDX-License-Identifier: Apache-2.0
// The driver of a rank and its steps. Pure.
//
// Driver: the thread that launches the collectives. Step: from the end of an optimizer step on the
// driver to the end of the next, with at least one collective in between; accumulation lies inside.
// Where each batch is for as many steps of optimizers, two or more, a step is all of these: a GAN's
// two optimizers make one.
// Steps of two ranks belong together if they have a collective (group, number) in common, and so do
// those that a third rank's step belongs to: a job may have process groups of some ranks each.
// Steps are paired where each rank has one of those that belong together, with as many collectives
// as the others, the same ones in groups that they share; and classed by collectives, forwards and
// loader calls.
#ifndef SYNCLINE_ANALYSIS_WHY_STEPS_H_
#define SYNCLINE_ANALYSIS_WHY_STEPS_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/why/model.h"
#include "analysis/why/task_names.h"

namespace syncline::analysis::why {

struct Driver {
  const ThreadInput* thread = nullptr;  // nullptr: no thread launches or steps
  uint64_t launches = 0;                // its own
  uint64_t other_launches = 0;          // of the rank's other threads
  uint64_t steps = 0;                   // of optimizers, its own
  // A second thread launches at least a tenth of them: whose waits are the rank's is not known.
  bool shared() const { return other_launches * 10 >= launches + other_launches && launches > 0; }
};

// Without launches: the thread with the most optimizer steps.
Driver DriverOf(const RankInput& rank, const TaskNames& names);

// What makes steps alike.
struct Pattern {
  // How many of each kind; not transfers, of which ranks of one step have different numbers.
  std::map<NameId, uint32_t> collectives;
  uint32_t forwards = 0;
  uint32_t loads = 0;
  auto operator<=>(const Pattern&) const = default;
};

struct Step {
  OwnInterval interval;
  std::vector<std::pair<uint32_t, uint64_t>> collectives;  // (group, number), by entry
  bool transfers = false;                                  // some of them are
  Pattern pattern;
};

// For how many steps of optimizers, 1 to 4, nine of ten of the driver's batches are; 1: also where
// it is not known.
size_t OptimizersPerBatch(const ThreadInput& driver, const TaskNames& names);

struct StepOptions {
  bool with_collectives = true;  // steps without any are none (an evaluation, a warm-up)
  // Transfers of the driver's count as collectives in steps that have no other, and in all of them
  // if this is so: collectives tell better what belongs together, but may be of some ranks each.
  bool by_transfers = false;
  size_t optimizers = 1;  // OptimizersPerBatch
};

// By time.
std::vector<Step> StepsOf(const ThreadInput& driver, std::span<const CollectiveEntry> collectives,
                          const TaskNames& names, const StepOptions& options);

struct PairedSteps {
  Pattern pattern;
  std::string name;      // "all_reduce x3"
  int64_t total_ns = 0;  // of all ranks
  // One element a step, in order of time: of each rank, an index into its steps.
  std::vector<std::vector<size_t>> steps;
};

struct Pairing {
  // Those with kStepsMin steps or more first; of them, and of the others, the one with most time.
  std::vector<PairedSteps> classes;
  uint64_t unpaired = 0;  // of the rank with the most steps, that are in no class
  // Of them, those that all ranks have with the same collectives, but not with as many forwards and
  // loader calls: as PairedSteps::steps.
  std::vector<std::vector<size_t>> unlike;
};

// `steps`: of each rank. Those without a collective belong together by their order.
Pairing PairSteps(std::span<const std::vector<Step>> steps, std::span<const std::string> names);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STEPS_H_
