// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/fewer_threads.h"

#include <algorithm>
#include <vector>

#include "analysis/why/causes.h"

namespace syncline::analysis::why {
namespace {

constexpr double kMoreBusy = 4.0 / 3;
constexpr double kMoreProcessorTime = 1.1;
constexpr double kPart = 0.5;  // of what compute is longer
constexpr double kExplains = 1.25;

std::optional<StepUse> UseOf(const JudgedRank& rank) {
  const std::optional<ProcessorTime> driver = ProcessorTimeOf(rank);
  if (!driver.has_value() || !rank.samples.helper_cpus.has_value()) return std::nullopt;
  StepUse use;
  double step_ns = 0;
  for (size_t step = 0; step < rank.steps.size(); ++step) {
    const PartTable& table = rank.tables[step];
    step_ns += static_cast<double>(rank.steps[step].length_ns());
    use.compute_ns += static_cast<double>(table[static_cast<size_t>(Part::kCompute)]);
    use.host_ns += static_cast<double>(table[static_cast<size_t>(Part::kHostCode)]);
  }
  if (use.compute_ns <= 0) return std::nullopt;
  const auto steps = static_cast<double>(rank.steps.size());
  use.compute_ns /= steps;
  use.host_ns /= steps;
  use.helpers_ns = *rank.samples.helper_cpus * step_ns / steps;
  use.cpu_ns = static_cast<double>(driver->on_cpu_ns) + use.helpers_ns;
  use.asleep_ns = static_cast<double>(driver->asleep_ns);
  use.busy = 1 + use.helpers_ns / use.compute_ns;
  return use;
}

double MedianOf(std::span<const StepUse> others, double StepUse::*value) {
  std::vector<double> values;
  for (const StepUse& one : others) values.push_back(one.*value);
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

std::vector<std::optional<StepUse>> StepUsesOf(std::span<const JudgedRank> ranks) {
  std::vector<std::optional<StepUse>> uses;
  for (const JudgedRank& rank : ranks) uses.push_back(UseOf(rank));
  return uses;
}

std::optional<FewerThreads> FewerThreadsOf(std::span<const std::optional<StepUse>> uses,
                                           size_t rank) {
  const std::optional<StepUse>& own = uses[rank];
  if (!own.has_value()) return std::nullopt;
  std::vector<StepUse> others;
  size_t busier = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (i == rank) continue;
    const std::optional<StepUse>& other = uses[i];
    if (!other.has_value()) return std::nullopt;
    others.push_back(*other);
    busier += other->busy >= own->busy * kMoreBusy ? 1 : 0;
  }
  if (busier * 2 <= others.size()) return std::nullopt;
  const double compute_ns = MedianOf(others, &StepUse::compute_ns);
  const double host_ns = MedianOf(others, &StepUse::host_ns);
  const double helpers_ns = MedianOf(others, &StepUse::helpers_ns);
  const double cpu_ns = MedianOf(others, &StepUse::cpu_ns);
  const double longer_ns = own->compute_ns - compute_ns;
  const bool same_work = own->cpu_ns <= cpu_ns * kMoreProcessorTime;
  const bool same_processor = (own->host_ns - host_ns) * compute_ns <= longer_ns * host_ns * kPart;
  const double sleeps_longer_ns = own->asleep_ns - MedianOf(others, &StepUse::asleep_ns);
  const bool explained = longer_ns <= (helpers_ns - own->helpers_ns) * kExplains;
  if (!same_work || !same_processor || !explained) return std::nullopt;
  if (sleeps_longer_ns > longer_ns * kPart) return std::nullopt;
  return FewerThreads{static_cast<int64_t>(own->helpers_ns), static_cast<int64_t>(helpers_ns),
                      static_cast<int64_t>(own->cpu_ns), static_cast<int64_t>(cpu_ns)};
}

}  // namespace syncline::analysis::why
