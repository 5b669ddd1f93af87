#include "export/text/event_text.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "export/text/json_text.h"

namespace syncline::text {
namespace {

constexpr int kDepthMax = 64;
constexpr uint64_t kSecondNs = 1'000'000'000;

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

// How many values the first one is, with all that lies inside it.
size_t Extent(std::span<const FieldValue> values) {
  size_t extent = 1;
  for (size_t open = values[0].count; open > 0 && extent < values.size(); ++extent) {
    open += values[extent].count;
    --open;
  }
  return extent;
}

std::string JsonString(std::string_view text) {
  std::string json;
  AppendJsonString(text, &json);
  return json;
}

}  // namespace

EventText::Line EventText::MakeLine(const EventView& event) const {
  const bool json = style_ == Style::kJson;
  const StreamInfo& stream = *event.stream;
  const std::string& name = event.record->event_class->name;
  Line line;
  line.made = true;
  if (json) {
    line.head = Piece(absl::StrCat(",\"node\":", JsonString(event.node), ",\"clock_ns\":"));
    line.middle =
        Piece(absl::StrCat(",\"stream\":", JsonString(stream.name),
                           stream.cpu.has_value() ? absl::StrCat(",\"cpu\":", *stream.cpu) : "",
                           ",\"event\":", JsonString(name)));
  } else {
    line.head = Piece(absl::StrCat("] ", AbslView(event.node), " ", stream.name, " ", name, ":"));
  }
  std::string before;
  const bool has_payload =
      !event.values.empty() && event.values.back().field->scope == FieldScope::kPayload;
  if (json && !has_payload) before = ",\"fields\":{}";
  for (size_t i = 0; i < event.values.size(); i += Extent(event.values.subspan(i))) {
    const FieldClass& field = *event.values[i].field;
    const bool same_scope = !line.steps.empty() && line.steps.back().field->scope == field.scope;
    if (same_scope) {
      before += json ? "," : ", ";
    } else {
      before += line.steps.empty() ? "" : json ? "}" : " },";
      before += json ? absl::StrCat(",\"", ScopeKey(field.scope), "\":{") : " { ";
    }
    before += json ? JsonString(field.name) + ":" : field.name + " = ";
    line.steps.push_back({&field, Piece(std::move(before))});
    before.clear();
  }
  if (!line.steps.empty()) before += json ? "}" : " }";
  line.end = Piece(before + (json ? "}\n" : "\n"));
  return line;
}

void EventText::AppendSeconds(int64_t ns) {
  const uint64_t magnitude = ns < 0 ? ~static_cast<uint64_t>(ns) + 1 : static_cast<uint64_t>(ns);
  out_.Put(ns < 0 ? '-' : '+');
  out_.PutNumber(magnitude / kSecondNs);
  out_.Put('.');
  out_.PutNine(static_cast<uint32_t>(magnitude % kSecondNs));
}

bool EventText::AppendAs(const Line& line, const EventView& event) {
  if (style_ == Style::kJson) {
    out_.Put(std::string_view("{\"time_ns\":"));
    out_.PutNumber(event.time.ns);
    out_.Put(line.head);
    out_.PutNumber(event.record->time_ns);
    out_.Put(line.middle);
  } else {
    out_.Put('[');
    AppendSeconds(event.time.ns);
    out_.Put(line.head);
  }
  if (!AppendSteps(line.steps, event.values)) return false;
  out_.Put(line.end);
  return true;
}

void EventText::Append(const EventView& event) {
  Line& line = lines_[{event.stream, event.record->event_class}];
  const size_t begin = out_.size();
  if (line.made && AppendAs(line, event)) return;
  out_.CutTo(begin);
  line = MakeLine(event);
  AppendAs(line, event);
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
      steps.push_back({&field, Piece((i == 0 ? "{" : ",") + JsonString(field.name) + ":")});
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

void EventText::AppendEnum(const FieldValue& value) {
  if (style_ == Style::kJson && !value.text.empty()) return AppendString(value.text);
  if (!value.text.empty()) {
    out_.Put(value.text);
    out_.Put(std::string_view(" : "));
  }
  value.field->is_signed ? out_.PutNumber(value.s) : out_.PutNumber(value.u);
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
      out_.Put(values[used].field->name);
      out_.Put(std::string_view(" = "));
    }
    used += AppendValue(values.subspan(used), depth - 1);
  }
  return used;
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
