// SPDX-License-Identifier: Apache-2.0
#include "ctf/tsdl_writer.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::ctf {
namespace {

// What readers look at as numbers; everything else in an environment is text.
const std::set<std::string_view>& NumericFacts() {
  static const auto* const kNames = new std::set<std::string_view>{
      "tracer_major",        "tracer_minor",           "tracer_patchlevel",
      "tracer_buffering_id", "architecture_bit_width", "vpid"};
  return *kNames;
}

bool IsNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string_view OrderName(ByteOrder order) {
  return order == ByteOrder::kBig ? "be" : order == ByteOrder::kLittle ? "le" : "native";
}

bool NamesStream(const TypePtr& packet_header) {
  return packet_header != nullptr &&
         std::any_of(packet_header->members.begin(), packet_header->members.end(),
                     [](const Member& member) { return member.name == "stream_id"; });
}

class Writer {
 public:
  absl::StatusOr<std::string> Run(const Metadata& metadata) {
    if (!metadata.roles_by_name) {
      return absl::UnimplementedError("these are CTF 2's words (ctf18_words.h)");
    }
    says_ids_ = metadata.streams.size() > 1 || NamesStream(metadata.packet_header);
    text_ = "/* CTF 1.8 */\n\n";
    SYNCLINE_RETURN_IF_ERROR(Trace(metadata));
    Environment(metadata);
    for (const ClockClass& clock : metadata.clocks) Clock(clock);
    for (const StreamType& stream : metadata.streams) SYNCLINE_RETURN_IF_ERROR(Stream(stream));
    return std::move(text_);
  }

 private:
  void Line(std::string_view line) {
    text_.append(2 * depth_, ' ');
    text_ += line;
    text_ += '\n';
  }
  void Open(std::string_view line) {
    Line(line);
    ++depth_;
  }
  void Close(std::string_view line) {
    --depth_;
    Line(line);
  }

  absl::Status Trace(const Metadata& metadata) {
    Open("trace {");
    Line(absl::StrCat("major = ", metadata.major, ";"));
    Line(absl::StrCat("minor = ", metadata.minor, ";"));
    if (metadata.uuid) Line(absl::StrCat("uuid = \"", UuidText(*metadata.uuid), "\";"));
    Line(absl::StrCat("byte_order = ", AbslView(OrderName(metadata.byte_order)), ";"));
    SYNCLINE_RETURN_IF_ERROR(Scope("packet.header", metadata.packet_header));
    Close("};");
    return absl::OkStatus();
  }

  void Environment(const Metadata& metadata) {
    if (metadata.environment.empty()) return;
    Open("env {");
    for (const auto& [key, value] : metadata.environment) {
      const bool plain = NumericFacts().count(key) != 0 && IsNumber(value);
      Line(absl::StrCat(key, " = ", plain ? value : Quoted(value), ";"));
    }
    Close("};");
  }

  void Clock(const ClockClass& clock) {
    Open("clock {");
    Line(absl::StrCat("name = ", Quoted(clock.name), ";"));
    if (!clock.uuid.empty()) Line(absl::StrCat("uuid = ", Quoted(clock.uuid), ";"));
    if (!clock.description.empty()) {
      Line(absl::StrCat("description = ", Quoted(clock.description), ";"));
    }
    Line(absl::StrCat("freq = ", clock.frequency, ";"));
    if (clock.offset_seconds != 0) Line(absl::StrCat("offset_s = ", clock.offset_seconds, ";"));
    Line(absl::StrCat("offset = ", clock.offset_cycles, ";"));
    if (clock.absolute) Line("absolute = TRUE;");
    Close("};");
  }

  absl::Status Stream(const StreamType& stream) {
    Open("stream {");
    if (says_ids_) Line(absl::StrCat("id = ", stream.id, ";"));
    SYNCLINE_RETURN_IF_ERROR(Scope("packet.context", stream.packet_context));
    SYNCLINE_RETURN_IF_ERROR(Scope("event.header", stream.event_header));
    SYNCLINE_RETURN_IF_ERROR(Scope("event.context", stream.event_context));
    Close("};");
    for (const EventType& event : stream.events) SYNCLINE_RETURN_IF_ERROR(Event(event));
    return absl::OkStatus();
  }

  absl::Status Event(const EventType& event) {
    Open("event {");
    Line(absl::StrCat("name = ", Quoted(event.name), ";"));
    if (event.id) Line(absl::StrCat("id = ", *event.id, ";"));
    if (says_ids_) Line(absl::StrCat("stream_id = ", event.stream_id, ";"));
    for (const auto& [key, value] : event.attributes) {
      const bool plain = key == "loglevel" && IsNumber(value);
      Line(absl::StrCat(key, " = ", plain ? value : Quoted(value), ";"));
    }
    SYNCLINE_RETURN_IF_ERROR(Scope("context", event.context));
    SYNCLINE_RETURN_IF_ERROR(Scope("fields", event.payload));
    Close("};");
    return absl::OkStatus();
  }

  absl::Status Scope(std::string_view key, const TypePtr& type) {
    if (type == nullptr) return absl::OkStatus();
    SYNCLINE_ASSIGN_OR_RETURN(const std::string specifier, Specifier(*type));
    Line(absl::StrCat(AbslView(key), " := ", specifier, ";"));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Specifier(const Type& type) {
    switch (type.kind) {
      case TypeKind::kInteger:
        return Integer(type);
      case TypeKind::kEnum:
        return Enum(type);
      case TypeKind::kFloat:
        return absl::StrCat("floating_point { exp_dig = ", type.size_bits - type.mantissa_bits,
                            "; mant_dig = ", type.mantissa_bits, "; align = ", type.alignment,
                            "; byte_order = ", AbslView(OrderName(type.byte_order)), "; }");
      case TypeKind::kString:
        return std::string("string { encoding = UTF8; }");
      case TypeKind::kStruct: {
        SYNCLINE_ASSIGN_OR_RETURN(const std::string members, Members(type));
        return absl::StrCat("struct ", members, " align(", type.alignment, ")");
      }
      case TypeKind::kVariant: {
        SYNCLINE_ASSIGN_OR_RETURN(const std::string members, Members(type));
        return absl::StrCat("variant <", type.reference, "> ", members);
      }
      default:
        return absl::UnimplementedError("a type that CTF 1.8 has no words for");
    }
  }

  static absl::StatusOr<std::string> Integer(const Type& type) {
    if (type.reversed_bits) return absl::UnimplementedError("CTF 1.8 cannot say reversed bits");
    std::string text =
        absl::StrCat("integer { size = ", type.size_bits, "; align = ", type.alignment,
                     "; signed = ", type.is_signed ? 1 : 0, "; base = ", type.base, "; ");
    if (type.byte_order != ByteOrder::kNative) {
      absl::StrAppend(&text, "byte_order = ", AbslView(OrderName(type.byte_order)), "; ");
    }
    if (type.is_text) text += "encoding = UTF8; ";
    if (!type.clock.empty()) absl::StrAppend(&text, "map = clock.", type.clock, ".value; ");
    return text + "}";
  }

  static absl::StatusOr<std::string> Enum(const Type& type) {
    Type container = type;
    container.kind = TypeKind::kInteger;
    SYNCLINE_ASSIGN_OR_RETURN(const std::string integer, Integer(container));
    std::string text = absl::StrCat("enum : ", integer, " { ");
    for (const EnumMapping& mapping : type.mappings) {
      const auto bound = [&type](uint64_t value) {
        return type.is_signed ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrCat(value);
      };
      absl::StrAppend(&text, Quoted(mapping.label), " = ", bound(mapping.low), " ... ",
                      bound(mapping.high), ", ");
    }
    return text + "}";
  }

  absl::StatusOr<std::string> Members(const Type& type) {
    std::string text = "{ ";
    for (const Member& member : type.members) {
      std::string dimensions;
      const Type* element = member.type.get();
      for (; element->kind == TypeKind::kArray || element->kind == TypeKind::kSequence;
           element = element->element.get()) {
        absl::StrAppend(
            &dimensions, "[",
            element->kind == TypeKind::kArray ? absl::StrCat(element->length) : element->reference,
            "]");
      }
      SYNCLINE_ASSIGN_OR_RETURN(const std::string specifier, Specifier(*element));
      absl::StrAppend(&text, specifier, " ", member.name, dimensions, "; ");
    }
    return text + "}";
  }

  std::string text_;
  size_t depth_ = 0;
  // Where packets do not say which stream they are of, babeltrace2 refuses a stream with an id.
  bool says_ids_ = false;
};

}  // namespace

absl::StatusOr<std::string> WriteTsdl(const Metadata& metadata) { return Writer().Run(metadata); }

std::string UuidText(const Uuid& uuid) {
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", uuid[i]);
  }
  return text;
}

}  // namespace syncline::ctf
