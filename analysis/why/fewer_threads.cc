// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/fewer_threads.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/why/processor_time.h"

namespace syncline::analysis::why {
namespace {

constexpr double kJudged = 0.95;  // of the sampled time
constexpr double kMoreBusy = 4.0 / 3;
constexpr double kMoreProcessorTime = 1.1;
constexpr double kPart = 0.5;    // of what compute is longer
constexpr double kAsleep = 0.1;  // of the same
constexpr double kExplains = 1.25;

std::optional<StepUse> UseOf(const JudgedRank& rank) {
  const std::optional<ProcessorTime> driver = ProcessorTimeOf(rank);
  const RankSamples& samples = rank.samples;
  if (!driver.has_value() || !samples.helper_cpus.has_value()) return std::nullopt;
  StepUse use;
  double step_ns = 0;
  for (size_t step = 0; step < rank.steps.size(); ++step) {
    const PartTable& table = rank.tables[step];
    step_ns += static_cast<double>(rank.steps[step].length_ns());
    use.compute_ns += static_cast<double>(table[static_cast<size_t>(Part::kCompute)]);
    use.host_ns += static_cast<double>(table[static_cast<size_t>(Part::kHostCode)]);
  }
  double judged_ns = 0;
  for (const Growth& growth : samples.growths) {
    judged_ns += growth.judged * static_cast<double>(growth.interval.length_ns());
    use.queued_ns += growth.judged * static_cast<double>(growth.helpers_ns);
  }
  const int64_t sampled_ns = samples.driver.back().at_ns - samples.driver.front().at_ns;
  if (use.compute_ns <= 0 || judged_ns < static_cast<double>(sampled_ns) * kJudged) {
    return std::nullopt;
  }
  const auto steps = static_cast<double>(rank.steps.size());
  use.compute_ns /= steps;
  use.host_ns /= steps;
  use.queued_ns *= step_ns / steps / judged_ns;
  use.helpers_ns = *samples.helper_cpus * step_ns / steps;
  use.cpu_ns = static_cast<double>(driver->on_cpu_ns) + use.helpers_ns;
  use.asleep_ns = static_cast<double>(driver->asleep_ns);
  use.busy = 1 + use.helpers_ns / use.compute_ns;
  if (samples.threads.has_value()) {
    use.threads_least = samples.threads->least;
    use.threads_most = samples.threads->most;
  }
  const RankInput& input = *rank.input;
  use.allowed_cpus = input.evidence->processes[*input.evidence_process].allowed_count;
  return use;
}

template <class Value>
double MedianOf(std::span<const StepUse> others, Value StepUse::*value) {
  std::vector<double> values;
  for (const StepUse& one : others) values.push_back(static_cast<double>(one.*value));
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool MoreThanHalf(std::span<const StepUse> others, auto is_so) {
  const auto count = static_cast<size_t>(std::count_if(others.begin(), others.end(), is_so));
  return count * 2 > others.size();
}

// Processor time alone does not tell an OpenMP thread from one that writes a log. Of those that a
// process has besides, only a few differ from rank to rank.
bool HasFewerThreads(const StepUse& own, const StepUse& other) {
  if (own.threads_most == 0 || other.threads_least <= own.threads_most) return false;
  const auto fewer = static_cast<double>(other.threads_least - own.threads_most);
  return fewer >= (other.busy - own.busy) * kPart;
}

bool HasFewerCpus(const StepUse& own, const StepUse& other) {
  return own.allowed_cpus > 0 && own.allowed_cpus < other.allowed_cpus &&
         static_cast<double>(own.allowed_cpus) < other.busy;
}

bool MayKeepFewerBusy(const StepUse& own, std::span<const StepUse> others) {
  const auto busier = [&](const StepUse& other) { return other.busy >= own.busy * kMoreBusy; };
  const auto fewer_threads = [&](const StepUse& other) { return HasFewerThreads(own, other); };
  const auto fewer_cpus = [&](const StepUse& other) { return HasFewerCpus(own, other); };
  return MoreThanHalf(others, busier) &&
         (MoreThanHalf(others, fewer_threads) || MoreThanHalf(others, fewer_cpus));
}

uint32_t ThreadsOfOthers(std::span<const StepUse> others) {
  const bool known = std::all_of(others.begin(), others.end(),
                                 [](const StepUse& one) { return one.threads_least > 0; });
  return known ? static_cast<uint32_t>(MedianOf(others, &StepUse::threads_least)) : 0;
}

}  // namespace

std::vector<std::optional<StepUse>> StepUsesOf(std::span<const JudgedRank> ranks) {
  std::vector<std::optional<StepUse>> uses;
  for (const JudgedRank& rank : ranks) uses.push_back(UseOf(rank));
  return uses;
}

std::optional<FewerThreads> FewerThreadsOf(std::span<const std::optional<StepUse>> uses,
                                           size_t rank) {
  if (!uses[rank].has_value()) return std::nullopt;
  const StepUse& own = *uses[rank];
  std::vector<StepUse> others;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (i == rank) continue;
    if (!uses[i].has_value()) return std::nullopt;
    others.push_back(*uses[i]);
  }
  if (!MayKeepFewerBusy(own, others)) return std::nullopt;
  const double compute_ns = MedianOf(others, &StepUse::compute_ns);
  const double host_ns = MedianOf(others, &StepUse::host_ns);
  const double helpers_ns = MedianOf(others, &StepUse::helpers_ns);
  const double cpu_ns = MedianOf(others, &StepUse::cpu_ns);
  const double longer_ns = own.compute_ns - compute_ns;
  const double fewer_ns = helpers_ns - own.helpers_ns;
  if (longer_ns < fewer_ns * kPart || longer_ns > fewer_ns * kExplains) return std::nullopt;
  const bool same_work = own.cpu_ns <= cpu_ns * kMoreProcessorTime;
  const bool same_processor =
      std::abs(own.host_ns - host_ns) * compute_ns <= longer_ns * host_ns * kPart;
  const double sleeps_longer_ns = own.asleep_ns - MedianOf(others, &StepUse::asleep_ns);
  const double queued_longer_ns = own.queued_ns - MedianOf(others, &StepUse::queued_ns);
  if (!same_work || !same_processor) return std::nullopt;
  if (sleeps_longer_ns > longer_ns * kAsleep) return std::nullopt;
  if (queued_longer_ns > longer_ns * kPart) return std::nullopt;
  FewerThreads threads;
  threads.own_helpers_ns = static_cast<int64_t>(own.helpers_ns);
  threads.others_helpers_ns = static_cast<int64_t>(helpers_ns);
  threads.own_cpu_ns = static_cast<int64_t>(own.cpu_ns);
  threads.others_cpu_ns = static_cast<int64_t>(cpu_ns);
  threads.explained = std::min(1.0, fewer_ns / longer_ns);
  threads.own_threads = own.threads_most;
  threads.others_threads = ThreadsOfOthers(others);
  return threads;
}

}  // namespace syncline::analysis::why
