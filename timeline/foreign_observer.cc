// SPDX-License-Identifier: Apache-2.0
#include "timeline/foreign_observer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "timeline/event_arguments.h"

namespace syncline::timeline {
namespace {

// Whether what is below one element is more than one value.
bool HasManyParts(const FieldClass& array) {
  return !array.children.empty() && !array.children[0].children.empty();
}

// Those of one key become neighbours: viewers make a list of them.
void Gather(std::vector<Argument>* arguments) {
  std::unordered_map<TextId, size_t> first;
  for (size_t i = 0; i < arguments->size(); ++i) first.try_emplace((*arguments)[i].key, i);
  std::stable_sort(
      arguments->begin(), arguments->end(),
      [&first](const Argument& a, const Argument& b) { return first[a.key] < first[b.key]; });
}

}  // namespace

// "from.x" of a struct's member, "context/budget"; elements of an array have the array's name.
TextId ForeignObserver::PathText(const FieldClass& field) {
  const auto [entry, is_new] = field_texts_.try_emplace(&field, kNoText);
  if (is_new) {
    const char* const scope = field.scope == FieldScope::kPayload         ? ""
                              : field.scope == FieldScope::kEventContext  ? "event context/"
                              : field.scope == FieldScope::kPacketContext ? "packet/"
                                                                          : "context/";
    entry->second = context_.emitter->Text(absl::StrCat(scope, field.path));
  }
  return entry->second;
}

const ForeignObserver::ClassTexts& ForeignObserver::TextsOf(const EventClass& event_class) {
  const auto [texts, is_new] = class_texts_.try_emplace(&event_class);
  if (is_new) {
    const size_t colon = event_class.name.find(':');
    texts->second.name = context_.emitter->Text(event_class.name);
    texts->second.category = context_.emitter->Text(
        std::string_view(event_class.name).substr(0, colon == std::string::npos ? 0 : colon));
  }
  return texts->second;
}

TrackId ForeignObserver::LaneOf(uint32_t source, const std::string& name) {
  if (source >= lanes_.size()) lanes_.resize(source + 1, kNoTrack);
  TrackId& lane = lanes_[source];
  if (lane != kNoTrack) return lane;
  Track track;
  track.parent = tracks_->node_track();
  track.kind = TrackKind::kAsync;
  track.name = name;
  track.node = context_.index;
  lane = context_.emitter->AddTrack(std::move(track));
  return lane;
}

void ForeignObserver::On(const StreamMerger::Head& head, const EventReader& fields,
                         const Stream& stream) {
  // The gate does not hold providers that are not ours: they are cut by time.
  if (context_.options.window.has_value() &&
      (head.time < context_.options.window->begin || head.time >= context_.options.window->end)) {
    return;
  }
  int32_t pid = 0;
  int32_t tid = 0;
  std::string_view command;
  Instant instant;
  bool scattered = false;
  for (const FieldValue& value : fields.all()) {
    scattered = scattered || (value.type == FieldType::kArray && HasManyParts(*value.field));
    const bool in_payload = value.field->scope == FieldScope::kPayload;
    const std::string_view name = in_payload ? std::string_view() : value.field->path;
    // What the track says is not said again.
    if (name == "vpid") {
      pid = static_cast<int32_t>(value.AsUnsigned());
    } else if (name == "vtid") {
      tid = static_cast<int32_t>(value.AsUnsigned());
    } else if (name == "procname") {
      command = value.text;
    } else {
      AddArguments(PathText(*value.field), {&value, 1}, context_.emitter, &instant.arguments);
    }
  }
  if (scattered) Gather(&instant.arguments);
  if (tid != 0) {
    const uint32_t thread = tables_->ThreadForPid(stream.owner, pid, tid, command);
    instant.track = tracks_->ThreadAt(thread).spans->track();
    losses_->Seen(thread, head.source, head.record->time_ns);
  } else {
    instant.track = LaneOf(head.source, stream.name);
  }
  const ClassTexts& texts = TextsOf(*head.record->event_class);
  instant.name = texts.name;
  instant.category = texts.category;
  instant.time = head.time;
  instant.node_time = {context_.clock, head.record->time_ns};
  context_.emitter->Push(instant);
}

}  // namespace syncline::timeline
