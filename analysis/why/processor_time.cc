// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/processor_time.h"

#include <algorithm>

#include "analysis/why/steal.h"

namespace syncline::analysis::why {

namespace {

// A step, mean.
Stolen StolenOf(const JudgedRank& rank) {
  const auto steal = StealTimeOf(rank);
  if (!steal.has_value()) return {};
  const CpuSteal cpus(*rank.input);
  Stolen stolen{static_cast<double>(steal->step_ns), 0};
  for (const OwnInterval& step : rank.steps) stolen.most_ns += cpus.MostIn(step);
  stolen.most_ns /= static_cast<double>(rank.steps.size());
  return stolen;
}

}  // namespace

std::optional<ProcessorTime> ProcessorTimeOf(const JudgedRank& rank) {
  if (!rank.samples.measured() || rank.steps.empty()) return std::nullopt;
  int64_t steps_ns = 0;
  int64_t own_ns = 0;
  for (size_t step = 0; step < rank.steps.size(); ++step) {
    steps_ns += rank.steps[step].length_ns();
    own_ns += rank.OwnWork(step);
  }
  // Between readings in the judged steps alone, and as many steps as these fill.
  double judged_ns = 0;
  double on_cpu_ns = 0;
  double run_queue_ns = 0;
  for (size_t i = 1; i < rank.samples.driver.size(); ++i) {
    const Reading& before = rank.samples.driver[i - 1];
    const Reading& now = rank.samples.driver[i];
    const double part = rank.samples.growths[i - 1].judged;
    judged_ns += part * static_cast<double>(now.at_ns - before.at_ns);
    on_cpu_ns += part * static_cast<double>(now.on_cpu_ns - before.on_cpu_ns);
    run_queue_ns += part * static_cast<double>(now.run_queue_ns - before.run_queue_ns);
  }
  if (judged_ns <= 0) return std::nullopt;
  const double steps =
      static_cast<double>(rank.steps.size()) * judged_ns / static_cast<double>(steps_ns);
  ProcessorTime time;
  time.on_cpu_ns = static_cast<int64_t>(on_cpu_ns / steps);
  time.run_queue_ns = static_cast<int64_t>(run_queue_ns / steps);
  const int64_t mean_own_ns = own_ns / static_cast<int64_t>(rank.steps.size());
  const auto left_ns = static_cast<double>(mean_own_ns - time.on_cpu_ns - time.run_queue_ns);
  const Stolen stolen = StolenOf(rank);
  std::optional<double> found_ns;
  if (rank.sleep.has_value() && rank.sleep->slept_ns.has_value()) {
    found_ns = static_cast<double>(*rank.sleep->slept_ns);
  }
  const double asleep_ns = SleptOf(left_ns, stolen, found_ns);
  time.asleep_ns = static_cast<int64_t>(asleep_ns);
  const double most_ns = found_ns.has_value() ? stolen.most_ns : stolen.likely_ns;
  time.stolen_ns = static_cast<int64_t>(std::clamp(left_ns - asleep_ns, 0.0, most_ns));
  return time;
}

}  // namespace syncline::analysis::why
