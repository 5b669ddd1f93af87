// SPDX-License-Identifier: Apache-2.0
#include "export/text/event_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/field_place.h"
#include "common/text.h"
#include "common/utf8.h"
#include "export/text/json_text.h"
#include "timeline/id_fields.h"

namespace syncline::text {
namespace {

constexpr int kDepthMax = 64;
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr size_t kTimesRoom = 4 * kNumberMax;

const char* ScopeKey(FieldScope scope) {
  switch (scope) {
    case FieldScope::kPacketContext:
      return "packet_context";
    case FieldScope::kEventHeader:
      return "header";
    case FieldScope::kStreamContext:
      return "stream_context";
    case FieldScope::kEventContext:
      return "event_context";
    case FieldScope::kPayload:
      return "fields";
  }
  return "fields";
}

std::string JsonString(std::string_view text) {
  std::string json;
  AppendJsonString(text, &json);
  return json;
}

// Names are as they are, but for those that would end the line or move the cursor: of these every
// special character is written as in JSON.
bool FitsOneLine(std::string_view name) {
  for (; !name.empty(); name.remove_prefix(1)) {
    if (IsControl(name)) return false;
  }
  return true;
}
std::string OnOneLine(std::string_view name) {
  if (FitsOneLine(name)) return std::string(name);
  const std::string json = JsonString(name);
  return json.substr(1, json.size() - 2);
}

}  // namespace

size_t Extent(std::span<const FieldValue> values) {
  size_t extent = 1;
  for (size_t open = values[0].count; open > 0 && extent < values.size(); ++extent) {
    open += values[extent].count;
    --open;
  }
  return extent;
}

EventText::Step::Way EventText::WayOf(const FieldClass& field) const {
  const bool decimal = style_ == Style::kJson || field.display_base == 10;
  switch (field.type) {
    case FieldType::kUnsigned:
      return decimal ? Step::Way::kNumber : Step::Way::kOther;
    case FieldType::kSigned:
      return Step::Way::kSigned;
    case FieldType::kReal:
      return Step::Way::kReal;
    case FieldType::kString:
      return Step::Way::kText;
    default:
      return Step::Way::kOther;
  }
}

EventText::Step EventText::MakeStep(timeline::EventKind kind, const FieldClass& field,
                                    std::string before, Shape* shape) const {
  using timeline::IdKind;
  const bool json = style_ == Style::kJson;
  const auto label = [&](const std::string& name) {
    return json ? JsonString(name) + ":" : OnOneLine(name) + " = ";
  };
  const IdKind id = resolves_ ? timeline::IdKindOf(kind, field) : IdKind::kNone;
  if (id == IdKind::kNone) {
    return {&field, WayOf(field), 0, Piece(std::move(before) + label(field.name))};
  }
  const Step::Way way = id == IdKind::kThread    ? Step::Way::kThread
                        : id == IdKind::kProcess ? Step::Way::kProcess
                                                 : Step::Way::kName;
  const char* const suffix = id == IdKind::kName ? "_id" : "_key";
  shape->labels.push_back({Piece(label(field.name)), Piece(label(field.name + suffix))});
  return {&field, way, static_cast<uint32_t>(shape->labels.size() - 1), Piece(std::move(before))};
}

EventText::Shape EventText::MakeShape(const EventView& event) const {
  const bool json = style_ == Style::kJson;
  const timeline::EventKind kind = timeline::KindOf(event.record->event_class->name);
  Shape shape;
  shape.may_have_ids = resolves_ && timeline::HasIds(*event.record->event_class);
  std::string before;
  const bool has_payload =
      !event.values.empty() && event.values.back().field->scope == FieldScope::kPayload;
  if (json && !has_payload) before = ",\"fields\":{}";
  for (size_t i = 0; i < event.values.size(); i += Extent(event.values.subspan(i))) {
    const FieldClass& field = *event.values[i].field;
    const bool same_scope = !shape.steps.empty() && shape.steps.back().field->scope == field.scope;
    if (same_scope) {
      before += json ? "," : ", ";
    } else {
      before += shape.steps.empty() ? "" : json ? "}" : " },";
      before += json ? absl::StrCat(",\"", ScopeKey(field.scope), "\":{") : " { ";
    }
    if (field.scope != FieldScope::kPayload) shape.context_steps = shape.steps.size() + 1;
    shape.steps.push_back(MakeStep(kind, field, std::exchange(before, {}), &shape));
  }
  if (!shape.steps.empty()) before += json ? "}" : " }";
  if (json && resolves_) absl::StrAppend(&before, ",\"format_version\":", kFormatVersion);
  shape.end = Piece(before + (json ? "}\n" : "\n"));

  const std::span<const Step> payload = std::span(shape.steps).subspan(shape.context_steps);
  shape.keeps_context = !payload.empty() && payload[0].field->place;
  if (!shape.keeps_context) return shape;
  shape.context_bytes = payload[0].field->place.offset;
  const auto& fields = event.record->event_class->fields;
  const auto wanted = std::count_if(fields.begin(), fields.end(), [](const FieldClass& field) {
    return field.scope == FieldScope::kPayload;
  });
  shape.is_placed = payload.size() == static_cast<size_t>(wanted);
  shape.room = shape.end.room();
  for (const Step& step : payload) {
    shape.is_placed &= step.field->place && step.way != Step::Way::kOther;
    shape.room += step.before.room() + kNumberMax;
  }
  return shape;
}

EventText::Line EventText::MakeLine(const EventView& event) const {
  const StreamInfo& stream = *event.stream;
  const std::string& name = event.record->event_class->name;
  Line line;
  line.stream = event.stream;
  line.event_class = event.record->event_class;
  if (style_ == Style::kJson) {
    const bool by_wall_clock = stream.clock.kind == ClockKind::kRealtime;  // a profile's
    line.node = Piece(absl::StrCat(",\"node\":", JsonString(event.node), ",\"clock\":",
                                   by_wall_clock ? "\"realtime\"" : "\"trace\"", ",\"clock_ns\":"));
    line.opening =
        Piece(absl::StrCat(",\"stream\":", JsonString(stream.name),
                           stream.cpu.has_value() ? absl::StrCat(",\"cpu\":", *stream.cpu) : "",
                           ",\"event\":", JsonString(name)));
  } else {
    line.opening = Piece(absl::StrCat("] ", OnOneLine(event.node), " ", OnOneLine(stream.name), " ",
                                      OnOneLine(name), ":"));
  }
  return line;
}

EventText::Line& EventText::FindLine(const EventView& event) {
  if (lines_.size() >= lines_max_) {
    lines_.clear();
    line_ids_.resize(1);
    std::fill(recent_.begin(), recent_.end(), nullptr);
  }
  std::unique_ptr<Line>& line = lines_[{event.stream, event.record->event_class}];
  if (line == nullptr) {
    line = std::make_unique<Line>(MakeLine(event));
    std::unique_ptr<Shape>& shape = shapes_[event.record->event_class];
    if (shape == nullptr) shape = std::make_unique<Shape>(MakeShape(event));
    line->shape = shape.get();
    if (shape->may_have_ids) {
      line->ids = static_cast<uint32_t>(line_ids_.size());
      line_ids_.push_back({event.ids, ~uint64_t{0}, nullptr});
    }
  }
  recent_[RecentSlot(event)] = line.get();
  return *line;
}

char* EventText::WriteSeconds(int64_t ns, char* out) {
  const uint64_t magnitude = Magnitude(ns);
  const uint64_t second = magnitude / kSecondNs;
  *out++ = ns < 0 ? '-' : '+';
  if (second != second_) {
    char* const end = WriteNumber(second, second_text_.data());
    *end = '.';
    second_ = second;
    second_size_ = static_cast<size_t>(end + 1 - second_text_.data());
  }
  std::memcpy(out, second_text_.data(), second_text_.size());
  return WriteNine(static_cast<uint32_t>(magnitude % kSecondNs), out + second_size_);
}

// Takes less than kTimesRoom, and line.node.
char* EventText::WriteTimes(const EventView& event, const Line& line, char* out) {
  if (style_ == Style::kText) {
    *out++ = '[';
    return WriteSeconds(event.time.ns, out);
  }
  constexpr std::string_view kBegin = "{\"time_ns\":";
  std::memcpy(out, kBegin.data(), kBegin.size());
  out = line.node.WriteTo(WriteNumber(event.time.ns, out + kBegin.size()));
  return WriteNumber(event.record->time_ns, out);
}

// Whether line.context is the event's too.
bool EventText::HasContext(const Line& line, const EventView& event) {
  const std::string& bytes = line.context_bytes;
  if (line.packet != event.packet || line.packet == 0) return false;
  if (bytes.size() != sizeof(uint64_t)) {
    return bytes.empty() || std::memcmp(bytes.data(), event.record->bytes, bytes.size()) == 0;
  }
  uint64_t kept, given;
  std::memcpy(&kept, bytes.data(), sizeof kept);
  std::memcpy(&given, event.record->bytes, sizeof given);
  return kept == given;
}

void EventText::KeepContext(const EventView& event, size_t begin, size_t values, Line* line) const {
  if (!line->shape->keeps_context || event.packet == 0) return;
  line->packet = event.packet;
  line->context_bytes.assign(reinterpret_cast<const char*>(event.record->bytes),
                             line->shape->context_bytes);
  line->context = Piece(std::string(out_.text().substr(begin)));
  line->context_values = static_cast<uint32_t>(values);
}

bool EventText::AppendUndecoded(const EventView& event) {
  const Line* const line = recent_[RecentSlot(event)];
  if (line == nullptr || line->stream != event.stream ||
      line->event_class != event.record->event_class) {
    return false;
  }
  const Shape& shape = *line->shape;
  if (!shape.is_placed || !HasContext(*line, event)) return false;
  char* out = out_.Room(kTimesRoom + line->node.room() + line->context.room() + shape.room);
  out = line->context.WriteTo(WriteTimes(event, *line, out));
  const uint8_t* const bytes = event.record->bytes;
  const NameTexts* names = nullptr;
  for (size_t i = shape.context_steps; i < shape.steps.size(); ++i) {
    const Step& step = shape.steps[i];
    if (i > shape.context_steps) out = step.before.WriteTo(out);
    if (step.way == Step::Way::kNumber) {
      out = WriteNumber(LoadNumber(step.field->place, bytes), out);
    } else if (step.way == Step::Way::kSigned) {
      out = WriteNumber(static_cast<int64_t>(LoadNumber(step.field->place, bytes)), out);
    } else {
      out_.End(out);
      if (step.is_id()) {
        AppendId(step, LoadNumber(step.field->place, bytes), *line, &names);
      } else if (step.way == Step::Way::kReal) {
        AppendReal(std::bit_cast<double>(LoadNumber(step.field->place, bytes)));
      } else {
        AppendString(LoadText(step.field->place, bytes));
      }
      out = out_.Room(shape.room);
    }
  }
  out_.End(shape.end.WriteTo(out));
  return true;
}

bool EventText::AppendAs(Line* line, const EventView& event) {
  const Shape& shape = *line->shape;
  out_.End(WriteTimes(event, *line, out_.Room(kTimesRoom + line->node.room())));
  const size_t begin = out_.size();
  const bool has_context = shape.keeps_context && HasContext(*line, event);
  out_.Put(has_context ? line->context : line->opening);
  const std::span<const FieldValue> values = event.values;
  const NameTexts* names = nullptr;
  size_t i = has_context ? line->context_values : 0;
  for (size_t s = has_context ? shape.context_steps : 0; s < shape.steps.size(); ++s) {
    const Step& step = shape.steps[s];
    if (i >= values.size() || values[i].field != step.field) return false;
    if (!has_context || s > shape.context_steps) out_.Put(step.before);
    if (!has_context && s == shape.context_steps) KeepContext(event, begin, i, line);
    if (step.is_id()) {
      AppendId(step, values[i++].u, *line, &names);
    } else {
      i += AppendValue(values.subspan(i), kDepthMax);
    }
  }
  out_.Put(shape.end);
  return i >= values.size();
}

void EventText::AppendId(const Step& step, uint64_t id, const Line& line, const NameTexts** names) {
  const Labels& labels = line.shape->labels[step.labels];
  LineIds& ids = line_ids_[line.ids];
  if (step.way == Step::Way::kThread) {
    if (ids.thread_key != id) {
      ids.thread_key = id;
      ids.thread = ids.texts == nullptr ? nullptr : ids.texts->Thread(id);
    }
    if (ids.thread != nullptr) {
      *names = ids.thread->names;
      return out_.Put(ids.thread->text);
    }
  } else if (step.way == Step::Way::kProcess) {
    const Piece* const text = ids.texts == nullptr ? nullptr : ids.texts->Process(id);
    if (text != nullptr) return out_.Put(*text);
  } else if (id == 0) {
    out_.Put(labels.known);
    return out_.Put(std::string_view(style_ == Style::kJson ? "null" : "none"));
  } else if (const Piece* const text = *names == nullptr ? nullptr : (*names)->Find(id);
             text != nullptr) {
    out_.Put(labels.known);
    return out_.Put(*text);
  }
  out_.Put(labels.unknown);
  out_.PutNumber(id);
}

void EventText::Append(const EventView& event) {
  Line& line = FindLine(event);
  const size_t begin = out_.size();
  if (AppendAs(&line, event)) return;
  out_.CutTo(begin);
  *shapes_[event.record->event_class] = MakeShape(event);
  line.packet = 0;
  AppendAs(&line, event);
}

bool EventText::AppendSteps(const std::vector<Step>& steps, std::span<const FieldValue> values) {
  size_t i = 0;
  for (const Step& step : steps) {
    if (i >= values.size() || values[i].field != step.field) return false;
    out_.Put(step.before);
    i += AppendValue(values.subspan(i), kDepthMax);
  }
  return i >= values.size();
}

void EventText::AppendObject(std::span<const FieldValue> values) {
  if (values.empty()) return out_.Put(std::string_view("{}"));
  std::vector<Step>& steps = objects_[values[0].field];
  const size_t begin = out_.size();
  if (!AppendSteps(steps, values)) {
    out_.CutTo(begin);
    steps.clear();
    for (size_t i = 0; i < values.size(); i += Extent(values.subspan(i))) {
      const FieldClass& field = *values[i].field;
      steps.push_back(
          {&field, WayOf(field), 0, Piece((i == 0 ? "{" : ",") + JsonString(field.name) + ":")});
    }
    AppendSteps(steps, values);
  }
  out_.Put('}');
}

void EventText::AppendReal(double value) {
  if (!std::isfinite(value)) {
    scratch_.clear();
    AppendJsonReal(value, &scratch_);  // in quotes
    const std::string_view quoted = scratch_;
    out_.Put(style_ == Style::kJson ? quoted : quoted.substr(1, quoted.size() - 2));
    return;
  }
  out_.PutReal(value);
}

void EventText::AppendUnsigned(const FieldValue& value) {
  const int base = style_ == Style::kJson ? 10 : value.field->display_base;
  if (base == 10 || (base != 16 && base != 8 && base != 2)) return out_.PutNumber(value.u);
  out_.Put(std::string_view(base == 16 ? "0x" : base == 8 ? "0" : "0b"));
  char* const out = out_.Room(64);
  out_.Add(static_cast<size_t>(std::to_chars(out, out + 64, value.u, base).ptr - out));
}

void EventText::AppendString(std::string_view text) {
  char* const out = out_.Room(text.size() + 2);
  *out = '"';
  size_t i = 0;
  for (; i < text.size() && IsPlain(text[i]); ++i) out[i + 1] = text[i];
  if (i == text.size()) {
    out[i + 1] = '"';
    return out_.Add(text.size() + 2);
  }
  scratch_.clear();
  AppendJsonString(text, &scratch_);
  out_.Put(std::string_view(scratch_));
}

void EventText::AppendBlob(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out_.Put('"');
  for (const char byte : bytes) {
    out_.Put(kDigits[static_cast<unsigned char>(byte) >> 4]);
    out_.Put(kDigits[static_cast<unsigned char>(byte) & 15]);
  }
  out_.Put('"');
}

void EventText::PutName(std::string_view name) {
  FitsOneLine(name) ? out_.Put(name) : out_.Put(std::string_view(OnOneLine(name)));
}

void EventText::AppendEnum(const FieldValue& value) {
  const bool json = style_ == Style::kJson;
  if (json) {
    out_.Put(std::string_view("{\"label\":"));
    value.text.empty() ? out_.Put(std::string_view("null")) : AppendString(value.text);
    out_.Put(std::string_view(",\"value\":"));
  } else if (!value.text.empty()) {
    PutName(value.text);
    out_.Put(std::string_view(" : "));
  }
  value.field->is_signed ? out_.PutNumber(value.s) : out_.PutNumber(value.u);
  if (json) out_.Put('}');
}

size_t EventText::AppendChildren(std::span<const FieldValue> values, bool named, int depth) {
  const bool json = style_ == Style::kJson;
  size_t used = 1;
  for (uint32_t i = 0; i < values[0].count && used < values.size() && depth > 0; ++i) {
    if (i > 0) out_.Put(std::string_view(json ? "," : ", "));
    if (named && json) {
      AppendString(values[used].field->name);
      out_.Put(':');
    } else if (named) {
      PutName(values[used].field->name);
      out_.Put(std::string_view(" = "));
    }
    used += AppendValue(values.subspan(used), depth - 1);
  }
  return used;
}

// Of an array, how many elements are not shown.
void EventText::AppendLeftOut(const FieldValue& array) {
  if (array.elements_left_out() == 0) return;
  const bool json = style_ == Style::kJson;
  if (array.count > 0) out_.Put(std::string_view(json ? "," : ", "));
  if (json) out_.Put('"');
  out_.PutNumber(array.elements_left_out());
  out_.Put(std::string_view(json ? " more\"" : " more"));
}

size_t EventText::AppendValue(std::span<const FieldValue> values, int depth) {
  const FieldValue& value = values[0];
  const bool json = style_ == Style::kJson;
  size_t used = 1;
  switch (value.type) {
    case FieldType::kUnsigned:
      AppendUnsigned(value);
      break;
    case FieldType::kSigned:
      out_.PutNumber(value.s);
      break;
    case FieldType::kReal:
      AppendReal(value.d);
      break;
    case FieldType::kString:
      AppendString(value.text);
      break;
    case FieldType::kBlob:
      AppendBlob(value.text);
      break;
    case FieldType::kEnum:
      AppendEnum(value);
      break;
    case FieldType::kArray:
      out_.Put(std::string_view(json ? "[" : "[ "));
      used = AppendChildren(values, /*named=*/false, depth);
      AppendLeftOut(value);
      out_.Put(std::string_view(json ? "]" : " ]"));
      break;
    case FieldType::kStruct:
    case FieldType::kVariant:
      out_.Put(std::string_view(json ? "{" : "{ "));
      used = AppendChildren(values, /*named=*/true, depth);
      out_.Put(std::string_view(json ? "}" : " }"));
      break;
  }
  return used;
}

}  // namespace syncline::text
