// SPDX-License-Identifier: Apache-2.0
#include "analysis/device_marks.h"

#include <algorithm>
#include <vector>

namespace syncline::analysis {
namespace {

using timeline::ProcessDevices;
using timeline::ProgramStep;

std::vector<ProgramStep> StepsOf(const SummarySink::Series& series) {
  std::vector<ProgramStep> steps;
  for (const Step& step : series.series.steps) {
    if (!steps.empty()) steps.back().end = std::min(steps.back().end, step.begin);
    steps.push_back({step.name, step.begin, step.end});
  }
  return steps;
}

}  // namespace

void TakeStepsFrom(const SummarySink& summary, std::span<timeline::NodeResult> nodes) {
  const std::vector<SummarySink::Series> all = summary.TakeSteps();
  for (timeline::NodeResult& node : nodes) {
    for (ProcessDevices& devices : node.devices) {
      if (devices.steps_by != timeline::StepsBy::kTask) continue;
      const auto found = std::find_if(
          all.begin(), all.end(),
          [&](const SummarySink::Series& series) { return series.process_track == devices.track; });
      if (found != all.end()) devices.steps = StepsOf(*found);
    }
  }
}

}  // namespace syncline::analysis
