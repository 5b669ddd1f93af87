// SPDX-License-Identifier: Apache-2.0
// Events of providers that are not ours: instants with all their fields.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {
namespace {

// What a viewer gets of a text: one of many megabytes would be held several times over.
constexpr size_t kTextBytesMax = size_t{1} << 16;

// Cuts no character of UTF-8 in two.
size_t LengthShown(std::string_view text) {
  if (text.size() <= kTextBytesMax) return text.size();
  size_t length = kTextBytesMax;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  return length;
}

std::string MoreOf(std::string_view text) {
  return absl::StrCat("… (", text.size(), " bytes in all)");
}

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

void NodeBuilder::AddArguments(TextId key, std::span<const FieldValue> values,
                               std::vector<Argument>* arguments) {
  for (const FieldValue& value : values) {
    Argument argument;
    argument.key = key;  // an array repeats its key
    const auto put_text = [&](std::string_view text) {
      argument.kind = Argument::Kind::kText;
      argument.text = context_.emitter->Text(text);
    };
    switch (value.type) {
      case FieldType::kReal:
        argument.kind = Argument::Kind::kReal;
        argument.d = value.d;
        break;
      case FieldType::kString:
        if (const size_t shown = LengthShown(value.text); shown == value.text.size()) {
          put_text(value.text);
        } else {
          put_text(absl::StrCat(AbslView(value.text.substr(0, shown)), MoreOf(value.text)));
        }
        break;
      case FieldType::kBlob:
        put_text(
            absl::StrCat(absl::BytesToHexString(AbslView(value.text.substr(0, kTextBytesMax / 2))),
                         value.text.size() > kTextBytesMax / 2 ? MoreOf(value.text) : ""));
        break;
      case FieldType::kEnum:
        if (!value.text.empty()) {
          put_text(value.text);
          break;
        }
        [[fallthrough]];
      case FieldType::kSigned:
      case FieldType::kUnsigned:
        if (value.type == FieldType::kSigned || value.field->is_signed) {
          argument.kind = Argument::Kind::kInt;
          argument.i = value.s;
        } else {
          argument.kind = Argument::Kind::kUint;
          argument.u = value.u;
        }
        break;
      case FieldType::kArray:
        if (value.elements_left_out() == 0) continue;
        argument.key =
            context_.emitter->Text(absl::StrCat(value.field->path, "/elements left out"));
        argument.kind = Argument::Kind::kUint;
        argument.u = value.elements_left_out();
        break;
      default:
        continue;
    }
    arguments->push_back(argument);
  }
}

// "from.x" of a struct's member, "context/budget"; elements of an array have the array's name.
TextId NodeBuilder::PathText(const FieldClass& field) {
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

TrackId NodeBuilder::CpuTrack(uint32_t source) {
  Source& entry = sources_[source];
  if (entry.cpu_track != kNoTrack) return entry.cpu_track;
  Track track;
  track.parent = tracks_.node_track();
  track.kind = TrackKind::kAsync;
  track.name = entry.name;
  track.node = context_.index;
  entry.cpu_track = context_.emitter->AddTrack(std::move(track));
  return entry.cpu_track;
}

void NodeBuilder::OnForeign(const StreamMerger::Head& head) {
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
  for (const FieldValue& value : event_.all()) {
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
      AddArguments(PathText(*value.field), {&value, 1}, &instant.arguments);
    }
  }
  if (scattered) Gather(&instant.arguments);
  const uint32_t owner = sources_[head.source].owner;
  if (tid != 0) {
    const uint32_t thread = tables_.ThreadForPid(owner, pid, tid, command);
    instant.track = tracks_.ThreadAt(thread).spans->track();
    losses_.Seen(thread, head.source, head.record->time_ns);
  } else {
    instant.track = CpuTrack(head.source);
  }
  const EventClass* event_class = head.record->event_class;
  const auto [texts, is_new] = foreign_texts_.try_emplace(event_class);
  if (is_new) {
    const size_t colon = event_class->name.find(':');
    texts->second.name = context_.emitter->Text(event_class->name);
    texts->second.category = context_.emitter->Text(
        std::string_view(event_class->name).substr(0, colon == std::string::npos ? 0 : colon));
  }
  instant.name = texts->second.name;
  instant.category = texts->second.category;
  instant.time = head.time;
  instant.node_time = {context_.node.placement->clock(), head.record->time_ns};
  context_.emitter->Push(instant);
}

}  // namespace syncline::timeline
