// SPDX-License-Identifier: Apache-2.0
// What the events of PyTorch's hook (syncline_torch) mean on the timeline.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "timeline/collective_kinds.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {
namespace {

constexpr uint8_t kTransferGroup = 5;  // AsyncSpans::Key::group
// syncline_torch:operators
constexpr uint64_t kLeftOut = 2;

}  // namespace

CollectiveMatcher::Place NodeBuilder::PlaceOf(const Moment& moment) const {
  // Of a node of which nothing is known, nothing is ruled out.
  constexpr int64_t kUnknownBoundNs = int64_t{1} << 60;
  return {moment.node, moment.timeline,
          context_.node.placement->BoundNs(moment.node.ns).value_or(kUnknownBoundNs)};
}

void NodeBuilder::OnTorch(EventKind kind, const Here& here) {
  Process& process = tracks_.ProcessAt(here.process);
  const ProcessEntry& entry = tables_.processes()[here.process];
  const std::string_view group = entry.Name(event_.U32(Field::kGroup));
  CollectiveMatcher& matcher = matchers_->collectives;
  if (kind == EventKind::kTorchGroup) {
    const uint32_t number = CollectivesOf(&process);
    CollectiveMatcher::GroupState state;
    if (entry.known != nullptr) state.group.job = entry.known->job;
    if (entry.known != nullptr) state.group.incarnation = entry.known->incarnation;
    state.group.name = group;
    state.group.ranks = entry.Name(event_.U32(Field::kRanks));
    state.group.description = entry.Name(event_.U32(Field::kDescription));
    state.group.size = event_.U32(Field::kSize);
    state.rank = static_cast<int32_t>(event_.U64(Field::kRank));
    state.sequence = event_.U64(Field::kSequence);
    matchers_->transfers.OnGroup(number, context_.index, state.group, state.rank, state.sequence);
    matcher.OnGroup(number, here.thread, std::move(state));
    return;
  }
  if (kind == EventKind::kTorchTransferBegin || kind == EventKind::kTorchTransferEnd) {
    if (kind == EventKind::kTorchTransferBegin) matcher.OnTransfer(CollectivesOf(&process), group);
    OnTransfer(kind, here);
    return;
  }
  if (kind == EventKind::kTorchOperators) return OnOperators(here);
  const uint32_t number = CollectivesOf(&process);
  matchers_->transfers.OnSequence(number, group, event_.U64(Field::kSequence));
  matcher.OnCall(number, here.thread, group, entry.Name(event_.U32(Field::kName)),
                 event_.U64(Field::kSequence), event_.U64(Field::kBytes), PlaceOf(here.moment));
}

void NodeBuilder::OnOperators(const Here& here) {
  Thread& thread = tracks_.ThreadAt(here.thread);
  if (event_.U64(Field::kOn) == kLeftOut) {
    if (!thread.left_out_since_ns.has_value()) thread.left_out_since_ns = here.moment.node.ns;
    return;
  }
  EndLeftOut(&thread, here.moment.node.ns);
  const Process& process = tracks_.ProcessAt(here.process);
  if (process.collectives.has_value()) {
    matchers_->collectives.OnOperators(*process.collectives, here.thread);
  }
}

void NodeBuilder::EndLeftOut(Thread* thread, int64_t end_ns) {
  if (!thread->left_out_since_ns.has_value()) return;
  const int64_t begin_ns = *std::exchange(thread->left_out_since_ns, std::nullopt);
  const Loss loss =
      ledger_.Bounded({LossReason::kNotCovered, begin_ns, end_ns, std::nullopt,
                       tracks_.ProcessAt(thread->process).name,
                       "a profiler of the program's own (torch.profiler) uses the thread: "
                       "PyTorch's operators are not recorded"});
  ledger_.PushHole(thread->spans->track(), loss);
  ledger_.Add(loss, /*draw_on_node=*/false);
}

void NodeBuilder::OnCollectiveTask(EventKind kind, TextId name, const Here& here) {
  if (name >= task_parts_.size()) task_parts_.resize(size_t{name} + 1, TaskPart::kUnknown);
  TaskPart& part = task_parts_[name];
  if (part == TaskPart::kUnknown) {
    const std::string_view task = tables_.processes()[here.process].Name(event_.U32(Field::kName));
    const std::string_view launch = CollectiveOfLaunch(task);
    const std::string_view work = CollectiveOfWork(task);
    part = !launch.empty() ? TaskPart::kLaunch : !work.empty() ? TaskPart::kWork : TaskPart::kNone;
    if (part != TaskPart::kNone) collective_names_[name] = launch.empty() ? work : launch;
  }
  if (part == TaskPart::kNone) return;
  CollectiveMatcher& matcher = matchers_->collectives;
  // Launches count also before the first announcement of a group, which may lie behind them.
  const uint32_t process = CollectivesOf(&tracks_.ProcessAt(here.process));
  const bool begins = kind == EventKind::kTaskBegin;
  if (part == TaskPart::kLaunch && begins) {
    matcher.OnLaunch(process, here.thread, collective_names_[name], PlaceOf(here.moment));
  } else if (part == TaskPart::kWork && begins) {
    matcher.OnWorkBegin(process, here.thread, collective_names_[name]);
  } else if (part == TaskPart::kWork) {
    matcher.OnWorkEnd(process, here.thread, PlaceOf(here.moment));
  }
}

void NodeBuilder::OnTransfer(EventKind kind, const Here& here) {
  Process& process = tracks_.ProcessAt(here.process);
  AsyncSpans& async = *process.async;
  const auto peer = static_cast<int32_t>(event_.U64(Field::kPeer));
  const AsyncSpans::Key key{kTransferGroup, 0, event_.Id()};
  AsyncSpans::Label label;
  label.group_name = "sends and receives";
  label.category = context_.emitter->Text("torch.distributed");
  if (kind == EventKind::kTorchTransferEnd) {
    // What it ends with has no name: without its begin it cannot be told.
    if (async.IsOpen(key)) async.End(key, label, here.moment);
    if (process.collectives.has_value()) {
      matchers_->transfers.OnEnd(*process.collectives, event_.Id().d1, peer, PlaceOf(here.moment));
    }
    return;
  }
  const std::string_view name = tables_.processes()[here.process].Name(event_.U32(Field::kName));
  label.name = context_.emitter->Text(
      peer < 0 ? absl::StrCat(AbslView(name), " from any")
               : absl::StrCat(AbslView(name), name == "send" ? " to " : " from ", peer));
  Span* span = async.Begin(key, label, here.moment);
  const auto add = [&](std::string_view text, Argument argument) {
    argument.key = context_.emitter->Text(text);
    span->arguments.push_back(argument);
  };
  Argument argument;
  argument.kind = Argument::Kind::kText;
  argument.text = tracks_.NameText(here.process, event_.U32(Field::kGroup));
  add("group", argument);
  argument.kind = Argument::Kind::kInt;
  argument.i = static_cast<int32_t>(event_.U64(Field::kTag));
  add("tag", argument);
  argument.i = static_cast<int64_t>(event_.U64(Field::kBytes));
  add("bytes", argument);
  TransferMatcher::Begin begin;
  begin.id = event_.Id().d1;
  begin.group = tables_.processes()[here.process].Name(event_.U32(Field::kGroup));
  begin.send = name == "send";
  begin.peer = peer;
  begin.tag = static_cast<int32_t>(event_.U64(Field::kTag));
  begin.bytes = event_.U64(Field::kBytes);
  begin.track = span->track;
  matchers_->transfers.OnBegin(CollectivesOf(&process), begin, PlaceOf(here.moment));
}

}  // namespace syncline::timeline
