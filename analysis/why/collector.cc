// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/collector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/names.h"
#include "analysis/onednn.h"
#include "analysis/why/task_names.h"

namespace syncline::analysis::why {
namespace {

bool IsIn(uint8_t roles, Role role) { return (roles & static_cast<uint8_t>(role)) != 0; }

// What an argument says changes from call to call: no part of a shape.
bool TellsTime(std::string_view key) {
  return key.find("time") != std::string_view::npos ||
         key.find("duration") != std::string_view::npos;
}

// By begin, so that holes of different sources are in one order.
void Sort(std::vector<timeline::Interval>* holes) {
  std::sort(holes->begin(), holes->end(),
            [](const timeline::Interval& a, const timeline::Interval& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
}

}  // namespace

uint64_t CollectedProcess::launches() const {
  uint64_t sum = 0;
  for (const CollectedThread& thread : threads) sum += thread.launches;
  return sum;
}

uint64_t CollectedProcess::steps() const {
  uint64_t sum = 0;
  for (const CollectedThread& thread : threads) sum += thread.steps;
  return sum;
}

void Collector::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) {
    texts_.resize(id + 1);
    roles_.resize(id + 1);
    executions_.resize(id + 1);
    marks_.resize(id + 1);
  }
  texts_[id] = text;
  roles_[id] = RolesOf(text);
  executions_[id] = IsExecution(text);
  marks_[id] = IsMark(text);
}

void Collector::OnTrack(const timeline::Track& track) {
  if (track.kind == timeline::TrackKind::kNode) {
    // One node after the other streams by.
    for (Thread* thread : of_this_node_) Settle(thread);
    of_this_node_.clear();
    nodes_[track.id] = track.node;
  } else if (track.kind == timeline::TrackKind::kProcess) {
    CollectedProcess& process = processes_[track.id];
    process.node = track.node;
    process.key = track.process;
    for (const auto& [key, value] : track.facts) process.facts[key] = value;
  } else if (track.kind == timeline::TrackKind::kThread) {
    Thread& thread = threads_[track.id];
    thread.process = track.parent;
    thread.collected.tid = track.tid;
    of_this_node_.push_back(&thread);
  }
}

void Collector::Settle(Thread* thread) {
  if (thread->in_order) return;
  thread->collected.spans.Edit([](std::vector<TaskSpan>* spans) {
    std::sort(spans->begin(), spans->end(), [](const TaskSpan& a, const TaskSpan& b) {
      if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
      return a.end_ns != b.end_ns ? a.end_ns > b.end_ns : a.depth < b.depth;
    });
  });
  thread->in_order = true;
}

NameId Collector::ShapeOf(const timeline::Span& span) {
  if (!executions_[span.category] || span.arguments.empty()) return 0;
  std::string shape;
  for (const timeline::Argument& argument : span.arguments) {
    const std::string& key = texts_[argument.key];
    if (TellsTime(key)) continue;
    absl::StrAppend(&shape, key, "=");
    switch (argument.kind) {
      case timeline::Argument::Kind::kInt:
        absl::StrAppend(&shape, argument.i, ";");
        break;
      case timeline::Argument::Kind::kUint:
        absl::StrAppend(&shape, argument.u, ";");
        break;
      case timeline::Argument::Kind::kReal:
        absl::StrAppend(&shape, argument.d, ";");
        break;
      case timeline::Argument::Kind::kText:
        absl::StrAppend(&shape, texts_[argument.text], ";");
        break;
    }
  }
  if (shape.empty()) return 0;
  return shapes_.try_emplace(shape, static_cast<NameId>(shapes_.size() + 1)).first->second;
}

void Collector::Count(const timeline::Span& span, uint8_t roles, Thread* thread) const {
  // Who waits has not moved on, though the wait may end by a timeout.
  if (span.clipped_end || marks_[span.category] || IsIn(roles, Role::kWait)) return;
  thread->last_call_ns =
      thread->calls == 0 ? span.node_end.ns : std::max(thread->last_call_ns, span.node_end.ns);
  ++thread->calls;
  thread->ended_steps += IsIn(roles, Role::kStep) ? 1 : 0;
  thread->ended_launches += IsIn(roles, Role::kLaunch) ? 1 : 0;
}

void Collector::OnSpanEnd(const timeline::Span& span) {
  const auto found = threads_.find(span.track);
  if (found == threads_.end()) return;
  Thread& thread = found->second;
  if (const std::optional<StandsIn> stands = StandsInOf(texts_[span.category], texts_[span.name]);
      stands.has_value()) {
    if (span.clipped_begin || span.clipped_end) return;
    processes_[thread.process].places.push_back({span.node_begin.ns, stands->tid, span.name});
    return;
  }
  TaskSpan task;
  task.begin_ns = span.node_begin.ns;
  task.end_ns = span.node_end.ns;
  task.name = span.name;
  task.category = span.category;
  task.shape = ShapeOf(span);
  task.depth = span.depth;
  task.whole = !span.clipped_begin && !span.clipped_end;
  if (const std::string_view accelerator = AcceleratorOf(texts_[span.category], texts_[span.name]);
      !accelerator.empty()) {
    std::vector<std::string>& known = processes_[thread.process].accelerators;
    if (std::find(known.begin(), known.end(), accelerator) == known.end()) {
      known.emplace_back(accelerator);
    }
  }
  const uint8_t roles = roles_[span.name];
  Count(span, roles, &thread);
  thread.collected.launches += IsIn(roles, Role::kLaunch) ? 1 : 0;
  thread.collected.steps += IsIn(roles, Role::kStep) ? 1 : 0;
  thread.matters |=
      IsIn(roles, Role::kLaunch) || IsIn(roles, Role::kStep) || IsIn(roles, Role::kTransfer);
  thread.collected.spans.push_back(task);
  thread.in_order = false;
}

void Collector::OnHole(const timeline::Hole& hole) {
  const timeline::Interval interval{hole.begin, hole.end};
  if (const auto thread = threads_.find(hole.track); thread != threads_.end()) {
    thread->second.collected.holes.push_back(interval);
  } else if (const auto process = processes_.find(hole.track); process != processes_.end()) {
    process->second.holes.push_back(interval);
  } else if (const auto node = nodes_.find(hole.track); node != nodes_.end()) {
    node_holes_[node->second].push_back(interval);
  }
}

Collected Collector::Take() {
  Collected collected;
  collected.names = std::move(texts_);
  const auto first_shape = static_cast<NameId>(collected.names.size() - 1);
  collected.names.resize(collected.names.size() + shapes_.size());
  for (const auto& [shape, id] : shapes_) collected.names[first_shape + id] = shape;
  for (auto& [track, thread] : threads_) {
    const auto process = processes_.find(thread.process);
    if (process == processes_.end()) continue;
    CollectedProcess& whole = process->second;
    if (thread.calls > 0) {
      whole.last_call_ns =
          std::max(whole.last_call_ns.value_or(thread.last_call_ns), thread.last_call_ns);
    }
    whole.calls += thread.calls;
    whole.ended_steps += thread.ended_steps;
    whole.ended_launches += thread.ended_launches;
    if (!thread.matters) continue;
    Settle(&thread);
    thread.collected.spans.MoveShapes(first_shape);
    Sort(&thread.collected.holes);
    whole.threads.push_back(std::move(thread.collected));
  }
  for (auto& [track, process] : processes_) {
    const std::vector<timeline::Interval>& of_node = node_holes_[process.node];
    process.holes.insert(process.holes.end(), of_node.begin(), of_node.end());
    Sort(&process.holes);
    std::sort(process.places.begin(), process.places.end(),
              [](const PlaceSample& a, const PlaceSample& b) { return a.at_ns < b.at_ns; });
    collected.processes.push_back(std::move(process));
  }
  return collected;
}

}  // namespace syncline::analysis::why
