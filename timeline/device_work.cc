// SPDX-License-Identifier: Apache-2.0
#include "timeline/device_work.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/kineto_categories.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

constexpr std::string_view kMarkCategory = "user_annotation";
constexpr std::string_view kProfilerStep = "ProfilerStep#";
constexpr std::string_view kOptimizerStep = "Optimizer.step#";
constexpr std::array<std::string_view, 3> kCollectiveLibraries = {"nccl", "rccl", "oneccl"};

bool IsCollective(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(AbslView(name));
  return std::any_of(
      kCollectiveLibraries.begin(), kCollectiveLibraries.end(),
      [&](std::string_view library) { return absl::StrContains(lower, AbslView(library)); });
}

void SortByBegin(std::vector<ProgramStep>* steps) {
  std::stable_sort(steps->begin(), steps->end(),
                   [](const ProgramStep& a, const ProgramStep& b) { return a.begin < b.begin; });
}

// From one end to the next; the first begins nowhere, and is no step.
std::vector<ProgramStep> Between(const std::vector<ProgramStep>& marks) {
  std::vector<ProgramStep> steps;
  for (const ProgramStep& mark : marks) {
    if (mark.name != marks.front().name) continue;
    if (!steps.empty()) {
      if (mark.end <= steps.back().begin) continue;
      steps.back().end = mark.end;
    }
    steps.push_back({mark.name, mark.end, mark.end});
  }
  if (!steps.empty()) steps.pop_back();
  return steps;
}

}  // namespace

uint32_t DeviceWorkBuilder::Text(std::string_view text) {
  const auto known = texts_.find(text);
  if (known != texts_.end()) return known->second;
  const auto index = static_cast<uint32_t>(made_.texts.size());
  made_.texts.emplace_back(text);
  texts_.emplace(text, index);
  return index;
}

uint32_t DeviceWorkBuilder::Device(std::string_view name) {
  const auto known = std::find(made_.devices.begin(), made_.devices.end(), name);
  if (known == made_.devices.end()) {
    made_.devices.emplace_back(name);
    return static_cast<uint32_t>(made_.devices.size() - 1);
  }
  return static_cast<uint32_t>(known - made_.devices.begin());
}

void DeviceWorkBuilder::OnEvent(const Event& event) {
  if (event.device.empty()) {
    if (event.category == kKinetoOperator) {
      if (!made_.operators.has_value()) made_.operators = Interval{event.begin, event.end};
      made_.operators->begin = std::min(made_.operators->begin, event.begin);
      made_.operators->end = std::max(made_.operators->end, event.end);
    }
    if (event.category != kMarkCategory) return;
    const ProgramStep step{std::string(event.name), event.begin, event.end};
    if (event.name.starts_with(kProfilerStep)) profiler_steps_.push_back(step);
    if (event.name.starts_with(kOptimizerStep)) optimizer_steps_.push_back(step);
    return;
  }
  const bool kernel = IsKinetoKernel(event.category);
  if (!kernel && !IsKinetoCopy(event.category)) return;
  DeviceWork work;
  work.device = Device(event.device);
  work.kind = !kernel ? DeviceWork::Kind::kCopy
              : !event.collective.empty() || IsCollective(event.name)
                  ? DeviceWork::Kind::kCollective
                  : DeviceWork::Kind::kCompute;
  work.begin = event.begin;
  work.end = event.end;
  work.launched = event.launched;
  work.name = Text(event.name);
  work.operator_name = Text(event.operator_name);
  made_.work.push_back(work);
}

ProcessDevices DeviceWorkBuilder::Take() {
  std::stable_sort(made_.work.begin(), made_.work.end(),
                   [](const DeviceWork& a, const DeviceWork& b) { return a.begin < b.begin; });
  SortByBegin(&profiler_steps_);
  SortByBegin(&optimizer_steps_);
  made_.steps_by_optimizer = profiler_steps_.empty();
  made_.steps = profiler_steps_.empty() ? Between(optimizer_steps_) : std::move(profiler_steps_);
  for (size_t i = 0; i + 1 < made_.steps.size(); ++i) {
    made_.steps[i].end = std::min(made_.steps[i].end, made_.steps[i + 1].begin);
  }
  return std::move(made_);
}

}  // namespace syncline::timeline
