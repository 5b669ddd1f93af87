// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_side.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/why/compared_sides.h"
#include "analysis/why/device_judged.h"
#include "analysis/why/kernel_work.h"
#include "analysis/why/series.h"

namespace syncline::analysis::why {
namespace {

// How many kernels of collectives the steps have that take the most time together. Paired steps
// have as many on all ranks.
uint64_t MostCollectives(const std::vector<DeviceStep>& steps) {
  std::map<uint64_t, int64_t> times;
  for (const DeviceStep& step : steps) times[step.collectives] += step.duration_ns();
  return std::max_element(times.begin(), times.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

void KeepSteps(uint64_t collectives, JudgedDevice* rank) {
  JudgedDevice kept{rank->given, std::move(rank->report), rank->device, {}, {}, {}, {}};
  for (size_t i = 0; i < rank->steps.size(); ++i) {
    if (rank->steps[i].collectives != collectives) continue;
    kept.steps.push_back(std::move(rank->steps[i]));
    kept.tables.push_back(rank->tables[i]);
    kept.own_ns.push_back(rank->own_ns[i]);
    kept.device_ns.push_back(rank->device_ns[i]);
  }
  *rank = std::move(kept);
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
  pooled->left_out += side.left_out;
  pooled->host_collectives = pooled->host_collectives || side.host_collectives;
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
  side.incomplete = answer.incomplete;
  side.notes = std::move(answer.notes);
  side.world_size = answer.world_size;
  side.host_collectives = answer.host_collectives;
  side.collectives = MostCollectives(judged.front().steps);
  for (JudgedDevice& rank : judged) KeepSteps(side.collectives, &rank);
  side.steps = judged.front().steps.size();
  side.left_out = answer.unpaired_steps + answer.steps - side.steps;
  for (JudgedDevice& rank : judged) {
    AddKernels(rank, &side);
    side.ranks.push_back({rank.given->rank, std::move(rank.tables), std::move(rank.device_ns)});
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
