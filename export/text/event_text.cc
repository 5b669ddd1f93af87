#include "export/text/event_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/text.h"

namespace syncline::text {
namespace {

enum class Style { kText, kJson };

void AppendReal(double value, Style style, std::string* out) {
  if (!std::isfinite(value)) {  // JSON has no word for it
    const char* name = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    absl::StrAppend(out, style == Style::kJson ? "\"" : "", name,
                    style == Style::kJson ? "\"" : "");
    return;
  }
  std::array<char, 32> digits;  // the shortest text that reads back as the same number
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out->append(digits.data(), end.ptr);
}

void AppendUnsigned(const FieldValue& value, Style style, std::string* out) {
  const int base = style == Style::kJson ? 10 : value.field->display_base;
  switch (base) {
    case 16:
      absl::StrAppendFormat(out, "0x%x", value.u);
      break;
    case 8:
      absl::StrAppendFormat(out, "0%o", value.u);
      break;
    case 2:
      out->append("0b");
      for (int bit = 63 - std::countl_zero(value.u | 1); bit >= 0; --bit) {
        out->push_back((value.u >> bit & 1) != 0 ? '1' : '0');
      }
      break;
    default:
      absl::StrAppend(out, value.u);
      break;
  }
}

void AppendBlob(std::string_view bytes, std::string* out) {
  out->push_back('"');
  for (const char byte : bytes)
    absl::StrAppendFormat(out, "%02x", static_cast<unsigned char>(byte));
  out->push_back('"');
}

// Appends values[0] with its descendants; returns how many values that took. `depth` bounds
// recursion: readers bound nesting too, but not for our sake.
size_t AppendValue(std::span<const FieldValue> values, Style style, int depth, std::string* out) {
  const FieldValue& value = values[0];
  size_t used = 1;
  const auto children = [&](bool named) {
    for (uint32_t i = 0; i < value.count && used < values.size() && depth > 0; ++i) {
      if (i > 0) out->append(style == Style::kJson ? "," : ", ");
      if (named && style == Style::kJson) {
        AppendJsonString(values[used].field->name, out);
        out->push_back(':');
      } else if (named) {
        absl::StrAppend(out, values[used].field->name, " = ");
      }
      used += AppendValue(values.subspan(used), style, depth - 1, out);
    }
  };
  switch (value.type) {
    case FieldType::kUnsigned:
      AppendUnsigned(value, style, out);
      break;
    case FieldType::kSigned:
      absl::StrAppend(out, value.s);
      break;
    case FieldType::kReal:
      AppendReal(value.d, style, out);
      break;
    case FieldType::kString:
      AppendJsonString(value.text, out);
      break;
    case FieldType::kBlob:
      AppendBlob(value.text, out);
      break;
    case FieldType::kEnum:
      if (style == Style::kJson && !value.text.empty()) {
        AppendJsonString(value.text, out);
      } else if (value.text.empty()) {
        value.field->is_signed ? absl::StrAppend(out, value.s) : absl::StrAppend(out, value.u);
      } else {
        absl::StrAppend(out, AbslView(value.text), " : ");
        value.field->is_signed ? absl::StrAppend(out, value.s) : absl::StrAppend(out, value.u);
      }
      break;
    case FieldType::kArray:
      out->append(style == Style::kJson ? "[" : "[ ");
      children(/*named=*/false);
      out->append(style == Style::kJson ? "]" : " ]");
      break;
    case FieldType::kStruct:
    case FieldType::kVariant:
      out->append(style == Style::kJson ? "{" : "{ ");
      children(/*named=*/true);
      out->append(style == Style::kJson ? "}" : " }");
      break;
  }
  return used;
}

constexpr int kDepthMax = 64;

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

// Each run of values of one scope, in braces.
void AppendScopes(const EventView& event, Style style, std::string* out) {
  size_t i = 0;
  const bool has_payload =
      !event.values.empty() && event.values.back().field->scope == FieldScope::kPayload;
  if (style == Style::kJson && !has_payload) out->append(",\"fields\":{}");
  while (i < event.values.size()) {
    const FieldScope scope = event.values[i].field->scope;
    if (style == Style::kJson) {
      absl::StrAppend(out, ",\"", ScopeKey(scope), "\":{");
    } else {
      absl::StrAppend(out, i == 0 ? " {" : ", {");
    }
    for (bool first = true; i < event.values.size() && event.values[i].field->scope == scope;
         first = false) {
      const FieldValue& value = event.values[i];
      if (style == Style::kJson) {
        if (!first) out->push_back(',');
        AppendJsonString(value.field->name, out);
        out->push_back(':');
      } else {
        absl::StrAppend(out, first ? " " : ", ", value.field->name, " = ");
      }
      i += AppendValue(event.values.subspan(i), style, kDepthMax, out);
    }
    out->append(style == Style::kJson ? "}" : " }");
  }
}

// The length of the UTF-8 sequence at the start of `text`; 0 when it is none.
size_t Utf8Length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  if (length == 3) {  // overlong forms and surrogates
    const auto second = static_cast<unsigned char>(text[1]);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0)) return 0;
  }
  if (length == 4) {
    const auto second = static_cast<unsigned char>(text[1]);
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) return 0;
  }
  return length;
}

}  // namespace

void AppendJsonReal(double value, std::string* out) { AppendReal(value, Style::kJson, out); }

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const char c = text.front();
    const size_t length = Utf8Length(text);
    if (length == 0) {
      out->append("\xef\xbf\xbd");
      text.remove_prefix(1);
      continue;
    }
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '\t') {
      out->append("\\t");
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out->append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  out->push_back('"');
}

std::string Seconds(int64_t ns) {
  const bool negative = ns < 0;
  const uint64_t magnitude = negative ? ~static_cast<uint64_t>(ns) + 1 : static_cast<uint64_t>(ns);
  return absl::StrFormat("%c%d.%09d", negative ? '-' : '+', magnitude / 1'000'000'000,
                         magnitude % 1'000'000'000);
}

void AppendText(const EventView& event, std::string* out) {
  absl::StrAppend(out, "[", Seconds(event.time.ns), "] ", AbslView(event.node), " ",
                  event.stream->name, " ", event.record->event_class->name, ":");
  AppendScopes(event, Style::kText, out);
  out->push_back('\n');
}

void AppendJson(const EventView& event, std::string* out) {
  absl::StrAppend(out, "{\"time_ns\":", event.time.ns, ",\"node\":");
  AppendJsonString(event.node, out);
  absl::StrAppend(out, ",\"clock_ns\":", event.record->time_ns, ",\"stream\":");
  AppendJsonString(event.stream->name, out);
  if (event.stream->cpu.has_value()) absl::StrAppend(out, ",\"cpu\":", *event.stream->cpu);
  absl::StrAppend(out, ",\"event\":");
  AppendJsonString(event.record->event_class->name, out);
  AppendScopes(event, Style::kJson, out);
  out->append("}\n");
}

}  // namespace syncline::text
