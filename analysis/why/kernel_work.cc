// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/kernel_work.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace syncline::analysis::why {
namespace {

using timeline::DeviceWork;

constexpr size_t kKernelsMax = 8;
constexpr double kUnmatched = 0.5;  // of the excess, at most

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

// Of a kernel's name and size, in ProcessDevices::texts.
using TextPair = std::pair<uint32_t, uint32_t>;

void AddTo(const DeviceWork& work, KernelSum* sum) {
  ++sum->count;
  sum->total_ns += work.end.ns - work.begin.ns;
}

// Calls with each kernel that computes and was launched in a step, and the index of that step.
template <class Visit>
void VisitKernels(const timeline::ProcessDevices& devices, uint32_t device,
                  std::span<const timeline::Interval> steps, const Visit& visit) {
  for (const DeviceWork& work : devices.work) {
    if (work.device != device || work.kind != DeviceWork::Kind::kCompute) continue;
    if (!work.launched.has_value()) continue;
    const auto step = StepAt(steps, *work.launched);
    if (step.has_value()) visit(work, *step);
  }
}

template <class Sums>
std::map<std::pair<std::string, std::string>, Sums> ByText(const timeline::ProcessDevices& devices,
                                                           std::map<TextPair, Sums> sums) {
  std::map<std::pair<std::string, std::string>, Sums> by_text;
  for (auto& [key, of_kernel] : sums) {
    by_text[{devices.texts[key.first], devices.texts[key.second]}] = std::move(of_kernel);
  }
  return by_text;
}

}  // namespace

std::optional<size_t> StepAt(std::span<const timeline::Interval> steps, TimelineTime time) {
  const auto after = std::partition_point(
      steps.begin(), steps.end(), [&](const timeline::Interval& step) { return step.end <= time; });
  if (after == steps.end() || time < after->begin) return std::nullopt;
  return static_cast<size_t>(after - steps.begin());
}

std::vector<int64_t> CopiedNs(const timeline::ProcessDevices& devices, uint32_t device,
                              std::span<const timeline::Interval> steps) {
  std::vector<int64_t> copied(steps.size());
  for (const DeviceWork& work : devices.work) {
    if (work.device != device || work.kind != DeviceWork::Kind::kCopy) continue;
    if (!work.launched.has_value()) continue;
    const auto step = StepAt(steps, *work.launched);
    if (step.has_value()) copied[*step] += work.end.ns - work.begin.ns;
  }
  return copied;
}

KernelSteps KernelStepsOf(const timeline::ProcessDevices& devices, uint32_t device,
                          std::span<const timeline::Interval> steps) {
  std::map<TextPair, std::vector<KernelSum>> sums;
  VisitKernels(devices, device, steps, [&](const DeviceWork& work, size_t step) {
    std::vector<KernelSum>& of_kernel = sums[{work.name, work.size}];
    of_kernel.resize(steps.size());
    AddTo(work, &of_kernel[step]);
  });
  return ByText(devices, std::move(sums));
}

KernelSums KernelsOf(const timeline::ProcessDevices& devices, uint32_t device,
                     std::span<const timeline::Interval> steps) {
  std::map<TextPair, KernelSum> sums;
  VisitKernels(devices, device, steps, [&](const DeviceWork& work, size_t /*step*/) {
    AddTo(work, &sums[{work.name, work.size}]);
  });
  return ByText(devices, std::move(sums));
}

KernelWork CompareKernels(std::span<const KernelSums> ranks, size_t rank, uint64_t steps) {
  std::set<std::pair<std::string, std::string>> keys;
  for (const KernelSums& sums : ranks) {
    for (const auto& [key, sum] : sums) keys.insert(key);
  }
  const auto of_steps = static_cast<double>(std::max<uint64_t>(1, steps));
  std::vector<double> totals;
  double own_total = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    double total = 0;
    for (const auto& [key, sum] : ranks[i]) total += static_cast<double>(sum.total_ns) / of_steps;
    if (i == rank) {
      own_total = total;
    } else {
      totals.push_back(total);
    }
  }
  const double excess_ns = own_total - MedianOf(std::move(totals));
  KernelWork work;
  double same_ns = 0;  // that the others take for the same kernels, a step
  double longer_ns = 0;
  double more_ns = 0;
  for (const auto& key : keys) {
    std::vector<double> counts;
    std::vector<double> lengths;
    KernelDifference difference;
    double own_ns = 0;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const auto found = ranks[i].find(key);
      const KernelSum sum = found == ranks[i].end() ? KernelSum{} : found->second;
      const double count = static_cast<double>(sum.count) / of_steps;
      const double length =
          sum.count == 0 ? 0 : static_cast<double>(sum.total_ns) / static_cast<double>(sum.count);
      if (i == rank) {
        difference.own_count = count;
        own_ns = length;
        continue;
      }
      counts.push_back(count);
      if (sum.count > 0) lengths.push_back(length);
    }
    difference.others_count = MedianOf(std::move(counts));
    const double others_ns = lengths.empty() ? 0 : MedianOf(std::move(lengths));
    const double common = std::min(difference.own_count, difference.others_count);
    const double longer = own_ns > 0 ? common * (own_ns - others_ns) : 0;
    const double more = (difference.own_count - difference.others_count) *
                        (difference.own_count > difference.others_count ? own_ns : others_ns);
    same_ns += common * others_ns;
    longer_ns += longer;
    more_ns += more;
    work.sizes_known = work.sizes_known && !key.second.empty();
    difference.name = key.first;
    difference.own_ns = std::llround(own_ns);
    difference.others_ns = std::llround(others_ns);
    difference.excess_ns = std::llround(longer + more);
    work.kernels.push_back(std::move(difference));
  }
  work.longer_ns = std::llround(longer_ns);
  work.more_ns = std::llround(more_ns);
  work.is_comparable =
      std::abs(longer_ns + more_ns - excess_ns) <= kUnmatched * std::abs(excess_ns);
  work.longer_part = same_ns > 0 ? longer_ns / same_ns : 0;
  std::stable_sort(work.kernels.begin(), work.kernels.end(),
                   [](const KernelDifference& a, const KernelDifference& b) {
                     return a.excess_ns > b.excess_ns;
                   });
  if (work.kernels.size() > kKernelsMax) work.kernels.resize(kKernelsMax);
  std::erase_if(work.kernels, [](const KernelDifference& one) { return one.excess_ns <= 0; });
  return work;
}

}  // namespace syncline::analysis::why
