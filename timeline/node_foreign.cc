// Events of providers that are not ours: instants with all their fields.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {
namespace {

// What a viewer gets of a text: one of many megabytes would be held several times over.
constexpr size_t kTextBytesMax = size_t{1} << 16;

std::string Shortened(std::string_view text) {
  if (text.size() <= kTextBytesMax) return std::string(text);
  return absl::StrCat(AbslView(text.substr(0, kTextBytesMax)), "… (", text.size(),
                      " bytes in all)");
}

}  // namespace

void NodeBuilder::AddArguments(TextId key, std::span<const FieldValue> values,
                               std::vector<Argument>* arguments) {
  for (const FieldValue& value : values) {
    Argument argument;
    argument.key = key;  // an array repeats its key
    const auto put_text = [&](std::string_view text) {
      argument.kind = Argument::Kind::kText;
      argument.text = emitter_->Text(text);
    };
    switch (value.type) {
      case FieldType::kReal:
        argument.kind = Argument::Kind::kReal;
        argument.d = value.d;
        break;
      case FieldType::kString:
        put_text(Shortened(value.text));
        break;
      case FieldType::kBlob:
        put_text(Shortened(StdView(absl::BytesToHexString(AbslView(value.text)))));
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
        put_text(absl::StrCat(value.elements_left_out(), " elements more than these"));
        break;
      default:
        continue;
    }
    arguments->push_back(argument);
  }
}

// "from.x" of a struct's member, "context.budget"; elements of an array have the array's name.
TextId NodeBuilder::PathText(const FieldClass& field) {
  const auto [entry, is_new] = field_texts_.try_emplace(&field, kNoText);
  if (is_new) {
    const bool in_payload = field.scope == FieldScope::kPayload;
    entry->second = emitter_->Text(absl::StrCat(in_payload ? "" : "context.", field.path));
  }
  return entry->second;
}

void NodeBuilder::OnForeign(const StreamMerger::Head& head) {
  // The gate does not hold providers that are not ours: they are cut by time.
  if (options_.window.has_value() &&
      (head.time < options_.window->begin || head.time >= options_.window->end)) {
    return;
  }
  int32_t pid = 0;
  int32_t tid = 0;
  std::string_view command;
  Instant instant;
  for (const FieldValue& value : event_.all()) {
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
  const uint32_t owner = sources_[head.source].owner;
  if (tid != 0) {
    const uint32_t thread = tables_.ThreadForPid(owner, pid, tid, command);
    instant.track = ThreadAt(thread).spans->track();
    TrackLosses(thread, head.source, head.record->time_ns);
  } else {
    instant.track = CpuTrack(head.source);
  }
  const EventClass* event_class = head.record->event_class;
  const auto [texts, is_new] = foreign_texts_.try_emplace(event_class);
  if (is_new) {
    const size_t colon = event_class->name.find(':');
    texts->second.name = emitter_->Text(event_class->name);
    texts->second.category = emitter_->Text(
        std::string_view(event_class->name).substr(0, colon == std::string::npos ? 0 : colon));
  }
  instant.name = texts->second.name;
  instant.category = texts->second.category;
  instant.time = head.time;
  instant.node_time = {node_.placement->clock(), head.record->time_ns};
  emitter_->Push(instant);
}

}  // namespace syncline::timeline
