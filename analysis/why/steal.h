// SPDX-License-Identifier: Apache-2.0
// What a hypervisor took from ranks: steal time of the CPUs that they may use. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_STEAL_H_
#define SYNCLINE_ANALYSIS_WHY_STEAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/why/judged.h"
#include "analysis/why/model.h"
#include "analysis/why/steal_model.h"

namespace syncline::analysis::why {

// Steal time of the CPUs that a rank's process may use, all together.
class CpuSteal {
 public:
  explicit CpuSteal(const RankInput& rank);

  // There are two readings, and the CPUs had something to do between them.
  bool known() const { return usual_.has_value(); }
  // If known: of what they had to do then, 0 to 1; of a time without any, the mean of all readings.
  double ShareIn(const OwnInterval& within) const;
  // If known: what a driver lost then, of what it had to do, if it lost as much as all. It was on
  // a CPU for `ran_ns`, which has no steal time in it and is what was left to it, and in a run
  // queue for `queued_ns`.
  double LostIn(const OwnInterval& within, double ran_ns, double queued_ns) const;
  // What a driver lost then at most: all that was stolen.
  double MostIn(const OwnInterval& within) const;
  // From one reading to the next, the longest.
  int64_t pause_ns() const;
  // Readings are from most of that time.
  bool Covers(const OwnInterval& within) const;

 private:
  // What has grown.
  struct Reading {
    int64_t at_ns = 0;
    int64_t busy_ns = 0;
    int64_t stolen_ns = 0;
  };
  std::optional<double> MeasuredIn(const OwnInterval& within) const;

  std::vector<Reading> readings_;
  std::optional<double> usual_;
};

// What a hypervisor may have taken of a thread.
struct Stolen {
  double likely_ns = 0;  // if as much of what it had to do as of all that these CPUs had
  double most_ns = 0;    // all that was stolen
};
// How long a thread slept, of `left_ns`, in which it was neither on a CPU nor in a run queue.
// `found_ns`: what samples of its state find of sleep; nullopt: they do not tell.
double SleptOf(double left_ns, const Stolen& stolen, std::optional<double> found_ns);

// nullopt: not measured.
std::optional<StealTime> StealTimeOf(const JudgedRank& rank);

// Of a step of a driver.
struct StepLoss {
  int64_t lost_ns = 0;  // StealTime::step_ns
  int64_t ran_ns = 0;   // on a CPU
};

// [rank][step]; empty: not known of all ranks.
std::vector<std::vector<StepLoss>> StealTimesOf(std::span<const JudgedRank> ranks);

// Of a rank that certainly loses more than it would with the others' steal time, by more than
// `limit_ns` a step; else nullopt. `losses`: of StealTimesOf; `judged`, `ranks`: the same ranks.
std::optional<MoreStealTime> MoreStealOf(const std::vector<std::vector<StepLoss>>& losses,
                                         size_t rank, int64_t limit_ns,
                                         std::span<const JudgedRank> judged,
                                         std::span<const RankSummary> ranks);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_STEAL_H_
