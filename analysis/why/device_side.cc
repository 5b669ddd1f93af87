// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_side.h"

#include <algorithm>
#include <utility>

#include "analysis/why/compared_sides.h"
#include "analysis/why/device_judged.h"
#include "analysis/why/kernel_work.h"
#include "analysis/why/series.h"

namespace syncline::analysis::why {
namespace {

uint32_t MedianCollectives(const std::vector<DeviceStep>& steps) {
  std::vector<uint64_t> counts;
  for (const DeviceStep& step : steps) counts.push_back(step.collectives);
  const auto middle = counts.begin() + static_cast<ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  return static_cast<uint32_t>(*middle);
}

void AddKernels(const JudgedDevice& rank, DeviceSide* side) {
  std::vector<timeline::Interval> steps;
  for (const DeviceStep& step : rank.steps) steps.push_back(step.program);
  for (auto& [key, sums] : KernelStepsOf(*rank.given->devices, rank.device, steps)) {
    DeviceSide::Kernel& kernel = side->kernels[{key.first, key.second}];
    kernel.ns.resize(side->steps);
    for (size_t step = 0; step < sums.size(); ++step) {
      kernel.ns[step] += sums[step].total_ns;
      kernel.count += sums[step].count;
    }
  }
}

void Add(const DeviceSide& side, DeviceSide* pooled) {
  for (size_t i = 0; i < side.ranks.size(); ++i) {
    AppendSeries(side.ranks[i].tables, pooled->steps, &pooled->ranks[i].tables);
    AppendSeries(side.ranks[i].own_ns, pooled->steps, &pooled->ranks[i].own_ns);
  }
  for (const auto& [name, one] : side.kernels) {
    DeviceSide::Kernel& kernel = pooled->kernels[name];
    AppendSeries(one.ns, pooled->steps, &kernel.ns);
    kernel.count += one.count;
  }
  pooled->steps += side.steps;
  pooled->window_ns += side.window_ns;
  pooled->incomplete = pooled->incomplete || side.incomplete;
  AddLost(side.lost_events, &pooled->lost_events);
}

}  // namespace

DeviceSide DeviceSideOf(std::span<const DeviceRank> ranks) {
  DeviceAnswer answer;
  std::vector<JudgedDevice> judged = JudgeDevices(ranks, &answer);
  DeviceSide side;
  side.refusal = answer.refusal;
  side.refusal_text = answer.refusal_text;
  if (side.refusal != DeviceRefusal::kNone) return side;
  side.steps = answer.steps;
  side.collectives = MedianCollectives(judged.front().steps);
  for (JudgedDevice& rank : judged) {
    AddKernels(rank, &side);
    side.ranks.push_back({rank.given->rank, std::move(rank.tables), std::move(rank.own_ns)});
  }
  return side;
}

DeviceSide Pooled(std::span<const DeviceSide> sides) {
  DeviceSide pooled = sides.front();
  for (const DeviceSide& side : sides.subspan(1)) Add(side, &pooled);
  for (auto& [name, kernel] : pooled.kernels) kernel.ns.resize(pooled.steps);
  return pooled;
}

}  // namespace syncline::analysis::why
