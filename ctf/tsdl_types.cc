// SPDX-License-Identifier: Apache-2.0
#include "ctf/tsdl_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::ctf {
namespace {

constexpr uint64_t kAlignmentMax = uint64_t{1} << 24;

constexpr std::array<std::string_view, 12> kTypeWords = {
    "void",   "char",   "short",    "int",   "long",     "float",
    "double", "signed", "unsigned", "_Bool", "_Complex", "_Imaginary"};

bool IsTypeWord(const Token& token) {
  return token.kind == TokenKind::kIdentifier &&
         std::find(kTypeWords.begin(), kTypeWords.end(), token.text) != kTypeWords.end();
}

bool ParseBase(const TsdlValue& value, int* base) {
  if (value.kind == TsdlValue::Kind::kInteger) {
    *base = static_cast<int>(value.magnitude);
    return value.magnitude == 2 || value.magnitude == 8 || value.magnitude == 10 ||
           value.magnitude == 16;
  }
  struct Name {
    std::string_view text;
    int base;
  };
  static constexpr Name kNames[] = {
      {"decimal", 10},     {"dec", 10},       {"d", 10}, {"i", 10},     {"u", 10},
      {"hexadecimal", 16}, {"hex", 16},       {"x", 16}, {"X", 16},     {"p", 16},
      {"octal", 8},        {"oct", 8},        {"o", 8},  {"binary", 2}, {"b", 2},
      {"symbol", 16},      {"symaddress", 16}};
  for (const Name& name : kNames) {
    if (name.text == value.text) {
      *base = name.base;
      return true;
    }
  }
  return false;
}

bool ParseByteOrder(const TsdlValue& value, ByteOrder* order) {
  const bool big = value.text == "be" || value.text == "network";
  if (!big && value.text != "le" && value.text != "native") return false;
  *order = big ? ByteOrder::kBig : value.text == "le" ? ByteOrder::kLittle : ByteOrder::kNative;
  return true;
}

uint32_t AlignmentOf(const std::vector<Member>& members, uint32_t least) {
  for (const Member& member : members) least = std::max(least, member.type->alignment);
  return least;
}

}  // namespace

std::string TsdlValue::AsText() const {
  return kind == Kind::kInteger ? absl::StrCat(negative ? "-" : "", magnitude) : text;
}

absl::Status TypeParser::ErrorAt(const Token& token, std::string_view message) const {
  return TsdlError(token.line, token.column, message);
}

TypePtr TypeParser::Find(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto it = scope->aliases.find(name); it != scope->aliases.end()) return it->second;
  }
  return nullptr;
}

absl::Status TypeParser::Declare(const std::string& name, TypePtr type) {
  if (!scopes_.back().aliases.emplace(name, std::move(type)).second) {
    return tokens_.Error(absl::StrCat("type \"", name, "\" is declared twice"));
  }
  return absl::OkStatus();
}

bool TypeParser::AtTypeDeclaration() const {
  for (const std::string_view word : {"typealias", "typedef", "struct", "enum", "variant"}) {
    if (tokens_.IsWord(word)) {
      return !tokens_.IsSymbol("=", 1) && !tokens_.IsSymbol(":=", 1) && !tokens_.IsSymbol(".", 1);
    }
  }
  return false;
}

absl::Status TypeParser::ParseTypeDeclaration() {
  if (tokens_.TryWord("typealias")) {
    SYNCLINE_ASSIGN_OR_RETURN(TypePtr type, ParseSpecifier());
    SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol(":="));
    SYNCLINE_ASSIGN_OR_RETURN(const std::string name, ParseAliasName());
    SYNCLINE_RETURN_IF_ERROR(Declare(name, std::move(type)));
    return tokens_.ExpectSymbol(";");
  }
  if (tokens_.TryWord("typedef")) {
    SYNCLINE_ASSIGN_OR_RETURN(const TypePtr type, ParseSpecifier());
    do {
      SYNCLINE_ASSIGN_OR_RETURN(Member member, ParseDeclarator(type));
      SYNCLINE_RETURN_IF_ERROR(Declare(member.name, std::move(member.type)));
    } while (tokens_.TrySymbol(","));
    return tokens_.ExpectSymbol(";");
  }
  SYNCLINE_RETURN_IF_ERROR(ParseSpecifier().status());
  return tokens_.ExpectSymbol(";");
}

absl::StatusOr<std::string> TypeParser::ParseAliasName() {
  std::string name;
  const auto append = [&name](std::string_view word) {
    absl::StrAppend(&name, name.empty() ? "" : " ", AbslView(word));
  };
  while (tokens_.TryWord("const")) {
  }
  if (IsTypeWord(tokens_.Peek())) {
    while (IsTypeWord(tokens_.Peek()) || tokens_.IsWord("const")) {
      const std::string word = tokens_.Take().text;
      if (word != "const") append(word);
    }
  } else {
    const bool tagged =
        tokens_.IsWord("struct") || tokens_.IsWord("enum") || tokens_.IsWord("variant");
    SYNCLINE_ASSIGN_OR_RETURN(const std::string word, tokens_.ExpectName());
    append(word);
    if (tagged) {
      SYNCLINE_ASSIGN_OR_RETURN(const std::string tag, tokens_.ExpectName());
      append(tag);
    }
  }
  while (tokens_.IsSymbol("*") || tokens_.IsWord("const")) {
    if (tokens_.Take().text == "*") append("*");
  }
  return name;
}

absl::StatusOr<TypePtr> TypeParser::ParseSpecifier() {
  if (depth_ >= kTypeDepthMax) return tokens_.Error("types are nested too deeply");
  ++depth_;
  while (tokens_.TryWord("const")) {
  }
  absl::StatusOr<TypePtr> type;
  if (tokens_.TryWord("integer")) {
    type = ParseInteger();
  } else if (tokens_.TryWord("floating_point")) {
    type = ParseFloat();
  } else if (tokens_.TryWord("string")) {
    type = ParseString();
  } else if (tokens_.TryWord("enum")) {
    type = ParseEnum();
  } else if (tokens_.TryWord("struct")) {
    type = ParseStruct();
  } else if (tokens_.TryWord("variant")) {
    type = ParseVariant();
  } else {
    type = ParseNamedType();
  }
  while (tokens_.TryWord("const")) {
  }
  --depth_;
  return type;
}

absl::StatusOr<TypePtr> TypeParser::ParseNamedType() {
  const Token where = tokens_.Peek();
  SYNCLINE_ASSIGN_OR_RETURN(const std::string name, ParseAliasName());
  TypePtr type = Find(name);
  if (type == nullptr) return ErrorAt(where, absl::StrCat("unknown type \"", name, "\""));
  return type;
}

absl::StatusOr<TsdlValue> TypeParser::ParseValue() {
  TsdlValue value;
  if (tokens_.Peek().kind == TokenKind::kString) {
    value.kind = TsdlValue::Kind::kText;
    value.text = tokens_.Take().text;
    // Neighbouring strings are one, as in C.
    while (tokens_.Peek().kind == TokenKind::kString) value.text += tokens_.Take().text;
    return value;
  }
  if (tokens_.Peek().kind == TokenKind::kIdentifier) {
    value.kind = TsdlValue::Kind::kPath;
    SYNCLINE_ASSIGN_OR_RETURN(value.text, tokens_.ExpectPath());
    return value;
  }
  while (tokens_.IsSymbol("-") || tokens_.IsSymbol("+")) {
    if (tokens_.Take().text == "-") value.negative = !value.negative;
  }
  if (tokens_.Peek().kind != TokenKind::kInteger) return tokens_.Error("expected a value");
  value.magnitude = tokens_.Take().integer;
  return value;
}

absl::StatusOr<std::vector<TypeParser::Attribute>> TypeParser::ParseAttributes() {
  std::vector<Attribute> attributes;
  SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol("{"));
  while (!tokens_.TrySymbol("}")) {
    Attribute attribute;
    attribute.where = tokens_.Peek();
    SYNCLINE_ASSIGN_OR_RETURN(attribute.key, tokens_.ExpectPath());
    SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol("="));
    SYNCLINE_ASSIGN_OR_RETURN(attribute.value, ParseValue());
    SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol(";"));
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

absl::Status TypeParser::ApplyInteger(const Attribute& attribute, std::string_view what, Type& type,
                                      bool& aligned) {
  const std::string& key = attribute.key;
  const TsdlValue& value = attribute.value;
  if (key == "size") {
    if (value.negative || value.magnitude < 1 || value.magnitude > 64) {
      return ErrorAt(attribute.where, "an integer's size must be 1 to 64 bits");
    }
    type.size_bits = static_cast<uint32_t>(value.magnitude);
  } else if (key == "align") {
    if (value.negative || !std::has_single_bit(value.magnitude) ||
        value.magnitude > kAlignmentMax) {
      return ErrorAt(attribute.where, "an alignment must be a power of two");
    }
    type.alignment = static_cast<uint32_t>(value.magnitude);
    aligned = true;
  } else if (key == "signed") {
    const std::string text = absl::AsciiStrToLower(value.AsText());
    type.is_signed = text == "true" || text == "1";
    if (!type.is_signed && text != "false" && text != "0") {
      return ErrorAt(attribute.where, "\"signed\" must be true or false");
    }
  } else if (key == "byte_order") {
    if (!ParseByteOrder(value, &type.byte_order)) {
      return ErrorAt(attribute.where, "\"byte_order\" must be le, be, network or native");
    }
  } else if (key == "base") {
    if (!ParseBase(value, &type.base)) return ErrorAt(attribute.where, "unknown base");
  } else if (key == "encoding") {
    const std::string text = absl::AsciiStrToLower(value.text);
    type.is_text = text == "utf8" || text == "ascii";
    if (!type.is_text && text != "none") return ErrorAt(attribute.where, "unknown encoding");
  } else if (key == "map") {
    const std::string& path = value.text;
    constexpr std::string_view kPrefix = "clock.";
    constexpr std::string_view kSuffix = ".value";
    if (!path.starts_with(kPrefix) || !path.ends_with(kSuffix) ||
        path.size() <= kPrefix.size() + kSuffix.size()) {
      return ErrorAt(attribute.where, "\"map\" must be clock.NAME.value");
    }
    type.clock = path.substr(kPrefix.size(), path.size() - kPrefix.size() - kSuffix.size());
  } else {
    NoteUnknown(what, key);
  }
  return absl::OkStatus();
}

absl::StatusOr<TypePtr> TypeParser::ParseInteger() {
  const Token where = tokens_.Peek();
  SYNCLINE_ASSIGN_OR_RETURN(const auto attributes, ParseAttributes());
  auto type = std::make_shared<Type>();
  type->kind = TypeKind::kInteger;
  bool aligned = false;
  for (const Attribute& attribute : attributes) {
    SYNCLINE_RETURN_IF_ERROR(ApplyInteger(attribute, "an integer", *type, aligned));
  }
  if (type->size_bits == 0) return ErrorAt(where, "an integer needs a size");
  if (!aligned) type->alignment = type->size_bits % 8 == 0 ? 8 : 1;
  return type;
}

absl::StatusOr<TypePtr> TypeParser::ParseFloat() {
  const Token where = tokens_.Peek();
  SYNCLINE_ASSIGN_OR_RETURN(const auto attributes, ParseAttributes());
  auto type = std::make_shared<Type>();
  type->kind = TypeKind::kFloat;
  uint64_t exponent = 0;
  uint64_t mantissa = 0;
  bool aligned = false;
  for (const Attribute& attribute : attributes) {
    if (attribute.key == "exp_dig") {
      exponent = attribute.value.magnitude;
    } else if (attribute.key == "mant_dig") {
      mantissa = attribute.value.magnitude;
    } else if (attribute.key == "align" || attribute.key == "byte_order") {
      SYNCLINE_RETURN_IF_ERROR(ApplyInteger(attribute, "a floating point number", *type, aligned));
    } else {
      NoteUnknown("a floating point number", attribute.key);
    }
  }
  const bool known = (exponent == 5 && mantissa == 11) || (exponent == 8 && mantissa == 24) ||
                     (exponent == 11 && mantissa == 53);
  if (!known) {
    return ErrorAt(where, "a floating point number must have 5+11, 8+24 or 11+53 digits");
  }
  type->size_bits = static_cast<uint32_t>(exponent + mantissa);
  type->mantissa_bits = static_cast<uint32_t>(mantissa);
  if (!aligned) type->alignment = 8;
  return type;
}

absl::StatusOr<TypePtr> TypeParser::ParseString() {
  if (tokens_.IsSymbol("{")) SYNCLINE_RETURN_IF_ERROR(ParseAttributes());
  auto type = std::make_shared<Type>();
  type->kind = TypeKind::kString;
  type->alignment = 8;
  type->is_text = true;
  return type;
}

absl::StatusOr<TypePtr> TypeParser::ParseEnum() {
  std::string name;
  const Token where = tokens_.Peek();
  if (where.kind == TokenKind::kIdentifier) name = tokens_.Take().text;
  TypePtr container;
  if (tokens_.TrySymbol(":")) {
    SYNCLINE_ASSIGN_OR_RETURN(container, ParseSpecifier());
  }
  if (!tokens_.IsSymbol("{")) {
    TypePtr type = name.empty() || container != nullptr ? nullptr : Find("enum " + name);
    if (type == nullptr) return ErrorAt(where, absl::StrCat("unknown type \"enum ", name, "\""));
    return type;
  }
  if (container == nullptr) container = Find("int");
  if (container == nullptr || container->kind != TypeKind::kInteger) {
    return ErrorAt(where, "an enum needs an integer type: enum name : TYPE { ... }");
  }
  auto type = std::make_shared<Type>(*container);
  type->kind = TypeKind::kEnum;
  SYNCLINE_RETURN_IF_ERROR(ParseMappings(*type));
  if (!name.empty()) SYNCLINE_RETURN_IF_ERROR(Declare("enum " + name, type));
  return type;
}

absl::StatusOr<uint64_t> TypeParser::ParseEnumBound(bool is_signed) {
  SYNCLINE_ASSIGN_OR_RETURN(const TsdlValue value, ParseValue());
  if (value.kind != TsdlValue::Kind::kInteger || (value.negative && !is_signed)) {
    return tokens_.Error("expected a number that fits the enum's type");
  }
  return static_cast<uint64_t>(value.AsSigned());
}

absl::Status TypeParser::ParseMappings(Type& type) {
  SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol("{"));
  uint64_t next = 0;
  while (!tokens_.TrySymbol("}")) {
    EnumMapping mapping;
    const Token label = tokens_.Take();
    if (label.kind != TokenKind::kIdentifier && label.kind != TokenKind::kString) {
      return ErrorAt(label, "expected an enum label");
    }
    mapping.label = label.text;
    mapping.low = mapping.high = next;
    if (tokens_.TrySymbol("=")) {
      SYNCLINE_ASSIGN_OR_RETURN(mapping.low, ParseEnumBound(type.is_signed));
      mapping.high = mapping.low;
      if (tokens_.TrySymbol("...")) {
        SYNCLINE_ASSIGN_OR_RETURN(mapping.high, ParseEnumBound(type.is_signed));
      }
    }
    const bool reversed =
        type.is_signed ? static_cast<int64_t>(mapping.low) > static_cast<int64_t>(mapping.high)
                       : mapping.low > mapping.high;
    if (reversed) return ErrorAt(label, "an enum range must not end before it begins");
    next = mapping.high + 1;
    type.mappings.push_back(std::move(mapping));
    if (!tokens_.IsSymbol("}")) SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol(","));
  }
  return absl::OkStatus();
}

absl::Status TypeParser::SetDepth(Type& type) const {
  type.depth = DepthOf(type);
  return type.depth <= kTypeDepthMax ? absl::OkStatus()
                                     : tokens_.Error("types are nested too deeply");
}

absl::StatusOr<TypePtr> TypeParser::ParseStruct() {
  std::string name;
  const Token where = tokens_.Peek();
  if (where.kind == TokenKind::kIdentifier) name = tokens_.Take().text;
  std::shared_ptr<Type> type;
  const bool has_body = tokens_.IsSymbol("{");
  if (has_body) {
    type = std::make_shared<Type>();
    type->kind = TypeKind::kStruct;
    SYNCLINE_ASSIGN_OR_RETURN(type->members, ParseMembers());
  } else {
    const TypePtr known = name.empty() ? nullptr : Find("struct " + name);
    if (known == nullptr) return ErrorAt(where, absl::StrCat("unknown type \"struct ", name, "\""));
    type = std::make_shared<Type>(*known);
  }
  if (tokens_.TryWord("align")) {
    SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol("("));
    const Token number = tokens_.Take();
    if (number.kind != TokenKind::kInteger || !std::has_single_bit(number.integer) ||
        number.integer > kAlignmentMax) {
      return ErrorAt(number, "an alignment must be a power of two");
    }
    SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol(")"));
    type->alignment = std::max(type->alignment, static_cast<uint32_t>(number.integer));
  }
  type->alignment = AlignmentOf(type->members, type->alignment);
  SYNCLINE_RETURN_IF_ERROR(SetDepth(*type));
  if (has_body && !name.empty()) SYNCLINE_RETURN_IF_ERROR(Declare("struct " + name, type));
  return type;
}

absl::StatusOr<TypePtr> TypeParser::ParseVariant() {
  std::string name;
  const Token where = tokens_.Peek();
  if (where.kind == TokenKind::kIdentifier) name = tokens_.Take().text;
  std::string tag;
  if (tokens_.TrySymbol("<")) {
    SYNCLINE_ASSIGN_OR_RETURN(tag, tokens_.ExpectPath());
    SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol(">"));
  }
  std::shared_ptr<Type> type;
  if (tokens_.IsSymbol("{")) {
    type = std::make_shared<Type>();
    type->kind = TypeKind::kVariant;
    SYNCLINE_ASSIGN_OR_RETURN(type->members, ParseMembers());
    SYNCLINE_RETURN_IF_ERROR(SetDepth(*type));
    if (!name.empty()) SYNCLINE_RETURN_IF_ERROR(Declare("variant " + name, type));
  } else {
    const TypePtr known = name.empty() ? nullptr : Find("variant " + name);
    if (known == nullptr) {
      return ErrorAt(where, absl::StrCat("unknown type \"variant ", name, "\""));
    }
    type = std::make_shared<Type>(*known);
  }
  if (tag.empty()) return type;
  auto tagged = std::make_shared<Type>(*type);
  tagged->reference = tag;
  return tagged;
}

absl::StatusOr<std::vector<Member>> TypeParser::ParseMembers() {
  std::vector<Member> members;
  std::set<std::string> names;
  SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol("{"));
  PushScope();
  while (!tokens_.TrySymbol("}")) {
    if (tokens_.IsWord("typealias") || tokens_.IsWord("typedef")) {
      SYNCLINE_RETURN_IF_ERROR(ParseTypeDeclaration());
      continue;
    }
    SYNCLINE_ASSIGN_OR_RETURN(const TypePtr type, ParseSpecifier());
    if (tokens_.TrySymbol(";")) continue;  // "struct x { ... };" only declares
    do {
      SYNCLINE_ASSIGN_OR_RETURN(Member member, ParseDeclarator(type));
      if (!names.insert(member.name).second) {
        return tokens_.Error(absl::StrCat("field \"", member.name, "\" is declared twice"));
      }
      members.push_back(std::move(member));
    } while (tokens_.TrySymbol(","));
    SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol(";"));
  }
  PopScope();
  return members;
}

absl::StatusOr<Member> TypeParser::ParseDeclarator(TypePtr type) {
  if (tokens_.IsSymbol("*")) return tokens_.Error("a trace cannot hold pointers");
  Member member;
  SYNCLINE_ASSIGN_OR_RETURN(member.name, tokens_.ExpectName());
  SYNCLINE_ASSIGN_OR_RETURN(member.type, ParseDimensions(std::move(type)));
  return member;
}

// "a[2][n]" is two times n elements: the rightmost dimension is the innermost array.
absl::StatusOr<TypePtr> TypeParser::ParseDimensions(TypePtr element) {
  if (!tokens_.IsSymbol("[")) return element;
  if (depth_ >= kTypeDepthMax) return tokens_.Error("types are nested too deeply");
  tokens_.Take();
  auto array = std::make_shared<Type>();
  if (tokens_.Peek().kind == TokenKind::kInteger) {
    array->kind = TypeKind::kArray;
    array->length = tokens_.Take().integer;
  } else {
    array->kind = TypeKind::kSequence;
    SYNCLINE_ASSIGN_OR_RETURN(array->reference, tokens_.ExpectPath());
  }
  SYNCLINE_RETURN_IF_ERROR(tokens_.ExpectSymbol("]"));
  ++depth_;
  SYNCLINE_ASSIGN_OR_RETURN(array->element, ParseDimensions(std::move(element)));
  --depth_;
  array->alignment = array->element->alignment;
  SYNCLINE_RETURN_IF_ERROR(SetDepth(*array));
  return array;
}

}  // namespace syncline::ctf
