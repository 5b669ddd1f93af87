// SPDX-License-Identifier: Apache-2.0
#include "timeline/node_profiles.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace syncline::timeline {

namespace {

std::string SourceOf(Profiler profiler, const std::string& task) {
  switch (profiler) {
    case Profiler::kTensorFlow:
      return "TensorFlow " + ShortTask(task);
    case Profiler::kKineto:
      return kKinetoName;
    case Profiler::kJax:
      return kJaxName;
    case Profiler::kTable:
      return kTableName;
  }
  return "";
}

std::string NameOf(Profiler profiler) {
  switch (profiler) {
    case Profiler::kTensorFlow:
      return "TensorFlow's profiler";
    case Profiler::kKineto:
      return "PyTorch's profiler";
    case Profiler::kJax:
      return "JAX's profiler";
    case Profiler::kTable:
      return "the table of spans";
  }
  return "";
}

}  // namespace

// The process's track; one that no control block and no trace speaks of gets a new one.
TrackId NodeProfiles::TrackOf(const ProfileInput& profile, std::string* name) {
  const ProcessKey& key = profile.process;
  for (uint32_t i = 0; i < parts_.tables.processes().size(); ++i) {
    const ProcessKey& known = parts_.tables.processes()[i].key;
    if (known.pid != key.pid || known.start_ticks != key.start_ticks ||
        known.pid_namespace != key.pid_namespace) {
      continue;
    }
    *name = parts_.tracks->ProcessAt(i).name;
    return parts_.tracks->ProcessAt(i).track;
  }
  ProcessEntry entry;
  entry.key = key;
  entry.key.node = context_.index;
  for (const KnownProcess& known : context_.node.processes) {
    if (known.key == key) entry.known = &known;
  }
  Track track = parts_.tracks->TrackOf(entry);
  if (entry.known != nullptr) {
    *name = track.name;
    return context_.emitter->AddTrack(std::move(track));
  }
  *name =
      absl::StrCat(context_.node.name, " · ",
                   profile.task.empty() ? absl::StrCat("pid ", key.pid) : ShortTask(profile.task));
  track.name = *name;
  track.facts.clear();
  return context_.emitter->AddTrack(std::move(track));
}

void NodeProfiles::Lose(const ProfileInput& profile, Loss loss) {
  const bool unknown = loss.begin_ns == 0 && loss.end_ns == 0;
  const auto trace_clock = [&](int64_t wall_ns) -> std::optional<int64_t> {
    const std::optional<TimelineTime> at = context_.node.wall->At(wall_ns);
    if (!at.has_value()) return std::nullopt;
    return context_.node.placement->ClockNs(*at);
  };
  const auto begin = trace_clock(unknown ? profile.covered.begin_ns : loss.begin_ns);
  const auto end = trace_clock(unknown ? profile.covered.end_ns : loss.end_ns);
  const bool placed = begin.has_value() && end.has_value();
  loss.begin_ns = placed ? *begin : 0;  // else: all of the window
  loss.end_ns = placed ? *end : 0;
  parts_.ledger->Add(loss, /*draw_on_node=*/true);
}

absl::Status NodeProfiles::Add(const ProfileInput& profile, ProfileLanes* lanes,
                               ProfileResult result) {
  result.profiler = profile.profiler;
  result.process = profile.process;
  result.process.node = context_.index;
  result.task = profile.task;
  result.absence = profile.absence;
  result.begin = context_.node.wall->At(profile.covered.begin_ns);
  result.end = context_.node.wall->At(profile.covered.end_ns);
  SYNCLINE_RETURN_IF_ERROR(lanes->Add(profile, &result));
  for (const Loss& loss : profile.losses) Lose(profile, loss);
  if (result.undecided_events > 0) {
    Lose(profile, {LossReason::kUnreadable, 0, 0, result.undecided_events,
                   SourceOf(profile.profiler, profile.task),
                   "the host's wall clock, by which " + NameOf(profile.profiler) +
                       " stamps, was set: the times of these events cannot be decided"});
  }
  if (result.crowded_events > 0) {
    Lose(profile, {LossReason::kUnreadable, 0, 0, result.crowded_events,
                   SourceOf(profile.profiler, profile.task),
                   absl::StrCat("more than ", kOpenSpansMax, " spans inside one another, or ",
                                kThreadLanesMax,
                                " that cross, on one thread: the events beyond are skipped")});
  }
  results_.profiles.push_back(std::move(result));
  return absl::OkStatus();
}

// What of the window no profile of the process shows.
void NodeProfiles::PushHoles(size_t first, TrackId group) {
  if (!context_.options.window.has_value()) return;
  const std::string name = NameOf(results_.profiles[first].profiler);
  TimelineTime until = context_.options.window->begin;
  const auto hole = [&](TimelineTime begin, TimelineTime end, const std::string& detail) {
    begin = std::max(begin, until);
    end = std::min(end, context_.options.window->end);
    if (begin >= end) return;
    Hole pushed;
    pushed.track = group;
    pushed.begin = begin;
    pushed.end = end;
    pushed.loss.reason = LossReason::kNotCovered;
    pushed.loss.begin_ns = context_.node.placement->ClockNs(begin);
    pushed.loss.end_ns = context_.node.placement->ClockNs(end);
    pushed.loss.source = SourceOf(results_.profiles[first].profiler, results_.profiles[first].task);
    pushed.loss.detail = detail;
    context_.emitter->Push(pushed);
  };
  for (size_t i = first; i < results_.profiles.size(); ++i) {
    const ProfileResult& profile = results_.profiles[i];
    if (!profile.begin.has_value() || !profile.end.has_value()) {
      // Never asked for, or undecided: it says nothing of when.
      if (profile.events == 0) hole(until, context_.options.window->end, profile.absence);
      continue;
    }
    hole(until, *profile.begin,
         i == first ? name + " had not begun" : "between two pieces of the profile");
    if (!profile.absence.empty() && profile.events == 0) {
      hole(*profile.begin, *profile.end, profile.absence);
    }
    until = std::max(until, *profile.end);
  }
  const bool any = std::any_of(results_.profiles.begin() + static_cast<ptrdiff_t>(first),
                               results_.profiles.end(),
                               [](const ProfileResult& profile) { return profile.events > 0; });
  if (any) hole(until, context_.options.window->end, name + " had ended");
}

// A step of the optimizer lasts from one mark to the next one: where the profile was not taken
// meanwhile, because it was written, or nothing came of a piece, what lies between is no step.
void NodeProfiles::DropCutSteps(size_t first, ProcessDevices* devices) const {
  if (devices->steps_by != StepsBy::kOptimizer) return;
  const auto pieces_begin = results_.profiles.begin() + static_cast<ptrdiff_t>(first);
  std::erase_if(devices->steps, [&](const ProgramStep& step) {
    return std::none_of(pieces_begin, results_.profiles.end(), [&](const ProfileResult& piece) {
      return piece.events > 0 && piece.begin.has_value() && piece.end.has_value() &&
             *piece.begin <= step.begin && step.end <= *piece.end;
    });
  });
}

// Empty where the process does not say to which job it belongs.
std::string NodeProfiles::JobOf(const ProcessKey& process) const {
  for (const KnownProcess& known : context_.node.processes) {
    if (known.key.pid == process.pid && known.key.start_ticks == process.start_ticks &&
        known.key.pid_namespace == process.pid_namespace) {
      return known.job;
    }
  }
  return "";
}

absl::StatusOr<NodeProfiles::Results> NodeProfiles::Push() {
  for (size_t i = 0; i < context_.node.profiles.size();) {
    ProfileLanes::Owner owner;
    ProfileResult prototype;
    owner.profiler = context_.node.profiles[i].profiler;
    owner.track = TrackOf(context_.node.profiles[i], &prototype.name);
    owner.node = context_.index;
    owner.process = context_.node.profiles[i].process;
    owner.process.node = context_.index;
    owner.task = context_.node.profiles[i].task;
    owner.events = context_.options.events;
    owner.cut = context_.options.cut;
    const bool tensorflow = owner.profiler == Profiler::kTensorFlow;
    if (tensorflow) owner.tensors = parts_.tensors->AddProcess(context_.index, owner.task);
    if (tensorflow) {
      owner.collectives = parts_.collectives->AddProcess(
          context_.index, JobOf(context_.node.profiles[i].process), owner.task);
    }
    ProfileLanes lanes(owner, context_.node.wall, context_.emitter, parts_.tensors,
                       parts_.collectives);
    const size_t first = results_.profiles.size();
    for (const ProcessKey& process = context_.node.profiles[i].process;
         i < context_.node.profiles.size() && context_.node.profiles[i].process == process &&
         context_.node.profiles[i].profiler == owner.profiler;
         ++i) {
      SYNCLINE_RETURN_IF_ERROR(Add(context_.node.profiles[i], &lanes, prototype));
    }
    PushHoles(first, lanes.group());
    Partition partition = lanes.TakePartition();
    partition.track = owner.track;
    partition.process = prototype.name;
    if (!partition.nodes.empty()) results_.partitions.push_back(std::move(partition));
    ProcessDevices devices = lanes.TakeDevices();
    DropCutSteps(first, &devices);
    devices.track = owner.track;
    devices.key = owner.process;
    devices.process = prototype.name;
    if (!devices.work.empty()) results_.devices.push_back(std::move(devices));
  }
  return std::move(results_);
}

}  // namespace syncline::timeline
