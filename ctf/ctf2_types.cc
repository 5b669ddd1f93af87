// SPDX-License-Identifier: Apache-2.0
#include "ctf/ctf2_types.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::ctf {
namespace {

// As in TSDL: wider than any tracer writes.
constexpr uint64_t kAlignmentMax = uint64_t{1} << 24;
constexpr uint64_t kBitArrayMax = uint64_t{1} << 20;

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

Role RoleOf(const Json& json) {
  static const auto* const kRoles = new std::map<std::string, Role>{
      {"packet-magic-number", Role::kMagic},
      {"metadata-stream-uuid", Role::kUuid},
      {"data-stream-class-id", Role::kStreamId},
      {"data-stream-id", Role::kStreamInstanceId},
      {"packet-total-length", Role::kPacketSize},
      {"packet-content-length", Role::kContentSize},
      {"default-clock-timestamp", Role::kTimestamp},
      {"packet-end-default-clock-timestamp", Role::kTimestampEnd},
      {"discarded-event-record-counter-snapshot", Role::kDiscardedEvents},
      {"packet-sequence-number", Role::kSequenceNumber},
      {"event-record-class-id", Role::kEventId},
  };
  const Json* const roles = FindMember(json, "roles");
  if (roles == nullptr || !roles->is_array()) return Role::kNone;
  for (const Json& role : *roles) {
    if (!role.is_string()) continue;
    const auto found = kRoles->find(role.get<std::string>());
    if (found != kRoles->end()) return found->second;
  }
  return Role::kNone;
}

// A property of alignment; 1 when it is not there.
absl::StatusOr<uint32_t> AlignmentOf(const Json& json, const char* name) {
  if (FindMember(json, name) == nullptr) return 1;
  const uint64_t alignment = FindUnsigned(json, name).value_or(0);
  if (!std::has_single_bit(alignment) || alignment > kAlignmentMax) {
    return Wrong(absl::StrCat("\"", name, "\" must be a power of two"));
  }
  return static_cast<uint32_t>(alignment);
}

absl::StatusOr<uint64_t> LengthOf(const Json& json) {
  const std::optional<uint64_t> length = FindUnsigned(json, "length");
  if (!length) return Wrong("\"length\" must be a number");
  return *length;
}

// {"origin": SCOPE, "path": [NAME or null, ...]}; null stands for the element of an array or the
// content of an optional, which a path here walks into by itself.
absl::StatusOr<std::string> LocationOf(const Json& json, const char* name) {
  static const auto* const kOrigins = new std::map<std::string, std::string>{
      {"packet-header", "trace.packet.header"},
      {"packet-context", "stream.packet.context"},
      {"event-record-header", "stream.event.header"},
      {"event-record-common-context", "stream.event.context"},
      {"event-record-specific-context", "event.context"},
      {"event-record-payload", "event.fields"},
  };
  const Json* const location = FindMember(json, name);
  const Json* const path = location == nullptr ? nullptr : FindMember(*location, "path");
  if (path == nullptr || !path->is_array() || path->empty()) {
    return Wrong(absl::StrCat("\"", name, "\" must have a path"));
  }
  std::string text;
  if (FindMember(*location, "origin") != nullptr) {
    const auto origin = kOrigins->find(FindText(*location, "origin").value_or(""));
    if (origin == kOrigins->end()) return Wrong("the origin of a field location is unknown");
    text = origin->second;
  }
  for (const Json& step : *path) {
    if (step.is_null()) continue;
    if (!step.is_string()) return Wrong("a field location's path must have names");
    const auto part = step.get<std::string>();
    if (part.find('.') != part.npos) return Wrong("a dot in a name that a location refers to");
    absl::StrAppend(&text, text.empty() ? "" : ".", part);
  }
  return text;
}

// [[low, high], ...]; bits of int64_t for negative ones.
absl::StatusOr<std::vector<EnumMapping>> RangesOf(const Json& json, const std::string& label) {
  std::vector<EnumMapping> ranges;
  if (!json.is_array()) return Wrong("ranges must be an array");
  for (const Json& range : json) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number_integer() ||
        !range[1].is_number_integer()) {
      return Wrong("a range must be two integers");
    }
    const auto bits = [](const Json& bound) {
      return bound.is_number_unsigned() ? bound.get<uint64_t>()
                                        : static_cast<uint64_t>(bound.get<int64_t>());
    };
    const bool backwards =
        range[0].is_number_unsigned() && range[1].is_number_unsigned()
            ? bits(range[0]) > bits(range[1])
            : static_cast<int64_t>(bits(range[0])) > static_cast<int64_t>(bits(range[1]));
    if (backwards) return Wrong("a range must not end before it begins");
    ranges.push_back({label, bits(range[0]), bits(range[1])});
  }
  return ranges;
}

}  // namespace

const Json* FindMember(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::optional<uint64_t> FindUnsigned(const Json& object, const char* name) {
  const Json* const member = FindMember(object, name);
  if (member == nullptr || !member->is_number_unsigned()) return std::nullopt;
  return member->get<uint64_t>();
}

std::optional<std::string> FindText(const Json& object, const char* name) {
  const Json* const member = FindMember(object, name);
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

absl::Status FieldClassParser::AddAlias(const std::string& name, const Json& field_class) {
  SYNCLINE_ASSIGN_OR_RETURN(TypePtr type, Parse(field_class));
  if (!aliases_.emplace(name, std::move(type)).second) {
    return Wrong(absl::StrCat("field class alias \"", name, "\" is declared twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TypePtr> FieldClassParser::Parse(const Json& json) {
  if (json.is_string()) {
    const auto alias = aliases_.find(json.get<std::string>());
    if (alias != aliases_.end()) return alias->second;
    return Wrong(absl::StrCat("unknown field class alias \"", json.get<std::string>(), "\""));
  }
  const std::optional<std::string> kind = FindText(json, "type");
  if (!kind) return Wrong("a field class must be an object with a type, or an alias");
  static constexpr const char kDeep[] = "field classes are nested too deeply";
  if (depth_ >= kTypeDepthMax) return Wrong(kDeep);
  ++depth_;
  auto made = ParseObject(json, *kind);
  --depth_;
  if (!made.ok()) return made.status();
  (*made)->depth = DepthOf(**made);
  if ((*made)->depth > kTypeDepthMax) return Wrong(kDeep);
  (*made)->role = RoleOf(json);
  return TypePtr(*std::move(made));
}

FieldClassParser::Made FieldClassParser::ParseObject(const Json& json, const std::string& kind) {
  if (kind == "structure") return Structure(json);
  if (kind == "variant") return Variant(json);
  if (kind == "optional") return Optional(json);
  if (kind == "static-length-array") return Array(json, false);
  if (kind == "dynamic-length-array") return Array(json, true);
  if (kind == "static-length-blob") return Blob(json, false);
  if (kind == "dynamic-length-blob") return Blob(json, true);
  if (kind.ends_with("-string")) return String(json, kind);
  if (kind == "fixed-length-floating-point-number") return Float(json);
  if (kind.ends_with("-integer")) return Integer(json, kind);
  if (kind.starts_with("fixed-length-")) return BitArray(json, kind);
  return absl::UnimplementedError(absl::StrCat("field class \"", kind, "\" is not known"));
}

// Length, alignment and orders of a fixed-length field. A longer one than 64 bits becomes an array.
absl::Status FieldClassParser::Bits(const Json& json, Type& type) {
  SYNCLINE_ASSIGN_OR_RETURN(const uint64_t length, LengthOf(json));
  if (length == 0 || length > kBitArrayMax) return Wrong("a field must have at least one bit");
  type.size_bits = static_cast<uint32_t>(length);
  SYNCLINE_ASSIGN_OR_RETURN(type.alignment, AlignmentOf(json, "alignment"));
  const std::string order = FindText(json, "byte-order").value_or("");
  if (order != "little-endian" && order != "big-endian") {
    return Wrong("\"byte-order\" must be little-endian or big-endian");
  }
  const bool big = order == "big-endian";
  type.byte_order = big ? ByteOrder::kBig : ByteOrder::kLittle;
  const std::string natural = big ? "last-to-first" : "first-to-last";
  type.reversed_bits = FindText(json, "bit-order").value_or(natural) != natural;
  return absl::OkStatus();
}

absl::Status FieldClassParser::Mappings(const Json& json, Type& type) {
  const Json* const mappings = FindMember(json, "mappings");
  if (mappings == nullptr || mappings->empty()) return absl::OkStatus();
  if (!mappings->is_object()) return Wrong("\"mappings\" must be an object");
  type.kind = TypeKind::kEnum;
  for (const auto& [label, ranges] : mappings->items()) {
    SYNCLINE_ASSIGN_OR_RETURN(const auto found, RangesOf(ranges, label));
    type.mappings.insert(type.mappings.end(), found.begin(), found.end());
  }
  return absl::OkStatus();
}

FieldClassParser::Made FieldClassParser::Integer(const Json& json, const std::string& kind) {
  auto type = std::make_shared<Type>();
  type->is_signed = kind.ends_with("-signed-integer");
  if (kind == "fixed-length-unsigned-integer" || kind == "fixed-length-signed-integer") {
    SYNCLINE_RETURN_IF_ERROR(Bits(json, *type));
    if (type->size_bits > 64) {
      return absl::UnimplementedError("integers of more than 64 bits are not supported");
    }
  } else if (kind == "variable-length-unsigned-integer" ||
             kind == "variable-length-signed-integer") {
    type->variable_length = true;
    type->size_bits = 64;
    type->alignment = 8;
  } else {
    return absl::UnimplementedError(absl::StrCat("field class \"", kind, "\" is not known"));
  }
  const uint64_t base = FindUnsigned(json, "preferred-display-base").value_or(10);
  if (base == 2 || base == 8 || base == 16) type->base = static_cast<int>(base);
  SYNCLINE_RETURN_IF_ERROR(Mappings(json, *type));
  return type;
}

FieldClassParser::Made FieldClassParser::BitArray(const Json& json, const std::string& kind) {
  if (kind != "fixed-length-bit-array" && kind != "fixed-length-bit-map" &&
      kind != "fixed-length-boolean") {
    return absl::UnimplementedError(absl::StrCat("field class \"", kind, "\" is not known"));
  }
  auto bits = std::make_shared<Type>();
  SYNCLINE_RETURN_IF_ERROR(Bits(json, *bits));
  bits->base = kind == "fixed-length-boolean" ? 10 : 16;
  if (bits->size_bits <= 64) return bits;
  auto array = std::make_shared<Type>();
  array->kind = TypeKind::kArray;
  array->alignment = bits->alignment;
  array->length = bits->size_bits;
  bits->size_bits = 1;
  bits->alignment = 1;
  array->element = std::move(bits);
  return array;
}

FieldClassParser::Made FieldClassParser::Float(const Json& json) {
  auto type = std::make_shared<Type>();
  SYNCLINE_RETURN_IF_ERROR(Bits(json, *type));
  const uint32_t size = type->size_bits;
  if (size == 16 || size == 32 || size == 64) {
    type->kind = TypeKind::kFloat;
    type->mantissa_bits = size == 16 ? 11 : size == 32 ? 24 : 53;
    return type;
  }
  if (size % 32 != 0) return Wrong("a floating point number has 16, 32, 64, 96, 128, ... bits");
  auto array = std::make_shared<Type>();
  array->kind = TypeKind::kArray;
  array->alignment = type->alignment;
  array->length = size / 8;
  type->size_bits = 8;
  type->alignment = 1;
  type->base = 16;
  array->element = std::move(type);
  return array;
}

FieldClassParser::Made FieldClassParser::String(const Json& json, const std::string& kind) {
  auto type = std::make_shared<Type>();
  type->alignment = 8;
  const std::string encoding = FindText(json, "encoding").value_or("utf-8");
  const uint32_t unit = encoding == "utf-8"              ? 1
                        : encoding.starts_with("utf-16") ? 2
                        : encoding.starts_with("utf-32") ? 4
                                                         : 0;
  if (unit == 0) return Wrong(absl::StrCat("encoding \"", encoding, "\" is not known"));
  if (kind == "null-terminated-string") {
    type->kind = TypeKind::kString;
    type->unit_bytes = unit;
    return type;
  }
  const bool dynamic = kind == "dynamic-length-string";
  if (!dynamic && kind != "static-length-string") {
    return absl::UnimplementedError(absl::StrCat("field class \"", kind, "\" is not known"));
  }
  if (unit != 1) return Blob(json, dynamic);
  type->kind = dynamic ? TypeKind::kSequence : TypeKind::kArray;
  auto character = std::make_shared<Type>();
  character->size_bits = character->alignment = 8;
  character->byte_order = ByteOrder::kLittle;
  character->is_text = true;
  type->element = std::move(character);
  if (dynamic) {
    SYNCLINE_ASSIGN_OR_RETURN(type->reference, LocationOf(json, "length-field-location"));
  } else {
    SYNCLINE_ASSIGN_OR_RETURN(type->length, LengthOf(json));
  }
  return type;
}

FieldClassParser::Made FieldClassParser::Blob(const Json& json, bool dynamic) {
  auto type = std::make_shared<Type>();
  type->alignment = 8;
  type->kind = dynamic ? TypeKind::kSequenceBlob : TypeKind::kBlob;
  if (dynamic) {
    SYNCLINE_ASSIGN_OR_RETURN(type->reference, LocationOf(json, "length-field-location"));
  } else {
    SYNCLINE_ASSIGN_OR_RETURN(type->length, LengthOf(json));
  }
  return type;
}

FieldClassParser::Made FieldClassParser::Array(const Json& json, bool dynamic) {
  auto type = std::make_shared<Type>();
  type->kind = dynamic ? TypeKind::kSequence : TypeKind::kArray;
  const Json* const element = FindMember(json, "element-field-class");
  if (element == nullptr) return Wrong("an array must have an element-field-class");
  SYNCLINE_ASSIGN_OR_RETURN(type->element, Parse(*element));
  SYNCLINE_ASSIGN_OR_RETURN(const uint32_t least, AlignmentOf(json, "minimum-alignment"));
  type->alignment = std::max(least, type->element->alignment);
  if (dynamic) {
    SYNCLINE_ASSIGN_OR_RETURN(type->reference, LocationOf(json, "length-field-location"));
  } else {
    SYNCLINE_ASSIGN_OR_RETURN(type->length, LengthOf(json));
  }
  return type;
}

FieldClassParser::Made FieldClassParser::Structure(const Json& json) {
  auto type = std::make_shared<Type>();
  type->kind = TypeKind::kStruct;
  SYNCLINE_ASSIGN_OR_RETURN(type->alignment, AlignmentOf(json, "minimum-alignment"));
  const Json* const members = FindMember(json, "member-classes");
  if (members == nullptr) return type;
  if (!members->is_array()) return Wrong("\"member-classes\" must be an array");
  std::set<std::string> names;
  for (const Json& member : *members) {
    const std::optional<std::string> name = FindText(member, "name");
    const Json* const field_class = FindMember(member, "field-class");
    if (!name || field_class == nullptr) {
      return Wrong("a member must have a name and a field-class");
    }
    if (!names.insert(*name).second) {
      return Wrong(absl::StrCat("member \"", *name, "\" is declared twice"));
    }
    auto parsed = Parse(*field_class);
    if (!parsed.ok()) {
      return WithContext(parsed.status(), absl::StrCat("member \"", *name, "\""));
    }
    type->alignment = std::max(type->alignment, (*parsed)->alignment);
    type->members.push_back({*name, *std::move(parsed), {}});
  }
  return type;
}

FieldClassParser::Made FieldClassParser::Variant(const Json& json) {
  auto type = std::make_shared<Type>();
  type->kind = TypeKind::kVariant;
  SYNCLINE_ASSIGN_OR_RETURN(type->reference, LocationOf(json, "selector-field-location"));
  const Json* const options = FindMember(json, "options");
  if (options == nullptr || !options->is_array() || options->empty()) {
    return Wrong("a variant must have options");
  }
  for (const Json& option : *options) {
    const Json* const field_class = FindMember(option, "field-class");
    const Json* const ranges = FindMember(option, "selector-field-ranges");
    if (field_class == nullptr || ranges == nullptr) {
      return Wrong("an option must have a field-class and selector-field-ranges");
    }
    Member member;
    member.name = FindText(option, "name").value_or(absl::StrCat(type->members.size()));
    SYNCLINE_ASSIGN_OR_RETURN(member.type, Parse(*field_class));
    SYNCLINE_ASSIGN_OR_RETURN(member.selected_by, RangesOf(*ranges, member.name));
    if (member.selected_by.empty()) return Wrong("an option that no selector selects");
    type->members.push_back(std::move(member));
  }
  return type;
}

// Its one option is selected by the ranges, or by a boolean that is true.
FieldClassParser::Made FieldClassParser::Optional(const Json& json) {
  auto type = std::make_shared<Type>();
  type->kind = TypeKind::kVariant;
  type->may_be_empty = true;
  SYNCLINE_ASSIGN_OR_RETURN(type->reference, LocationOf(json, "selector-field-location"));
  const Json* const field_class = FindMember(json, "field-class");
  if (field_class == nullptr) return Wrong("an optional must have a field-class");
  Member member;
  SYNCLINE_ASSIGN_OR_RETURN(member.type, Parse(*field_class));
  if (const Json* const ranges = FindMember(json, "selector-field-ranges")) {
    SYNCLINE_ASSIGN_OR_RETURN(member.selected_by, RangesOf(*ranges, ""));
  } else {
    member.selected_by.push_back({"", 1, ~uint64_t{0}});
  }
  type->members.push_back(std::move(member));
  return type;
}

}  // namespace syncline::ctf
