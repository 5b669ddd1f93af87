// SPDX-License-Identifier: Apache-2.0
#include "timeline/node_builder.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "timeline/clock_bounds.h"
#include "timeline/node_profiles.h"

namespace syncline::timeline {
namespace {

constexpr uint64_t kProgressEvents = 1 << 16;

}  // namespace

NodeBuilder::NodeBuilder(const NodeInput& node, uint32_t index, const BuildOptions& options,
                         Emitter* emitter, SharedTracks* shared, Matchers* matchers)
    : context_{node, index, node.placement->clock(), options, emitter},
      events_(options.events),
      matchers_(matchers),
      tracks_(context_, &tables_, shared),
      ledger_(context_, tracks_, result_.seen),
      losses_(context_, &tracks_, &ledger_),
      coverage_(context_, {.tables = tables_,
                           .read = read_,
                           .tracks = &tracks_,
                           .ledger = &ledger_,
                           .losses = &losses_}),
      foreign_(context_, &tables_, &tracks_, &losses_),
      net_(context_, tables_, &tracks_, &matchers->messages),
      torch_(context_, {.tables = tables_,
                        .tracks = &tracks_,
                        .ledger = &ledger_,
                        .collectives = &matchers->collectives,
                        .transfers = &matchers->transfers}),
      devices_(context_, tables_, &tracks_, &ledger_),
      device_collectives_(context_, tables_, &tracks_, &ledger_),
      arrows_(context_, tables_, &tracks_),
      itt_(context_, tables_, &tracks_, &arrows_),
      ids_(emitter, "id"),
      parent_ids_(emitter, "parent id") {
  result_.name = node.name;
  result_.index = index;
}

absl::StatusOr<NodeResult> NodeBuilder::Build() {
  tracks_.AddNode();
  tables_ = NodeTables::Of(context_.node, context_.index);
  if (context_.options.cut.has_value() && context_.options.look_back_ns.has_value()) {
    SYNCLINE_ASSIGN_OR_RETURN(read_, ChoosePart(context_.node, tables_, *context_.options.cut,
                                                *context_.options.look_back_ns));
    result_.read_in_part = !read_.whole();
    result_.inside_of_unread_threads = read_.unresolved_threads;
  }
  SYNCLINE_RETURN_IF_ERROR(tables_.Scan(read_.part, context_.options.threads));
  SYNCLINE_RETURN_IF_ERROR(OpenStreams());
  for (uint64_t events = 0;; ++events) {
    SYNCLINE_ASSIGN_OR_RETURN(const StreamMerger::Head* head, merger_.Next());
    if (head == nullptr) break;
    if (events % kProgressEvents == 0 && context_.options.progress) {
      context_.options.progress({context_.index, head->time, events});
    }
    Dispatch(*head);
  }
  std::vector<ProcessDevices> traced = devices_.Finish();
  result_.device_collectives = device_collectives_.Finish();
  Finish();
  NodeProfiles profiles(context_, {.tables = tables_,
                                   .tracks = &tracks_,
                                   .ledger = &ledger_,
                                   .tensors = &matchers_->tensors,
                                   .collectives = &matchers_->profile_collectives});
  SYNCLINE_ASSIGN_OR_RETURN(NodeProfiles::Results found, profiles.Push());
  result_.profiles = std::move(found.profiles);
  result_.partitions = std::move(found.partitions);
  result_.devices = std::move(found.devices);
  std::move(traced.begin(), traced.end(), std::back_inserter(result_.devices));
  return TakeResult();
}

absl::Status NodeBuilder::OpenStreams() {
  for (size_t i = 0; i < context_.node.readers.size(); ++i) {
    TraceReader* reader = context_.node.readers[i];
    // Our own events are counted, shown or not.
    const auto wanted =
        std::make_shared<const ClassChoice>(reader, [this](const EventClass& event_class) {
          return KindOf(event_class.name) != EventKind::kForeign ||
                 context_.options.events.Matches(event_class.name);
        });
    for (const StreamInfo& stream : reader->streams()) {
      SYNCLINE_ASSIGN_OR_RETURN(auto cursor,
                                reader->Open(stream.index, read_.part.begin_ns, read_.part.end_ns));
      merger_.Add(KeepWanted(std::move(cursor), wanted), context_.node.placement);
      Source source;
      source.owner = tables_.owner_of_reader(i);
      source.name = stream.name;
      losses_.AddStream();
      sources_.push_back(std::move(source));
      if (stream.begin_ns == 0 && stream.end_ns == 0) continue;
      ledger_.AddStream({stream.begin_ns, stream.end_ns});
    }
  }
  result_.streams = sources_.size();
  return absl::OkStatus();
}

uint32_t NodeBuilder::ThreadOf(uint32_t source, uint32_t thread_key) {
  Source& entry = sources_[source];
  KnownKey& known = entry.known[thread_key % kKnownKeys];
  if (known.key != thread_key || known.thread == kNoNumber) {
    known = {thread_key, tables_.ThreadFor(entry.owner, thread_key)};
  }
  return known.thread;
}

void NodeBuilder::UpdateLosses(uint32_t source) {
  // The threads that it hit have it; of other traces than Syncline's none are known.
  losses_.Update(source, merger_.cursor(source)->losses(),
                 /*draw_on_node=*/tables_.processes().empty());
}

void NodeBuilder::DoubtTasks(int64_t time_ns) {
  for (uint32_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    const std::span<const Loss> losses = merger_.cursor(i)->losses();
    for (; source.doubted < losses.size(); ++source.doubted) {
      const ClockInterval bounds = ledger_.BoundsOf(losses[source.doubted]);
      if (bounds.begin_ns > time_ns) break;
      arrows_.DoubtOwner(source.owner, bounds.end_ns);
    }
  }
}

void NodeBuilder::Dispatch(const StreamMerger::Head& head) {
  UpdateLossesOf(head.source);
  if (FollowTask(head)) return;
  const EventKind kind = event_.Kind(*head.record);
  if (kind == EventKind::kCanary) return;
  const bool counted = context_.IsCounted(head.time);
  if (counted && events_.Shows(kind)) ++result_.events;
  const int64_t time_ns = head.record->time_ns;
  if (!result_.seen.has_value()) result_.seen = ClockInterval{time_ns, time_ns};
  result_.seen->end_ns = std::max(result_.seen->end_ns, time_ns);
  if (!event_.Decode(head.cursor, *head.record)) {
    if (counted) ++result_.undecodable_events;
    return;
  }
  if (kind == EventKind::kForeign) {
    if (counted) ++result_.foreign_events;
    const Source& source = sources_[head.source];
    foreign_.On(head, event_, {source.owner, source.name});
    return;
  }
  NodeEvent event{kind, event_, {{context_.clock, time_ns}, head.time}};
  if (HasThread(kind)) {
    event.thread = ThreadOf(head.source, event_.U32(Field::kThread));
    event.process = tracks_.ThreadAt(event.thread).process;
    losses_.Seen(event.thread, head.source, time_ns);
    if (kind == EventKind::kTaskBegin || kind == EventKind::kTaskEnd) {
      if (event_.Has(Field::kNumber)) {
        const auto number = static_cast<uint16_t>(event_.U64(Field::kNumber));
        if (losses_.Numbered(event.thread, number, time_ns)) {
          arrows_.Doubt(event.process, time_ns - 1);
        }
      }
    }
  } else {
    event.process = tables_.ProcessFor(sources_[head.source].owner, event_.U32(Field::kProcess));
  }
  Process& process = tracks_.ProcessAt(event.process);
  ++process.found_events;
  if (counted) ++process.counted_here;
  if (!process.covered_since.has_value() && kind != EventKind::kOff) {
    coverage_.Begin(event);
  }
  if (events_.Heeds(kind)) Handle(event);
  tracks_.ProcessAt(event.process).last = event.at;
  if (HasThread(kind)) tracks_.ThreadAt(event.thread).spans->Seen(event.at);
}

void NodeBuilder::Handle(const NodeEvent& event) {
  switch (event.kind) {
    case EventKind::kOn:
    case EventKind::kOff:
    case EventKind::kPause:
    case EventKind::kResume:
      coverage_.On(event);
      break;
    case EventKind::kTaskBegin:
    case EventKind::kTaskEnd:
      OnTask(event);
      break;
    case EventKind::kConnection:
    case EventKind::kConnectionState:
    case EventKind::kSend:
    case EventKind::kReceive:
    case EventKind::kSendUnplaced:
    case EventKind::kReceiveUnplaced:
    case EventKind::kDoubt:
      net_.On(event);
      break;
    case EventKind::kTorchOperators:
    case EventKind::kTorchGroup:
    case EventKind::kTorchCollective:
    case EventKind::kTorchRoot:
    case EventKind::kTorchTransferBegin:
    case EventKind::kTorchTransferEnd:
      torch_.On(event);
      break;
    case EventKind::kDeviceLaunch:
    case EventKind::kDeviceWork:
    case EventKind::kDeviceTracing:
    case EventKind::kDeviceLost:
      devices_.On(event);
      break;
    case EventKind::kDeviceCollectiveCall:
    case EventKind::kDeviceCollective:
      device_collectives_.On(event);
      break;
    case EventKind::kRelation:
      DoubtTasks(event.at.node.ns);
      [[fallthrough]];
    default:
      itt_.On(event);
      break;
  }
}

// False where they were not met before, or may belong to a collective, of a group that is announced
// or that will be.
bool NodeBuilder::FollowNames(const PlainTask& task, const Process& process,
                              ThreadSpans::Task* span) const {
  // Texts are numbered in the order in which they are met.
  const size_t known = process.texts.size();
  if (task.name == 0 || task.name >= known || task.domain >= known) return false;
  span->name = process.texts[task.name];
  span->category = process.texts[task.domain];
  if (span->name == kNoText || (span->category == kNoText && task.domain != 0)) return false;
  return torch_.IgnoresTask(span->name);
}

bool NodeBuilder::FollowTask(const StreamMerger::Head& head) {
  PlainTask task;
  if (!event_.ReadTask(*head.record, &task)) return false;
  const Source& source = sources_[head.source];
  const KnownKey& known = source.known[task.thread % kKnownKeys];
  if (known.key != task.thread || known.thread >= tracks_.threads().size()) return false;
  Thread& thread = tracks_.threads()[known.thread];
  if (thread.spans == nullptr || thread.last_source != head.source) return false;
  if (task.numbered && !thread.numbers.Follows(task.number)) return false;  // the first, or a loss
  if (thread.numbers.has_pending() || task.depth > ThreadSpans::kDepthMax) return false;
  Process& process = tracks_.processes()[thread.process];
  if (!process.covered_since.has_value()) return false;
  ThreadSpans::Task span;
  const bool heeded = events_.Heeds(EventKind::kTaskBegin);
  if (heeded && !FollowNames(task, process, &span)) return false;
  const int64_t time_ns = head.record->time_ns;
  if (!losses_.SeenAgain(known.thread, head.source, time_ns)) return false;
  thread.last_ns = time_ns;
  if (task.numbered) thread.numbers.Found(task.number, time_ns);
  result_.seen->end_ns = std::max(result_.seen->end_ns, time_ns);
  // Set piece by piece: what was put together elsewhere is waited for when it is copied.
  Moment& moment = process.last.has_value() ? *process.last : process.last.emplace();
  moment.node.clock = context_.clock;
  moment.node.ns = time_ns;
  moment.timeline = head.time;
  const bool shows = events_.Shows(EventKind::kTaskBegin);
  ++process.found_events;
  if (context_.IsCounted(head.time)) {
    ++process.counted_here;
    result_.events += shows;
  }
  if (!shows) {
    thread.spans->Seen(moment);
    return true;
  }
  span.name_id = task.name;
  span.domain_id = task.domain;
  span.depth = task.depth;
  if (!task.begins) {
    thread.spans->End(span, moment);
    return true;
  }
  if (task.id) span.id = task.id;
  Span* const begun = thread.spans->Begin(span, moment);
  if (task.id) ids_.Add(task.id, &begun->arguments);
  if (task.parent) parent_ids_.Add(task.parent, &begun->arguments);
  arrows_.Began(thread.process, task.domain, task.id, *begun);
  return true;
}

void NodeBuilder::OnTask(const NodeEvent& event) {
  ThreadSpans::Task task;
  task.name_id = event.fields.U32(Field::kName);
  task.domain_id = event.fields.U32(Field::kDomain);
  task.depth = static_cast<uint16_t>(event.fields.U64(Field::kDepth));
  task.id = event.fields.Id();
  task.category = tracks_.NameText(event.process, task.domain_id);
  const uint64_t function = event.fields.U64(Field::kFn);
  if (task.name_id != 0) {
    task.name = tracks_.NameText(event.process, task.name_id);
  } else if (const std::string_view text = event.fields.Text(Field::kName); !text.empty()) {
    task.name = context_.emitter->Text(text);
    arrows_.Doubt(event.process, event.at.node.ns);  // it may have an id
  } else {
    task.name = context_.emitter->Text(function != 0 ? absl::StrFormat("function 0x%x", function)
                                                     : std::string("unnamed task"));
  }
  torch_.OnTask(task.name, event);
  if (!events_.Shows(event.kind)) return;
  ThreadSpans& spans = *tracks_.ThreadAt(event.thread).spans;
  if (event.kind == EventKind::kTaskEnd) {
    spans.End(task, event.at);
    return;
  }
  Span* span = spans.Begin(task, event.at);
  if (span == nullptr) return;
  ids_.Add(task.id, &span->arguments);
  parent_ids_.Add(event.fields.ParentId(), &span->arguments);
  arrows_.Began(event.process, task.domain_id, task.id, *span);
  if (function != 0) {
    Argument argument;
    argument.key = context_.emitter->Text("function");
    argument.kind = Argument::Kind::kText;
    argument.text = context_.emitter->Text(absl::StrFormat("0x%x", function));
    span->arguments.push_back(argument);
  }
}

void NodeBuilder::Finish() {
  for (uint32_t source = 0; source < sources_.size(); ++source) UpdateLosses(source);
  for (const TraceReader* reader : context_.node.readers) {
    for (const Loss& loss : reader->losses()) ledger_.Add(loss, /*draw_on_node=*/true);
  }
  for (const Loss& loss : context_.node.losses) ledger_.Add(loss, /*draw_on_node=*/true);
  for (uint32_t i = 0; i < tables_.processes().size(); ++i) {
    const bool ours = i < tracks_.processes().size() && tracks_.processes()[i].found_events > 0;
    if (!ours && tables_.processes()[i].known == nullptr) continue;
    coverage_.FinishProcess(i);
    const std::vector<ClockInterval>& covered = coverage_.Of(i).intervals;
    if (!covered.empty()) torch_.RecordedUntil(i, context_.At(covered.back().end_ns).timeline);
  }
  coverage_.LoseUntracked();
  for (uint32_t i = 0; i < tracks_.threads().size(); ++i) {
    Thread& thread = tracks_.threads()[i];
    if (thread.spans == nullptr) continue;
    torch_.Finish(i);
    losses_.Settle(&thread);
    thread.spans->Finish();
    result_.recovered += thread.spans->recovered_count();
  }
  coverage_.FinishNode();
  PushClockBounds(context_, tracks_.node_track(), result_.seen);
  for (ClockEvent event : context_.node.clock_events) {
    event.node = context_.index;
    context_.emitter->Push(event);
  }
}

NodeResult NodeBuilder::TakeResult() {
  for (uint32_t i = 0; i < tracks_.processes().size(); ++i) {
    Process& process = tracks_.processes()[i];
    if (process.track == kNoTrack) continue;
    const ProcessEntry& entry = tables_.processes()[i];
    const Coverage::Process& coverage = coverage_.Of(i);
    ProcessResult result;
    result.key = entry.key;
    result.name = process.name;
    if (entry.known != nullptr) {
      result.command_line = entry.known->command_line;
      result.job = entry.known->job;
      result.role = entry.known->role;
      result.part = entry.known->part;
      result.rank = entry.known->rank;
      result.world_size = entry.known->world_size;
      result.ended_ns = entry.known->ended_ns;
    }
    result.coverage = coverage.intervals;
    result.end_known = coverage.end_known;
    result.cut_off = coverage.cut_off;
    result.found_events = process.counted_here;
    if (!context_.options.cut.has_value()) {
      result.counted_events = coverage.counted_events;
      result.counted_lost = coverage.counted_lost;
      result.cost = coverage.cost;
    }
    result.threads = static_cast<uint32_t>(process.threads.size());
    result_.processes.push_back(std::move(result));
  }
  result_.losses = ledger_.TakeTotals();
  result_.ambiguous_relations = arrows_.ambiguous();
  result_.crowded_relations = arrows_.crowded();
  return std::move(result_);
}

}  // namespace syncline::timeline
