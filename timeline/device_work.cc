// SPDX-License-Identifier: Apache-2.0
#include "timeline/device_work.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/kineto_categories.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

constexpr std::string_view kMarkCategory = "user_annotation";
constexpr std::string_view kProfilerStep = "ProfilerStep#";
constexpr std::string_view kOptimizerStep = "Optimizer.step#";
constexpr std::string_view kLoading = "enumerate(DataLoader)#";
constexpr std::string_view kHostCollective = "gloo:";
// Where the kernel does not say what it is for (RCCL's has one name for all, and no arguments).
constexpr std::array<std::string_view, 4> kSends = {"c10d::send", "c10d::recv_", "nccl:send ",
                                                    "nccl:recv "};
constexpr int64_t kLongCallNs = 50'000;  // a launch takes 5 to 10 µs
constexpr std::array<std::string_view, 3> kCollectiveLibraries = {"nccl", "rccl", "oneccl"};
// Kernels that wait for other devices' and are of no such library: PyTorch's symmetric memory, vLLM
// and SGLang, TensorRT-LLM and FlashInfer, Transformer Engine, DeepEP, NVSHMEM.
constexpr std::array<std::string_view, 11> kCollectiveKernels = {"one_shot_all_reduce",
                                                                 "two_shot_all_reduce",
                                                                 "multimem_all_reduce",
                                                                 "multimem_one_shot",
                                                                 "cross_device_reduce",
                                                                 "allreduce_fusion",
                                                                 "oneshotallreduce",
                                                                 "twoshotallreduce",
                                                                 "userbuffers_",
                                                                 "deep_ep::",
                                                                 "nvshmem"};

bool IsCollective(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(AbslView(name));
  const auto has = [&](std::string_view part) { return absl::StrContains(lower, AbslView(part)); };
  return std::any_of(kCollectiveLibraries.begin(), kCollectiveLibraries.end(), has) ||
         std::any_of(kCollectiveKernels.begin(), kCollectiveKernels.end(), has);
}

// NCCL's kernel for sends is also that of all_to_all, and a group of sends is called "coalesced",
// as a group of other collectives is.
bool IsPeerToPeer(std::string_view collective, std::string_view kernel) {
  const std::string lower = absl::AsciiStrToLower(AbslView(collective));
  if (lower.empty() || lower == "coalesced") {
    return absl::StrContains(AbslView(kernel), "SendRecv");
  }
  return lower.starts_with("send") || lower.starts_with("recv") || lower.starts_with("isend") ||
         lower.starts_with("irecv") || lower.starts_with("batch_isend");
}

// By begin, apart from each other.
void Join(std::vector<Interval>* intervals) {
  std::stable_sort(intervals->begin(), intervals->end(),
                   [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> joined;
  for (const Interval& one : *intervals) {
    if (joined.empty() || joined.back().end < one.begin) {
      joined.push_back(one);
    } else {
      joined.back().end = std::max(joined.back().end, one.end);
    }
  }
  *intervals = std::move(joined);
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

bool DeviceWorkBuilder::IsCollectiveKernel(uint32_t name) {
  if (collective_kernels_.size() <= name) collective_kernels_.resize(name + 1);
  std::optional<bool>& known = collective_kernels_[name];
  if (!known.has_value()) known = IsCollective(made_.texts[name]);
  return *known;
}

void DeviceWorkBuilder::OnThreadEvent(const Event& event) {
  if (event.category == kKinetoOperator) {
    if (!made_.operators.has_value()) made_.operators = Interval{event.begin, event.end};
    made_.operators->begin = std::min(made_.operators->begin, event.begin);
    made_.operators->end = std::max(made_.operators->end, event.end);
  }
  if (IsKinetoCall(event.category)) {
    const bool waits = absl::StrContains(AbslView(event.name), "Synchronize");
    const TimelineTime from{event.begin.ns + (waits ? 0 : kLongCallNs)};
    if (from < event.end) made_.blocked.push_back({from, event.end});
  }
  // Older profiles have marks among the operators.
  if (event.name.starts_with(kLoading)) made_.loading.push_back({event.begin, event.end});
  if (event.name.starts_with(kHostCollective)) {
    made_.host_collectives.push_back({event.begin, event.end});
  }
  if (std::any_of(kSends.begin(), kSends.end(),
                  [&](std::string_view name) { return event.name.starts_with(name); })) {
    made_.sends.push_back({event.begin, event.end});
  }
  if (event.category != kMarkCategory) return;
  const ProgramStep step{std::string(event.name), event.begin, event.end};
  if (event.name.starts_with(kProfilerStep)) profiler_steps_.push_back(step);
  if (event.name.starts_with(kOptimizerStep)) optimizer_steps_.push_back(step);
}

void DeviceWorkBuilder::OnEvent(const Event& event) {
  if (event.device.empty()) return OnThreadEvent(event);
  const bool kernel = IsKinetoKernel(event.category);
  if (!kernel && !IsKinetoCopy(event.category)) return;
  DeviceWork work;
  work.device = Device(event.device);
  work.name = Text(event.name);
  const bool collective =
      kernel && (!event.collective.empty() || event.is_collective || IsCollectiveKernel(work.name));
  work.kind = !kernel      ? DeviceWork::Kind::kCopy
              : collective ? DeviceWork::Kind::kCollective
                           : DeviceWork::Kind::kCompute;
  work.begin = event.begin;
  work.end = event.end;
  work.launched = event.launched;
  work.operator_name = Text(event.operator_name);
  work.size =
      Text(event.grid.empty() ? std::string()
                              : absl::StrCat(AbslView(event.grid), " x ", AbslView(event.block)));
  work.operator_unknown = event.operator_unknown;
  work.peer_to_peer = collective && IsPeerToPeer(event.collective, event.name);
  made_.work.push_back(work);
  table_steps_.push_back(event.step);
}

void DeviceWorkBuilder::OnMark(const Mark& mark) {
  if (!mark.device.empty()) {
    device_steps_[Device(mark.device)].push_back({std::string(mark.name), mark.begin, mark.end});
    return;
  }
  const auto named = marked_steps_.try_emplace(std::string(mark.name)).first;
  named->second.push_back(
      {absl::StrCat(AbslView(mark.name), " ", mark.number), mark.begin, mark.end});
}

// Of several names the one that is marked most.
std::vector<ProgramStep> DeviceWorkBuilder::MarkedSteps() {
  std::vector<ProgramStep> most;
  for (auto& [name, steps] : marked_steps_) {
    if (steps.size() > most.size()) most = std::move(steps);
  }
  return most;
}

void DeviceWorkBuilder::TakeDeviceSteps() {
  made_.steps_by = StepsBy::kDevice;
  std::map<uint32_t, std::pair<size_t, size_t>> of_device;  // which of the steps
  for (auto& [device, steps] : device_steps_) {
    SortByBegin(&steps);
    const size_t first = made_.steps.size();
    for (ProgramStep& step : steps) made_.steps.push_back(std::move(step));
    of_device[device] = {first, made_.steps.size()};
  }
  for (DeviceWork& work : made_.work) {
    const auto [first, last] = of_device[work.device];
    const auto begin = made_.steps.begin() + static_cast<ptrdiff_t>(first);
    const auto after =
        std::upper_bound(begin, made_.steps.begin() + static_cast<ptrdiff_t>(last), work.begin,
                         [](TimelineTime at, const ProgramStep& step) { return at < step.begin; });
    if (after == begin || work.begin >= std::prev(after)->end) continue;
    work.step = static_cast<size_t>(std::prev(after) - made_.steps.begin());
  }
}

void DeviceWorkBuilder::TakeTableSteps() {
  made_.steps_by = StepsBy::kTable;
  std::map<int64_t, size_t> numbers;
  for (const auto& step : table_steps_) {
    if (step.has_value()) numbers[*step] = 0;
  }
  for (auto& [number, index] : numbers) {
    index = made_.steps.size();
    made_.steps.push_back({absl::StrCat("step ", number), {kUnknownHi}, {kUnknownLo}});
  }
  for (size_t i = 0; i < table_steps_.size(); ++i) {
    if (!table_steps_[i].has_value()) continue;
    DeviceWork& work = made_.work[i];
    work.step = numbers[*table_steps_[i]];
    ProgramStep& step = made_.steps[*work.step];
    step.begin = std::min(step.begin, work.begin);
    step.end = std::max(step.end, work.end);
  }
}

// But those of devices and tables, to which work is assigned by other means than by its launch.
void DeviceWorkBuilder::ChooseSteps() {
  if (!marked_steps_.empty()) {
    made_.steps_by = StepsBy::kMark;
    made_.steps = MarkedSteps();
  } else if (profiler_steps_.empty() && optimizer_steps_.empty()) {
    made_.steps_by = StepsBy::kMark;  // which any profile may have
  } else if (profiler_steps_.empty()) {
    SortByBegin(&optimizer_steps_);
    made_.steps_by = StepsBy::kOptimizer;
    made_.steps = Between(optimizer_steps_);
  } else {
    made_.steps = std::move(profiler_steps_);
  }
  SortByBegin(&made_.steps);
  for (size_t i = 0; i + 1 < made_.steps.size(); ++i) {
    made_.steps[i].end = std::min(made_.steps[i].end, made_.steps[i + 1].begin);
  }
}

ProcessDevices DeviceWorkBuilder::Take() {
  const bool of_table = std::any_of(table_steps_.begin(), table_steps_.end(),
                                    [](const auto& step) { return step.has_value(); });
  if (of_table) {
    TakeTableSteps();
  } else if (!device_steps_.empty()) {
    TakeDeviceSteps();
  } else {
    ChooseSteps();
  }
  Join(&made_.loading);
  Join(&made_.host_collectives);
  Join(&made_.sends);
  Join(&made_.blocked);
  std::stable_sort(made_.work.begin(), made_.work.end(),
                   [](const DeviceWork& a, const DeviceWork& b) { return a.begin < b.begin; });
  return std::move(made_);
}

}  // namespace syncline::timeline
