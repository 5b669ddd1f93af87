// SPDX-License-Identifier: Apache-2.0
#include "timeline/torch_observer.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "timeline/collective_kinds.h"

namespace syncline::timeline {
namespace {

constexpr uint8_t kTransferGroup = 5;  // AsyncSpans::Key::group
constexpr const char* kLanes = "sends and receives";
constexpr const char* kCategory = "torch.distributed";
// syncline_torch:operators
constexpr uint64_t kLeftOut = 2;

}  // namespace

uint32_t TorchObserver::NumberOf(uint32_t process) {
  if (process >= numbers_.size()) numbers_.resize(process + 1);
  std::optional<uint32_t>& number = numbers_[process];
  if (!number.has_value()) number = parts_.collectives->AddProcess(context_.index);
  return *number;
}

CollectiveMatcher::Place TorchObserver::PlaceOf(const Moment& moment) const {
  // Of a node of which nothing is known, nothing is ruled out.
  constexpr int64_t kUnknownBoundNs = int64_t{1} << 60;
  return {moment.node, moment.timeline,
          context_.node.placement->BoundNs(moment.node.ns).value_or(kUnknownBoundNs)};
}

void TorchObserver::On(const NodeEvent& event) {
  const EventReader& fields = event.fields;
  const ProcessEntry& entry = parts_.tables.processes()[event.process];
  const std::string_view group = entry.Name(fields.U32(Field::kGroup));
  switch (event.kind) {
    case EventKind::kTorchGroup:
      OnGroup(group, event);
      break;
    case EventKind::kTorchRoot:
      parts_.collectives->OnRoot(NumberOf(event.process), event.thread, group,
                                 static_cast<int32_t>(fields.U64(Field::kRoot)));
      break;
    case EventKind::kTorchTransferBegin:
      OnTransferBegin(group, event);
      break;
    case EventKind::kTorchTransferEnd:
      OnTransferEnd(event);
      break;
    case EventKind::kTorchOperators:
      OnOperators(event);
      break;
    default: {
      const uint32_t number = NumberOf(event.process);
      const uint64_t sequence = fields.U64(Field::kSequence);
      parts_.transfers->OnSequence(number, group, sequence);
      parts_.collectives->OnCall(number, event.thread, group, entry.Name(fields.U32(Field::kName)),
                                 sequence, fields.U64(Field::kBytes), PlaceOf(event.at));
    }
  }
}

void TorchObserver::OnGroup(std::string_view group, const NodeEvent& event) {
  const EventReader& fields = event.fields;
  const ProcessEntry& entry = parts_.tables.processes()[event.process];
  const uint32_t number = NumberOf(event.process);
  CollectiveMatcher::GroupState state;
  if (entry.known != nullptr) state.group.job = entry.known->job;
  if (entry.known != nullptr) state.group.incarnation = entry.known->incarnation;
  state.group.name = group;
  state.group.ranks = entry.Name(fields.U32(Field::kRanks));
  state.group.description = entry.Name(fields.U32(Field::kDescription));
  state.group.size = fields.U32(Field::kSize);
  state.rank = static_cast<int32_t>(fields.U64(Field::kRank));
  state.sequence = fields.U64(Field::kSequence);
  parts_.transfers->OnGroup(number, context_.index, state.group, state.rank, state.sequence);
  parts_.collectives->OnGroup(number, event.thread, std::move(state));
}

void TorchObserver::OnOperators(const NodeEvent& event) {
  if (event.fields.U64(Field::kOn) == kLeftOut) {
    left_out_since_ns_.try_emplace(event.thread, event.at.node.ns);
    return;
  }
  EndLeftOut(event.thread, event.at.node.ns);
  if (const auto number = FindNumber(event.process); number.has_value()) {
    parts_.collectives->OnOperators(*number, event.thread);
  }
}

void TorchObserver::EndLeftOut(uint32_t thread, int64_t end_ns) {
  const auto since = left_out_since_ns_.find(thread);
  if (since == left_out_since_ns_.end()) return;
  const int64_t begin_ns = since->second;
  left_out_since_ns_.erase(since);
  const TrackTable::Thread& entry = parts_.tracks->ThreadAt(thread);
  const Loss loss =
      parts_.ledger->Bounded({LossReason::kNotCovered, begin_ns, end_ns, std::nullopt,
                              parts_.tracks->ProcessAt(entry.process).name,
                              "a profiler of the program's own (torch.profiler) uses the thread: "
                              "PyTorch's operators are not recorded"});
  parts_.ledger->PushHole(entry.spans->track(), loss);
  parts_.ledger->Add(loss, /*draw_on_node=*/false);
}

void TorchObserver::OnTask(TextId name, const NodeEvent& event) {
  if (name >= task_parts_.size()) task_parts_.resize(size_t{name} + 1, TaskPart::kUnknown);
  TaskPart& part = task_parts_[name];
  if (part == TaskPart::kUnknown) {
    const std::string_view task =
        parts_.tables.processes()[event.process].Name(event.fields.U32(Field::kName));
    const std::string_view launch = CollectiveOfLaunch(task);
    const std::string_view work = CollectiveOfWork(task);
    part = !launch.empty() ? TaskPart::kLaunch : !work.empty() ? TaskPart::kWork : TaskPart::kNone;
    if (part != TaskPart::kNone) collective_names_[name] = launch.empty() ? work : launch;
  }
  if (part == TaskPart::kNone) return;
  CollectiveMatcher& matcher = *parts_.collectives;
  // Launches count also before the first announcement of a group, which may lie behind them.
  const uint32_t process = NumberOf(event.process);
  const bool begins = event.kind == EventKind::kTaskBegin;
  if (part == TaskPart::kLaunch && begins) {
    matcher.OnLaunch(process, event.thread, collective_names_[name], PlaceOf(event.at));
  } else if (part == TaskPart::kWork && begins) {
    matcher.OnWorkBegin(process, event.thread, collective_names_[name]);
  } else if (part == TaskPart::kWork) {
    matcher.OnWorkEnd(process, event.thread, PlaceOf(event.at));
  }
}

void TorchObserver::OnTransferEnd(const NodeEvent& event) {
  AsyncSpans& async = *parts_.tracks->ProcessAt(event.process).async;
  const IttId id = event.fields.Id();
  const AsyncSpans::Key key{kTransferGroup, 0, id};
  AsyncSpans::Label label;
  label.group_name = kLanes;
  label.category = context_.emitter->Text(kCategory);
  // What it ends with has no name: without its begin it cannot be told.
  if (async.IsOpen(key)) async.End(key, label, event.at);
  if (const auto number = FindNumber(event.process); number.has_value()) {
    const auto peer = static_cast<int32_t>(event.fields.U64(Field::kPeer));
    std::optional<int64_t> waited_ns;
    if (event.fields.Has(Field::kWaited)) {
      waited_ns = static_cast<int64_t>(event.fields.U64(Field::kWaited));
    }
    const int32_t tid = parts_.tables.threads()[event.thread].tid;
    parts_.transfers->OnEnd(*number, id.d1, peer, tid, waited_ns, PlaceOf(event.at));
  }
}

void TorchObserver::OnTransferBegin(std::string_view group, const NodeEvent& event) {
  const EventReader& fields = event.fields;
  const uint32_t number = NumberOf(event.process);
  parts_.collectives->OnTransfer(number, group);
  const std::string_view name =
      parts_.tables.processes()[event.process].Name(fields.U32(Field::kName));
  TransferMatcher::Begin begin;
  begin.id = fields.Id().d1;
  begin.group = group;
  begin.send = name == "send";
  begin.peer = static_cast<int32_t>(fields.U64(Field::kPeer));
  begin.tag = static_cast<int32_t>(fields.U64(Field::kTag));
  begin.bytes = fields.U64(Field::kBytes);
  AsyncSpans::Label label;
  label.group_name = kLanes;
  label.category = context_.emitter->Text(kCategory);
  label.name = context_.emitter->Text(
      begin.peer < 0 ? absl::StrCat(AbslView(name), " from any")
                     : absl::StrCat(AbslView(name), begin.send ? " to " : " from ", begin.peer));
  Span* span = parts_.tracks->ProcessAt(event.process)
                   .async->Begin({kTransferGroup, 0, fields.Id()}, label, event.at);
  begin.track = span->track;
  begin.tid = parts_.tables.threads()[event.thread].tid;
  const auto add = [&](std::string_view text, Argument argument) {
    argument.key = context_.emitter->Text(text);
    span->arguments.push_back(argument);
  };
  Argument argument;
  argument.kind = Argument::Kind::kText;
  argument.text = parts_.tracks->NameText(event.process, fields.U32(Field::kGroup));
  add("group", argument);
  argument.kind = Argument::Kind::kInt;
  argument.i = begin.tag;
  add("tag", argument);
  argument.i = static_cast<int64_t>(begin.bytes);
  add("bytes", argument);
  parts_.transfers->OnBegin(number, begin, PlaceOf(event.at));
}

void TorchObserver::RecordedUntil(uint32_t process, TimelineTime time) {
  if (const auto number = FindNumber(process); number.has_value()) {
    parts_.collectives->OnRecordedUntil(*number, time);
  }
}

}  // namespace syncline::timeline
