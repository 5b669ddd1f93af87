// SPDX-License-Identifier: Apache-2.0
#include "timeline/device_observer.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/kineto_categories.h"
#include "common/text.h"
#include "timeline/first_fit.h"

namespace syncline::timeline {
namespace {

// Of syncline_device:work.
constexpr std::string_view kDevices = "devices";  // in whose name what concerns all is lost
constexpr uint8_t kNothing = 0;
constexpr uint8_t kCopy = 2;
constexpr uint8_t kFill = 3;
// Of syncline_device:tracing.
constexpr uint64_t kTraced = 1;
constexpr uint64_t kLeftToFramework = 2;

// As Kineto calls them.
std::string_view CategoryOf(uint8_t kind) {
  if (kind == kCopy) return "gpu_memcpy";
  return kind == kFill ? "gpu_memset" : "kernel";
}

// Each substitution may double the text: of names with more of them than programs without a
// framework have, nobody asks.
constexpr std::ptrdiff_t kSubstitutionsMax = 12;

std::string Demangled(const std::string& name) {
  if (!name.starts_with("_Z") || std::count(name.begin(), name.end(), 'S') > kSubstitutionsMax) {
    return name;
  }
  int error = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      ::abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &error), &std::free);
  return error == 0 ? std::string(plain.get()) : name;
}

}  // namespace

const std::string& DeviceObserver::Name(uint32_t process, uint32_t id) {
  const auto [known, is_new] = names_.try_emplace({process, id});
  if (is_new) {
    const std::string name(id == 0 ? "" : tables_.processes()[process].Name(id));
    known->second = name.empty() ? "unnamed" : Demangled(name);
  }
  return known->second;
}

void DeviceObserver::On(const NodeEvent& event) {
  Process& process = processes_[event.process];
  switch (event.kind) {
    case EventKind::kDeviceLaunch:
      return OnLaunch(event, &process);
    case EventKind::kDeviceWork:
      return OnWork(event, &process);
    case EventKind::kDeviceTracing:
      return OnTracing(event, &process);
    default:
      return Lost(event, event.fields.U32(Field::kSource), event.fields.U64(Field::kCount),
                  &process);
  }
}

void DeviceObserver::OnLaunch(const NodeEvent& event, Process* process) {
  DeviceCall& launch = process->launches[event.fields.U64(Field::kLaunch)];
  const bool answered = launch.answered;
  launch = DeviceCallOf(event, *context_.emitter, tracks_);
  launch.answered = answered;
}

void DeviceObserver::OnWork(const NodeEvent& event, Process* process) {
  const uint64_t begin_ns = event.fields.U64(Field::kBegin);
  const uint64_t end_ns = event.fields.U64(Field::kEnd);
  Work work;
  work.device = event.fields.U32(Field::kDevice);
  work.queue = event.fields.U32(Field::kQueue);
  work.name = event.fields.U32(Field::kName);
  work.kind = static_cast<uint8_t>(event.fields.U64(Field::kKind));
  work.launch = event.fields.U64(Field::kLaunch);
  work.bytes = event.fields.U64(Field::kBytes);
  work.bound_ns = event.fields.U64(Field::kBound);
  const auto launch = process->launches.find(work.launch);
  if (launch != process->launches.end()) launch->second.answered = true;
  if (work.kind == kNothing) return;
  // It was written when the work was over.
  const auto latest_ns = static_cast<uint64_t>(event.at.node.ns);
  if (begin_ns > end_ns || end_ns > latest_ns + std::min(work.bound_ns, latest_ns)) {
    return Lost(event, work.device, 1, process);
  }
  work.begin = context_.At(static_cast<int64_t>(begin_ns));
  work.end = context_.At(static_cast<int64_t>(end_ns));
  process->work.push_back(work);
}

// Where it begins after the process was recorded, or cannot begin, the time without is a loss.
void DeviceObserver::OnTracing(const NodeEvent& event, Process* process) {
  const std::optional<Moment>& since = tracks_->ProcessAt(event.process).covered_since;
  const int64_t at_ns = event.at.node.ns;
  const uint64_t state = event.fields.U64(Field::kState);
  const auto& profiles = context_.node.profiles;
  const auto is_of_process = [&](const ProfileInput& profile) {
    const ProcessKey& key = tables_.processes()[event.process].key;
    return profile.process.pid == key.pid && profile.process.start_ticks == key.start_ticks;
  };
  // Its framework's own profiler recorded it.
  if (state == kLeftToFramework && std::any_of(profiles.begin(), profiles.end(), is_of_process)) {
    return;
  }
  const int64_t begin_ns = since.has_value() ? std::min(since->node.ns, at_ns) : at_ns;
  process->untraced[event.fields.U32(Field::kSource)] = {begin_ns,
                                                         state == kTraced ? at_ns : kUnknownHi};
}

void DeviceObserver::Lost(const NodeEvent& event, uint32_t of, uint64_t count, Process* process) {
  const auto [lost, is_new] = process->lost.try_emplace(of);
  const int64_t at_ns = event.at.node.ns;
  const std::optional<Moment>& since = tracks_->ProcessAt(event.process).covered_since;
  if (is_new) lost->second.when.begin_ns = since.has_value() ? since->node.ns : at_ns;
  lost->second.when.end_ns = at_ns;
  lost->second.count += count;
}

void DeviceObserver::PushSpan(uint32_t index, const Work& work, const DeviceCall* launch,
                              TrackId lane) {
  Emitter& emitter = *context_.emitter;
  if (launch != nullptr) PushLaunch(*launch, lane, work.begin.timeline, &emitter);
  Span span;
  span.track = lane;
  span.name = emitter.Text(Name(index, work.name));
  span.category = emitter.Text(absl::StrCat("device ", AbslView(CategoryOf(work.kind))));
  span.begin = work.begin.timeline;
  span.end = work.end.timeline;
  span.node_begin = work.begin.node;
  span.node_end = work.end.node;
  span.self_ns = span.end.ns - span.begin.ns;
  if (launch != nullptr && !launch->task.empty()) {
    span.arguments.push_back(Words(emitter.Text("operator"), emitter.Text(launch->task)));
  }
  if (work.bytes != 0) span.arguments.push_back(Number(emitter.Text("bytes"), work.bytes));
  if (work.bound_ns != 0) {
    span.arguments.push_back(Number(emitter.Text("clock bound ns"), work.bound_ns));
  }
  emitter.SpanBegin(span);
  emitter.SpanEnd(span);
}

void DeviceObserver::PushAll(uint32_t index, Process* process) {
  const TrackId parent = tracks_->ProcessAt(index).track;
  const auto order = [](const Work& work) {
    return std::tuple(work.device, work.queue, work.begin.timeline, work.end.timeline);
  };
  std::stable_sort(process->work.begin(), process->work.end(),
                   [&](const Work& a, const Work& b) { return order(a) < order(b); });
  TrackId group = kNoTrack;
  std::vector<TrackId> lanes;
  FirstFit used;
  const Work* before = nullptr;
  for (const Work& work : process->work) {
    const bool new_device = before == nullptr || before->device != work.device;
    if (new_device) {
      group = AddDeviceTrack(context_, tables_, index, parent, TrackKind::kGroup,
                             Name(index, work.device));
    }
    if (new_device || before->queue != work.queue) {
      lanes.clear();
      used = FirstFit();
    }
    before = &work;
    const size_t lane = used.Find(work.begin.timeline);
    if (lane == lanes.size()) {
      std::string name = Name(index, work.queue);
      if (lane > 0) absl::StrAppend(&name, " (", lane + 1, ")");
      lanes.push_back(
          AddDeviceTrack(context_, tables_, index, group, TrackKind::kLane, std::move(name)));
      used.Add();
    }
    used.Set(lane, work.end.timeline);
    const auto launch = process->launches.find(work.launch);
    const bool known = launch != process->launches.end();
    PushSpan(index, work, known ? &launch->second : nullptr, lanes[lane]);
  }
}

void DeviceObserver::Lose(uint32_t index, std::string_view whose, const Loss& loss) {
  const TrackTable::Process& process = tracks_->ProcessAt(index);
  Loss whole = ledger_->Bounded(loss);
  whole.source = absl::StrCat(process.name, " · ", AbslView(whose));
  ledger_->PushHole(process.track, whole);
  // As with a process, that it begins a little late is told by what is covered, and is no loss.
  if (loss.end_ns == kUnknownHi || loss.reason != LossReason::kNotCovered) {
    ledger_->Add(whole, /*draw_on_node=*/false);
  }
}

void DeviceObserver::LoseAll(uint32_t index, const Process& process) {
  for (const auto& [id, when] : process.untraced) {
    Loss loss;
    loss.reason = LossReason::kNotCovered;
    loss.begin_ns = when.begin_ns;
    loss.end_ns = when.end_ns;
    loss.detail = absl::StrCat("devices: ", Name(index, id));
    Lose(index, kDevices, loss);
  }
  for (const auto& [id, lost] : process.lost) {
    Loss loss;
    loss.reason = LossReason::kLostInProcess;
    loss.begin_ns = lost.when.begin_ns;
    loss.end_ns = lost.when.end_ns;
    loss.count = lost.count;
    loss.detail = "work of a device whose time is not known";
    Lose(index, Name(index, id), loss);
  }
}

// There is no device whose row could say it.
void DeviceObserver::LoseAllCalls(uint32_t index, const Process& process) {
  Loss loss;
  loss.reason = LossReason::kNotCovered;
  loss.begin_ns = kUnknownLo;
  loss.end_ns = kUnknownHi;
  loss.count = static_cast<uint64_t>(
      std::count_if(process.launches.begin(), process.launches.end(),
                    [](const auto& launch) { return !launch.second.answered; }));
  loss.detail = "devices: of none of these calls is known what became of it";
  if (*loss.count > 0) Lose(index, kDevices, loss);
}

ProcessDevices DeviceObserver::Devices(uint32_t index, const Process& process) {
  DeviceWorkBuilder builder;
  // A call outside of every task was so for certain: tasks are recorded all the time.
  TimelineTime first{kUnknownHi};
  TimelineTime last{kUnknownLo};
  uint64_t unfinished = 0;
  for (const auto& [number, launch] : process.launches) {
    first = std::min(first, launch.at);
    last = std::max(last, launch.at);
    unfinished += launch.answered ? 0 : 1;
  }
  DeviceWorkBuilder::Event event{};
  event.category = kKinetoOperator;
  event.begin = first;
  event.end = TimelineTime{last.ns + 1};
  if (first <= last) builder.OnEvent(event);
  for (const Work& work : process.work) {
    const auto launch = process.launches.find(work.launch);
    const std::string device = Name(index, work.device);
    const std::string name = Name(index, work.name);
    event.category = CategoryOf(work.kind);
    event.name = name;
    event.device = device;
    event.begin = work.begin.timeline;
    event.end = work.end.timeline;
    const bool known = launch != process.launches.end();
    event.launched = known ? std::optional(launch->second.at) : std::nullopt;
    event.operator_unknown = known && !launch->second.outside;
    event.operator_name = known ? std::string_view(launch->second.task) : std::string_view();
    builder.OnEvent(event);
  }
  ProcessDevices devices = builder.Take();
  devices.steps_by = StepsBy::kTask;
  devices.unfinished = unfinished;
  devices.track = tracks_->ProcessAt(index).track;
  devices.process = tracks_->ProcessAt(index).name;
  devices.key = tables_.processes()[index].key;
  return devices;
}

std::vector<ProcessDevices> DeviceObserver::Finish() {
  std::vector<ProcessDevices> all;
  for (auto& [index, process] : processes_) {
    PushAll(index, &process);
    LoseAll(index, process);
    if (!process.work.empty()) {
      all.push_back(Devices(index, process));
    } else {
      LoseAllCalls(index, process);
    }
  }
  return all;
}

}  // namespace syncline::timeline
