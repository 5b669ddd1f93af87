// SPDX-License-Identifier: Apache-2.0
#include "timeline/itt_observer.h"

#include <bit>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncline::timeline {
namespace {

// AsyncSpans::Key::group
constexpr uint8_t kOverlappedGroup = AsyncSpans::kOverlappedTasks;
constexpr uint8_t kFrameGroup = 2;
constexpr uint8_t kUserEventGroup = 3;
constexpr uint8_t kWaitGroup = 4;

// ITT's own numbers.
constexpr uint64_t kScopeGlobal = 1;
constexpr uint64_t kScopeTrackGroup = 2;
constexpr uint64_t kSyncPrepare = 1;
constexpr uint64_t kSyncCancel = 2;
constexpr uint64_t kSyncAcquired = 3;
constexpr uint8_t kContextUnit = 5;
constexpr uint8_t kFirstContextFlag = 11;

// What else may be said of a counter, by ITT's number; "": nothing.
constexpr std::string_view kContexts[] = {"",
                                          "name",
                                          "",
                                          "device",
                                          "",
                                          "",
                                          "",
                                          "PCI address",
                                          "",
                                          "tid",
                                          "maximum",
                                          "bandwidth",
                                          "latency",
                                          "occupancy",
                                          "of a thread",
                                          "absolute",
                                          "CPU instructions",
                                          "CPU cycles"};

// The unit and the facts of a counter's track.
void Describe(const ProcessEntry& process, const std::map<uint8_t, CounterFact>& said,
              Track* track) {
  for (const auto& [kind, fact] : said) {
    if (kind == kContextUnit) track->unit = process.Name(fact.text);
    const std::string_view key = kind < std::size(kContexts) ? kContexts[kind] : "";
    if (key.empty()) continue;
    const bool is_flag = kind >= kFirstContextFlag;
    track->facts.emplace_back(key, fact.text != 0    ? std::string(process.Name(fact.text))
                                   : !is_flag        ? absl::StrCat(fact.value)
                                   : fact.value != 0 ? "yes"
                                                     : "no");
  }
}

}  // namespace

void IttObserver::On(const NodeEvent& event) {
  switch (event.kind) {
    case EventKind::kTaskBeginOverlapped:
    case EventKind::kTaskEndOverlapped:
    case EventKind::kFrameBegin:
    case EventKind::kFrameEnd:
    case EventKind::kEventStart:
    case EventKind::kEventEnd:
      OnAsync(event);
      break;
    case EventKind::kFrameSubmit:
      OnFrameSubmit(event);
      break;
    case EventKind::kMetadata:
    case EventKind::kMetadataF64:
    case EventKind::kMetadataText:
    case EventKind::kMetadataName:
      OnMetadata(event);
      break;
    case EventKind::kMarker:
      OnMarker(event);
      break;
    case EventKind::kCounter:
      OnCounter(event);
      break;
    case EventKind::kRelation:
      OnRelation(event);
      break;
    case EventKind::kSync:
      OnSync(event);
      break;
    default:
      break;
  }
}

Instant IttObserver::InstantOf(const NodeEvent& event, TrackId track, TextId category) const {
  Instant instant;
  instant.track = track;
  instant.category = category;
  instant.time = event.at.timeline;
  instant.node_time = event.at.node;
  return instant;
}

void IttObserver::OnAsync(const NodeEvent& event) {
  const EventReader& fields = event.fields;
  const uint32_t domain_id = fields.U32(Field::kDomain);
  AsyncSpans::Key key;
  AsyncSpans::Label label;
  label.category = tracks_->NameText(event.process, domain_id);
  bool begin = false;
  switch (event.kind) {
    case EventKind::kTaskBeginOverlapped:
    case EventKind::kTaskEndOverlapped:
      key = {kOverlappedGroup, domain_id, fields.Id()};
      label.name = NameText(event, Field::kName);
      label.group_name = "overlapped tasks";
      begin = event.kind == EventKind::kTaskBeginOverlapped;
      break;
    case EventKind::kFrameBegin:
    case EventKind::kFrameEnd:
      key = {kFrameGroup, domain_id, fields.Id()};
      label.name = label.category;
      label.group_name = "frames";
      begin = event.kind == EventKind::kFrameBegin;
      break;
    default:
      key = {kUserEventGroup, fields.U32(Field::kName), {}};
      label.name = NameText(event, Field::kName);
      label.group_name = "user events";
      begin = event.kind == EventKind::kEventStart;
      break;
  }
  AsyncSpans& async = *tracks_->ProcessAt(event.process).async;
  if (!begin) {
    async.End(key, label, event.at);
    return;
  }
  Span* span = async.Begin(key, label, event.at);
  ids_.Add(fields.Id(), &span->arguments);
  parent_ids_.Add(fields.ParentId(), &span->arguments);
  if (event.kind != EventKind::kTaskBeginOverlapped) return;
  arrows_->Began(event.process, domain_id, fields.Id(), *span);
}

void IttObserver::OnFrameSubmit(const NodeEvent& event) {
  AsyncSpans::Label label;
  label.category = NameText(event, Field::kDomain);
  label.name = label.category;
  label.group_name = "frames";
  const auto begin_ns = static_cast<int64_t>(event.fields.U64(Field::kBegin));
  const auto end_ns = static_cast<int64_t>(event.fields.U64(Field::kEnd));
  // Times in the trace clock that the program made up itself: only what can be is drawn.
  if (begin_ns <= 0 || begin_ns > end_ns || end_ns > event.at.node.ns) return;
  tracks_->ProcessAt(event.process).async->Whole(label, context_.At(begin_ns), context_.At(end_ns));
}

std::vector<Argument> IttObserver::MetadataOf(const NodeEvent& event) {
  const TextId key = NameText(event, Field::kKey);
  std::vector<Argument> arguments;
  if (event.kind == EventKind::kMetadata || event.kind == EventKind::kMetadataF64) {
    AddArguments(key, event.fields.Values(Field::kValues), context_.emitter, &arguments);
    for (Argument& argument : arguments) {
      if (event.kind != EventKind::kMetadataF64 || argument.kind != Argument::Kind::kUint) continue;
      argument.kind = Argument::Kind::kReal;
      argument.d = std::bit_cast<double>(argument.u);
    }
    return arguments;
  }
  Argument& argument = arguments.emplace_back();
  argument.key = key;
  argument.kind = Argument::Kind::kText;
  argument.text = event.kind == EventKind::kMetadataName
                      ? NameText(event, Field::kText)
                      : context_.emitter->Text(event.fields.Text(Field::kText));
  return arguments;
}

void IttObserver::OnMetadata(const NodeEvent& event) {
  const IttId id = event.fields.Id();
  const auto depth = static_cast<uint16_t>(event.fields.U64(Field::kDepth));
  std::vector<Argument> arguments = MetadataOf(event);
  ThreadSpans& spans = *tracks_->ThreadAt(event.thread).spans;
  Span* span = spans.FindOpen(id, depth);
  if (span == nullptr && id) span = tracks_->ProcessAt(event.process).async->FindOpen(id);
  if (span == nullptr && id) span = tracks_->FindOpenTask(event.process, id);
  if (span != nullptr) {
    span->arguments.insert(span->arguments.end(), arguments.begin(), arguments.end());
    return;
  }
  // Its task is not open, or its begin was lost: shown where it was said, not guessed at.
  const TextId name = context_.emitter->Text("metadata");
  Instant instant = InstantOf(event, spans.track(), NameText(event, Field::kDomain));
  instant.name = name;
  instant.arguments = std::move(arguments);
  context_.emitter->Push(instant);
}

void IttObserver::OnMarker(const NodeEvent& event) {
  const uint64_t scope = event.fields.U64(Field::kScope);
  const bool of_process = scope == kScopeGlobal || scope == kScopeTrackGroup;
  const TextId name = NameText(event, Field::kName);
  Instant instant = InstantOf(event,
                              of_process ? tracks_->ProcessAt(event.process).track
                                         : tracks_->ThreadAt(event.thread).spans->track(),
                              NameText(event, Field::kDomain));
  instant.name = name;
  ids_.Add(event.fields.Id(), &instant.arguments);
  context_.emitter->Push(instant);
}

TrackId IttObserver::AddCounter(uint32_t process, const std::pair<uint32_t, uint32_t>& counter) {
  const ProcessEntry& entry = tables_.processes()[process];
  const std::string_view domain = entry.Name(counter.first);
  const std::string_view name = entry.Name(counter.second);
  Track track;
  track.parent = tracks_->ProcessAt(process).track;
  track.kind = TrackKind::kCounter;
  track.name = domain.empty() ? std::string() : std::string(domain) + " · ";
  track.name += name.empty() ? absl::StrCat("counter #", counter.second) : std::string(name);
  track.node = context_.index;
  track.process = entry.key;
  const auto said = entry.counters.find(counter);
  if (said != entry.counters.end()) Describe(entry, said->second, &track);
  return context_.emitter->AddTrack(std::move(track));
}

void IttObserver::OnCounter(const NodeEvent& event) {
  const std::pair key{event.fields.U32(Field::kDomain), event.fields.U32(Field::kName)};
  if (event.process >= counters_.size()) counters_.resize(event.process + 1);
  auto& counters = counters_[event.process];
  auto found = counters.find(key);
  if (found == counters.end()) {
    found = counters.emplace(key, AddCounter(event.process, key)).first;
  }
  context_.emitter->Push(
      CounterValue{found->second, event.at.timeline, event.fields.Real(Field::kValue)});
}

void IttObserver::OnRelation(const NodeEvent& event) {
  const TextId name = context_.emitter->Text(
      absl::StrCat("relation: ", RelationName(event.fields.U64(Field::kKind))));
  Instant instant = InstantOf(event, tracks_->ThreadAt(event.thread).spans->track(),
                              NameText(event, Field::kDomain));
  instant.name = name;
  ids_.Add(event.fields.Id(), &instant.arguments);
  other_ids_.Add(event.fields.OtherId(), &instant.arguments);
  context_.emitter->Push(instant);
  arrows_->On(event);
}

void IttObserver::OnSync(const NodeEvent& event) {
  AsyncSpans& async = *tracks_->ProcessAt(event.process).async;
  const uint64_t kind = event.fields.U64(Field::kKind);
  const uint32_t thread_key = tables_.threads()[event.thread].thread_key;
  const uint64_t object = event.fields.U64(Field::kObject);
  const AsyncSpans::Key key{kWaitGroup, thread_key, {object, 1, 0}};
  AsyncSpans::Label label;
  label.name = event.fields.U32(Field::kName) != 0
                   ? NameText(event, Field::kName)
                   : context_.emitter->Text(absl::StrFormat("object 0x%x", object));
  label.category = context_.emitter->Text("sync");
  label.group_name = "waits";
  if (kind == kSyncPrepare) {
    async.Begin(key, label, event.at);
    return;
  }
  const bool ends_wait = kind == kSyncCancel || kind == kSyncAcquired;
  if (ends_wait && async.IsOpen(key)) {
    async.End(key, label, event.at);
    return;
  }
  // Acquired without waiting, or releasing.
  Instant instant =
      InstantOf(event, tracks_->ThreadAt(event.thread).spans->track(), label.category);
  instant.name = label.name;
  context_.emitter->Push(instant);
}

}  // namespace syncline::timeline
