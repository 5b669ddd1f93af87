// SPDX-License-Identifier: Apache-2.0
// What each event of our own means on the timeline.
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {
namespace {

// AsyncSpans::Key::group
constexpr uint8_t kOverlappedGroup = 1;
constexpr uint8_t kFrameGroup = 2;
constexpr uint8_t kUserEventGroup = 3;
constexpr uint8_t kWaitGroup = 4;

// ITT's own numbers.
constexpr uint64_t kScopeGlobal = 1;
constexpr uint64_t kScopeTrackGroup = 2;
constexpr uint64_t kSyncPrepare = 1;
constexpr uint64_t kSyncCancel = 2;
constexpr uint64_t kSyncAcquired = 3;

const char* RelationName(uint64_t kind) {
  constexpr const char* kNames[] = {"is unknown",      "is dependent on",    "is sibling of",
                                    "is parent of",    "is continuation of", "is child of",
                                    "is continued by", "is predecessor to"};
  return kind < std::size(kNames) ? kNames[kind] : "is unknown";
}

}  // namespace

void NodeBuilder::OnControl(EventKind kind, const Here& here) {
  Process& process = tracks_.ProcessAt(here.process);
  switch (kind) {
    case EventKind::kOn:
    case EventKind::kResume:
      Cover(here.process, here.moment, /*begin_again=*/true);
      break;
    case EventKind::kOff:
      process.counted_events = event_.U64(Field::kEvents);
      process.counted_lost = event_.U64(Field::kLost);
      process.cost = DurationEstimate{.est_ns = static_cast<int64_t>(event_.U64(Field::kCostNs))};
      [[fallthrough]];
    case EventKind::kPause:
      // Paused and then switched off: coverage ended at the pause.
      if (!process.pending_end.has_value()) {
        process.pending_end = here.moment;
        process.pauses = kind == EventKind::kPause;
      }
      process.end_known = true;
      break;
    default:
      break;
  }
}

void NodeBuilder::OnTask(EventKind kind, const Here& here) {
  ThreadSpans::Task task;
  task.name_id = event_.U32(Field::kName);
  task.domain_id = event_.U32(Field::kDomain);
  task.depth = static_cast<uint16_t>(event_.U64(Field::kDepth));
  task.id = event_.Id();
  task.category = tracks_.NameText(here.process, task.domain_id);
  const uint64_t function = event_.U64(Field::kFn);
  if (task.name_id != 0) {
    task.name = tracks_.NameText(here.process, task.name_id);
  } else if (const std::string_view text = event_.Text(Field::kName); !text.empty()) {
    task.name = context_.emitter->Text(text);
  } else {
    task.name = context_.emitter->Text(function != 0 ? absl::StrFormat("function 0x%x", function)
                                                     : std::string("unnamed task"));
  }
  torch_.OnTask(task.name, {kind, event_, here.moment, here.thread, here.process});
  if (!events_.Shows(kind)) return;
  ThreadSpans& spans = *tracks_.ThreadAt(here.thread).spans;
  if (kind == EventKind::kTaskEnd) {
    spans.End(task, here.moment);
    return;
  }
  Span* span = spans.Begin(task, here.moment);
  if (span == nullptr) return;
  ids_.Add(task.id, &span->arguments);
  parent_ids_.Add(event_.ParentId(), &span->arguments);
  if (function != 0) {
    Argument argument;
    argument.key = context_.emitter->Text("function");
    argument.kind = Argument::Kind::kText;
    argument.text = context_.emitter->Text(absl::StrFormat("0x%x", function));
    span->arguments.push_back(argument);
  }
}

void NodeBuilder::OnAsync(EventKind kind, const Here& here) {
  Process& process = tracks_.ProcessAt(here.process);
  const uint32_t name_id = event_.U32(Field::kName);
  const uint32_t domain_id = event_.U32(Field::kDomain);
  AsyncSpans::Key key;
  AsyncSpans::Label label;
  label.category = tracks_.NameText(here.process, domain_id);
  bool begin = false;
  switch (kind) {
    case EventKind::kTaskBeginOverlapped:
    case EventKind::kTaskEndOverlapped:
      key = {kOverlappedGroup, domain_id, event_.Id()};
      label.name = tracks_.NameText(here.process, name_id);
      label.group_name = "overlapped tasks";
      begin = kind == EventKind::kTaskBeginOverlapped;
      break;
    case EventKind::kFrameBegin:
    case EventKind::kFrameEnd:
      key = {kFrameGroup, domain_id, event_.Id()};
      label.name = label.category;
      label.group_name = "frames";
      begin = kind == EventKind::kFrameBegin;
      break;
    default:
      key = {kUserEventGroup, name_id, {}};
      label.name = tracks_.NameText(here.process, name_id);
      label.group_name = "user events";
      begin = kind == EventKind::kEventStart;
      break;
  }
  if (!begin) {
    process.async->End(key, label, here.moment);
    return;
  }
  Span* span = process.async->Begin(key, label, here.moment);
  ids_.Add(event_.Id(), &span->arguments);
  parent_ids_.Add(event_.ParentId(), &span->arguments);
}

void NodeBuilder::OnFrameSubmit(const Here& here) {
  Process& process = tracks_.ProcessAt(here.process);
  AsyncSpans::Label label;
  label.category = tracks_.NameText(here.process, event_.U32(Field::kDomain));
  label.name = label.category;
  label.group_name = "frames";
  const auto begin_ns = static_cast<int64_t>(event_.U64(Field::kBegin));
  const auto end_ns = static_cast<int64_t>(event_.U64(Field::kEnd));
  // Times in the trace clock that the program made up itself: only what can be is drawn.
  if (begin_ns <= 0 || begin_ns > end_ns || end_ns > here.moment.node.ns) return;
  process.async->Whole(label, context_.At(begin_ns), context_.At(end_ns));
}

// Where nobody speaks of another thread's tasks, ids are not kept.
Span* NodeBuilder::FindOpenInThreads(uint32_t index, IttId id) {
  Process& process = tracks_.ProcessAt(index);
  if (process.open_ids == nullptr) {
    process.open_ids = std::make_unique<OpenIds>();
    for (const uint32_t thread : process.threads) {
      tracks_.threads()[thread].spans->ListOpenIds(process.open_ids.get(), thread);
    }
  }
  const std::optional<uint32_t> thread = process.open_ids->FirstThread(id);
  return thread.has_value() ? tracks_.threads()[*thread].spans->FindOpen(id, /*depth=*/0) : nullptr;
}

void NodeBuilder::OnMetadata(EventKind kind, const Here& here) {
  const IttId id = event_.Id();
  const auto depth = static_cast<uint16_t>(event_.U64(Field::kDepth));
  const TextId key = tracks_.NameText(here.process, event_.U32(Field::kKey));
  std::vector<Argument> arguments;
  if (kind == EventKind::kMetadata || kind == EventKind::kMetadataF64) {
    AddArguments(key, event_.Values(Field::kValues), context_.emitter, &arguments);
    for (Argument& argument : arguments) {
      if (kind != EventKind::kMetadataF64 || argument.kind != Argument::Kind::kUint) continue;
      argument.kind = Argument::Kind::kReal;
      argument.d = std::bit_cast<double>(argument.u);
    }
  } else {
    Argument argument;
    argument.key = key;
    argument.kind = Argument::Kind::kText;
    argument.text = kind == EventKind::kMetadataName
                        ? tracks_.NameText(here.process, event_.U32(Field::kText))
                        : context_.emitter->Text(event_.Text(Field::kText));
    arguments.push_back(argument);
  }
  ThreadSpans& spans = *tracks_.ThreadAt(here.thread).spans;
  Span* span = spans.FindOpen(id, depth);
  if (span == nullptr && id) span = tracks_.ProcessAt(here.process).async->FindOpen(id);
  if (span == nullptr && id) span = FindOpenInThreads(here.process, id);
  if (span != nullptr) {
    span->arguments.insert(span->arguments.end(), arguments.begin(), arguments.end());
    return;
  }
  // Its task is not open, or its begin was lost: shown where it was said, not guessed at.
  Instant instant;
  instant.track = spans.track();
  instant.name = context_.emitter->Text("metadata");
  instant.category = tracks_.NameText(here.process, event_.U32(Field::kDomain));
  instant.time = here.moment.timeline;
  instant.node_time = here.moment.node;
  instant.arguments = std::move(arguments);
  context_.emitter->Push(instant);
}

void NodeBuilder::OnMarker(const Here& here) {
  const uint64_t scope = event_.U64(Field::kScope);
  const bool of_process = scope == kScopeGlobal || scope == kScopeTrackGroup;
  Instant instant;
  instant.track = of_process ? tracks_.ProcessAt(here.process).track
                             : tracks_.ThreadAt(here.thread).spans->track();
  instant.name = tracks_.NameText(here.process, event_.U32(Field::kName));
  instant.category = tracks_.NameText(here.process, event_.U32(Field::kDomain));
  instant.time = here.moment.timeline;
  instant.node_time = here.moment.node;
  ids_.Add(event_.Id(), &instant.arguments);
  context_.emitter->Push(instant);
}

void NodeBuilder::OnCounter(const Here& here) {
  Process& process = tracks_.ProcessAt(here.process);
  const std::pair key{event_.U32(Field::kDomain), event_.U32(Field::kName)};
  auto found = process.counters.find(key);
  if (found == process.counters.end()) {
    const ProcessEntry& entry = tables_.processes()[here.process];
    const std::string_view domain = entry.Name(key.first);
    const std::string_view name = entry.Name(key.second);
    Track track;
    track.parent = process.track;
    track.kind = TrackKind::kCounter;
    track.name = domain.empty() ? std::string() : std::string(domain) + " · ";
    track.name += name.empty() ? absl::StrCat("counter #", key.second) : std::string(name);
    track.node = context_.index;
    track.process = entry.key;
    found = process.counters.emplace(key, context_.emitter->AddTrack(std::move(track))).first;
  }
  context_.emitter->Push(
      CounterValue{found->second, here.moment.timeline, event_.Real(Field::kValue)});
}

void NodeBuilder::OnRelation(const Here& here) {
  Instant instant;
  instant.track = tracks_.ThreadAt(here.thread).spans->track();
  instant.name =
      context_.emitter->Text(absl::StrCat("relation: ", RelationName(event_.U64(Field::kKind))));
  instant.category = tracks_.NameText(here.process, event_.U32(Field::kDomain));
  instant.time = here.moment.timeline;
  instant.node_time = here.moment.node;
  ids_.Add(event_.Id(), &instant.arguments);
  other_ids_.Add(event_.OtherId(), &instant.arguments);
  context_.emitter->Push(instant);
}

void NodeBuilder::OnSync(const Here& here) {
  Process& process = tracks_.ProcessAt(here.process);
  const uint64_t kind = event_.U64(Field::kKind);
  const uint32_t name_id = event_.U32(Field::kName);
  const uint32_t thread_key = tables_.threads()[here.thread].thread_key;
  const uint64_t object = event_.U64(Field::kObject);
  const AsyncSpans::Key key{kWaitGroup, thread_key, {object, 1, 0}};
  AsyncSpans::Label label;
  label.name = name_id != 0 ? tracks_.NameText(here.process, name_id)
                            : context_.emitter->Text(absl::StrFormat("object 0x%x", object));
  label.category = context_.emitter->Text("sync");
  label.group_name = "waits";
  if (kind == kSyncPrepare) {
    process.async->Begin(key, label, here.moment);
    return;
  }
  const bool ends_wait = kind == kSyncCancel || kind == kSyncAcquired;
  if (ends_wait && process.async->IsOpen(key)) {
    process.async->End(key, label, here.moment);
    return;
  }
  Instant instant;  // acquired without waiting, or releasing
  instant.track = tracks_.ThreadAt(here.thread).spans->track();
  instant.name = label.name;
  instant.category = label.category;
  instant.time = here.moment.timeline;
  instant.node_time = here.moment.node;
  context_.emitter->Push(instant);
}

}  // namespace syncline::timeline
