// SPDX-License-Identifier: Apache-2.0
// ctf_transliterate TRACE OUT: the same trace with its metadata in CTF 2's words instead of CTF
// 1.8's, or, where it is in CTF 2's, in CTF 1.8's; the streams are linked. For tests: no tracer
// that writes CTF 2 was at hand.
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/text.h"
#include "ctf/ctf18_words.h"
#include "ctf/metadata.h"
#include "ctf/stream_summary.h"
#include "ctf/tsdl_writer.h"

namespace {

using Json = nlohmann::ordered_json;
using syncline::ctf::ByteOrder;
using syncline::ctf::ClockClass;
using syncline::ctf::EnumMapping;
using syncline::ctf::EventType;
using syncline::ctf::Member;
using syncline::ctf::Metadata;
using syncline::ctf::StreamType;
using syncline::ctf::Type;
using syncline::ctf::TypeKind;

constexpr const char* kPacketHeader = "packet-header";
constexpr const char* kPacketContext = "packet-context";
constexpr const char* kEventHeader = "event-record-header";
constexpr const char* kPayload = "event-record-payload";

std::string Name(std::string_view name) {
  return std::string(name.starts_with('_') ? name.substr(1) : name);
}

class Transliterator {
 public:
  explicit Transliterator(const Metadata& metadata) : metadata_(metadata) {}

  std::string Run() {
    Json preamble{{"type", "preamble"}, {"version", 2}};
    if (metadata_.uuid) preamble["uuid"] = *metadata_.uuid;
    Fragment(preamble);
    Json trace{{"type", "trace-class"}, {"environment", Json::object()}};
    for (const auto& [key, value] : metadata_.environment) trace["environment"][key] = value;
    Scope(trace, "packet-header-field-class", metadata_.packet_header, kPacketHeader);
    // An alias, so that there is one.
    if (trace.contains("packet-header-field-class")) {
      Fragment({{"type", "field-class-alias"},
                {"name", "header of packets"},
                {"field-class", trace["packet-header-field-class"]}});
      trace["packet-header-field-class"] = "header of packets";
    }
    Fragment(trace);
    for (const ClockClass& clock : metadata_.clocks) Clock(clock);
    for (const StreamType& stream : metadata_.streams) Stream(stream);
    return text_;
  }

 private:
  void Fragment(const Json& json) { text_ += '\x1e' + json.dump(1) + '\n'; }

  void Clock(const ClockClass& clock) {
    const auto frequency = static_cast<int64_t>(clock.frequency);
    int64_t seconds = clock.offset_seconds + clock.offset_cycles / frequency;
    int64_t cycles = clock.offset_cycles % frequency;
    if (cycles < 0) {
      cycles += frequency;
      --seconds;
    }
    Json json{{"type", "clock-class"},
              {"id", clock.name},
              {"name", clock.name},
              {"frequency", clock.frequency},
              {"offset-from-origin", {{"seconds", seconds}, {"cycles", cycles}}}};
    if (!clock.uuid.empty()) json["uid"] = clock.uuid;
    if (clock.absolute) json["origin"] = "unix-epoch";
    Fragment(json);
  }

  void Stream(const StreamType& stream) {
    Json json{{"type", "data-stream-class"}, {"id", stream.id}};
    if (!metadata_.clocks.empty()) json["default-clock-class-id"] = metadata_.clocks[0].name;
    Scope(json, "packet-context-field-class", stream.packet_context, kPacketContext);
    Scope(json, "event-record-header-field-class", stream.event_header, kEventHeader);
    Scope(json, "event-record-common-context-field-class", stream.event_context,
          "event-record-common-context");
    Fragment(json);
    for (const EventType& event : stream.events) {
      Json one{{"type", "event-record-class"},
               {"data-stream-class-id", stream.id},
               {"id", event.id.value_or(0)},
               {"name", event.name}};
      Scope(one, "specific-context-field-class", event.context, "event-record-specific-context");
      Scope(one, "payload-field-class", event.payload, kPayload);
      Fragment(one);
    }
  }

  void Scope(Json& json, const char* key, const syncline::ctf::TypePtr& type, const char* scope) {
    if (type == nullptr) return;
    scope_ = scope;
    json[key] = FieldClass(*type, "");
  }

  Json FieldClass(const Type& type, std::string_view name) {
    switch (type.kind) {
      case TypeKind::kInteger:
      case TypeKind::kEnum:
        return Integer(type, name);
      case TypeKind::kFloat:
        return Bits("fixed-length-floating-point-number", type);
      case TypeKind::kString:
        return {{"type", "null-terminated-string"}};
      case TypeKind::kStruct:
        return Structure(type);
      case TypeKind::kVariant:
        return Variant(type);
      default:
        return Elements(type, name);
    }
  }

  Json Bits(const char* kind, const Type& type) const {
    const ByteOrder order =
        type.byte_order == ByteOrder::kNative ? metadata_.byte_order : type.byte_order;
    return {{"type", kind},
            {"length", type.size_bits},
            {"alignment", type.alignment},
            {"byte-order", order == ByteOrder::kBig ? "big-endian" : "little-endian"}};
  }

  Json Integer(const Type& type, std::string_view name) const {
    Json json = Bits(
        type.is_signed ? "fixed-length-signed-integer" : "fixed-length-unsigned-integer", type);
    json["preferred-display-base"] = type.base;
    for (const EnumMapping& mapping : type.mappings) {
      json["mappings"][mapping.label].push_back(Range(type, mapping));
    }
    const std::string role = RoleOf(type, name);
    if (!role.empty()) json["roles"] = {role};
    return json;
  }

  static Json Range(const Type& type, const EnumMapping& mapping) {
    if (!type.is_signed) return Json::array({mapping.low, mapping.high});
    return Json::array({static_cast<int64_t>(mapping.low), static_cast<int64_t>(mapping.high)});
  }

  // What the reserved names of CTF 1.8 mean.
  std::string RoleOf(const Type& type, std::string_view name) const {
    static const std::map<std::pair<std::string_view, std::string_view>, const char*> kRoles = {
        {{kPacketHeader, "magic"}, "packet-magic-number"},
        {{kPacketHeader, "stream_id"}, "data-stream-class-id"},
        {{kPacketHeader, "stream_instance_id"}, "data-stream-id"},
        {{kPacketContext, "timestamp_begin"}, "default-clock-timestamp"},
        {{kPacketContext, "timestamp_end"}, "packet-end-default-clock-timestamp"},
        {{kPacketContext, "content_size"}, "packet-content-length"},
        {{kPacketContext, "packet_size"}, "packet-total-length"},
        {{kPacketContext, "packet_seq_num"}, "packet-sequence-number"},
        {{kPacketContext, "events_discarded"}, "discarded-event-record-counter-snapshot"},
        {{kEventHeader, "id"}, "event-record-class-id"},
        {{kEventHeader, "timestamp"}, "default-clock-timestamp"},
    };
    if (scope_ != kEventHeader && enclosing_.size() > 1) return "";
    const auto role = kRoles.find({scope_, name});
    if (role != kRoles.end()) return role->second;
    return scope_ == kEventHeader && !type.clock.empty() ? "default-clock-timestamp" : "";
  }

  Json Elements(const Type& type, std::string_view name) {
    const bool dynamic = type.kind == TypeKind::kSequence;
    const Type& element = *type.element;
    Json json;
    if (scope_ == kPacketHeader && name == "uuid") {
      json = {{"type", "static-length-blob"}, {"roles", {"metadata-stream-uuid"}}};
    } else if (element.is_text && element.size_bits == 8 && element.alignment == 8) {
      json = {{"type", dynamic ? "dynamic-length-string" : "static-length-string"}};
    } else {
      json = {{"type", dynamic ? "dynamic-length-array" : "static-length-array"},
              {"element-field-class", FieldClass(element, "")}};
    }
    if (dynamic) {
      json["length-field-location"] = Location(type.reference);
    } else {
      json["length"] = type.length;
    }
    return json;
  }

  Json Structure(const Type& type) {
    Json json{{"type", "structure"},
              {"minimum-alignment", type.alignment},
              {"member-classes", Json::array()}};
    enclosing_.push_back(&type);
    for (const Member& member : type.members) {
      json["member-classes"].push_back(
          {{"name", Name(member.name)}, {"field-class", FieldClass(*member.type, member.name)}});
    }
    enclosing_.pop_back();
    return json;
  }

  Json Variant(const Type& type) {
    Json json{{"type", "variant"}, {"selector-field-location", Location(type.reference)}};
    const Type* const tag = FindTag(type.reference);
    for (const Member& option : type.members) {
      Json ranges = Json::array();
      for (const EnumMapping& mapping : tag->mappings) {
        if (Name(mapping.label) == Name(option.name)) ranges.push_back(Range(*tag, mapping));
      }
      if (ranges.empty()) continue;  // nothing selects it
      json["options"].push_back({{"name", Name(option.name)},
                                 {"selector-field-ranges", ranges},
                                 {"field-class", FieldClass(*option.type, option.name)}});
    }
    return json;
  }

  const Type* FindTag(const std::string& reference) const {
    for (auto scope = enclosing_.rbegin(); scope != enclosing_.rend(); ++scope) {
      for (const Member& member : (*scope)->members) {
        if (member.name == reference) return member.type.get();
      }
    }
    std::fprintf(stderr, "the tag \"%s\" is not in an enclosing struct\n", reference.c_str());
    std::exit(1);
  }

  static Json Location(const std::string& reference) {
    Json path = Json::array();
    for (const absl::string_view step : absl::StrSplit(reference, '.')) {
      path.push_back(Name(syncline::StdView(step)));
    }
    return {{"path", path}};
  }

  const Metadata& metadata_;
  std::string text_;
  std::string_view scope_;
  std::vector<const Type*> enclosing_;
};

absl::StatusOr<std::string> InOtherWords(const std::shared_ptr<const Metadata>& metadata) {
  if (metadata->roles_by_name) return Transliterator(*metadata).Run();
  const auto in_words = syncline::ctf::InCtf18Words(metadata);
  if (!in_words.ok()) return in_words.status();
  return syncline::ctf::WriteTsdl(**in_words);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s TRACE OUT\n", argv[0]);
    return 2;
  }
  const auto metadata = syncline::ctf::LoadMetadata(argv[1]);
  if (!metadata.ok()) {
    std::fprintf(stderr, "%s\n", std::string(metadata.status().message()).c_str());
    return 1;
  }
  const absl::StatusOr<std::string> text = InOtherWords(*metadata);
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", std::string(text.status().message()).c_str());
    return 1;
  }
  const std::filesystem::path out = argv[2];
  std::filesystem::create_directories(out);
  if (!syncline::WriteFileAtomically(out / "metadata", *text).ok()) return 1;
  const auto files = syncline::ctf::ListStreamFiles(argv[1]).value();
  for (const auto& file : files) {
    std::filesystem::create_symlink(std::filesystem::absolute(file), out / file.filename());
  }
  return 0;
}
