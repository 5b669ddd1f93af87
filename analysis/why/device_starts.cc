// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_starts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "analysis/why/kernel_work.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

using timeline::DeviceWork;
using Kind = std::vector<int64_t> Starts::*;

// Of one start, over all steps of a rank, the others' median.
std::optional<int64_t> UsualOfOthers(std::span<const std::vector<Starts>> ranks, size_t rank,
                                     Kind kind) {
  std::vector<int64_t> usual;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == rank) continue;
    std::vector<int64_t> all;
    for (const Starts& step : ranks[i]) {
      all.insert(all.end(), (step.*kind).begin(), (step.*kind).end());
    }
    if (const auto median = MedianOf(std::move(all))) usual.push_back(*median);
  }
  return MedianOf(std::move(usual));
}

}  // namespace

std::vector<Starts> StartsOf(const timeline::ProcessDevices& devices, uint32_t device,
                             std::span<const timeline::Interval> steps) {
  std::vector<Starts> starts(steps.size());
  TimelineTime free{kUnknownLo};
  for (const DeviceWork& work : devices.work) {
    if (work.device != device || work.kind == DeviceWork::Kind::kCollective) continue;
    const auto step = work.launched.has_value() ? StepAt(steps, *work.launched) : std::nullopt;
    if (step.has_value() && free.ns != kUnknownLo && free < work.begin) {
      if (free < *work.launched) {
        starts[*step].fresh.push_back(work.begin.ns - work.launched->ns);
      } else {
        starts[*step].queued.push_back(work.begin.ns - free.ns);
      }
    }
    free = std::max(free, work.end);
  }
  return starts;
}

std::vector<int64_t> SlowerStarts(std::span<const std::vector<Starts>> ranks, size_t rank) {
  std::vector<int64_t> slower(ranks[rank].size());
  for (const Kind kind : {&Starts::fresh, &Starts::queued}) {
    const auto usual_ns = UsualOfOthers(ranks, rank, kind);
    if (!usual_ns.has_value()) continue;
    for (size_t step = 0; step < slower.size(); ++step) {
      const std::vector<int64_t>& own = ranks[rank][step].*kind;
      const auto count = static_cast<int64_t>(own.size());
      slower[step] += count * (MedianOf(own).value_or(*usual_ns) - *usual_ns);
    }
  }
  return slower;
}

}  // namespace syncline::analysis::why
