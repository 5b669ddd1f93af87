// SPDX-License-Identifier: Apache-2.0
// The part of TSDL that describes types: specifiers, declarators, named types and their scopes.
//
// Names live in nested scopes (root, a block, a struct's body); an inner one hides an outer one.
// What is parsed is a tree of `Type`; references (variant tags, sequence lengths) stay text here
// and are resolved when the tree is laid out (layout.h), because only then is it known where the
// type stands.
#ifndef SYNCLINE_CTF_TSDL_TYPES_H_
#define SYNCLINE_CTF_TSDL_TYPES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ctf/metadata.h"
#include "ctf/tsdl_lexer.h"

namespace syncline::ctf {

// The right side of "key = value;".
struct TsdlValue {
  enum class Kind : uint8_t { kInteger, kText, kPath } kind = Kind::kInteger;
  uint64_t magnitude = 0;
  bool negative = false;
  std::string text;

  int64_t AsSigned() const { return static_cast<int64_t>(negative ? 0 - magnitude : magnitude); }
  std::string AsText() const;
};

class TypeParser {
 public:
  explicit TypeParser(TokenCursor& tokens) : tokens_(tokens) { PushScope(); }

  void PushScope() { scopes_.emplace_back(); }
  void PopScope() { scopes_.pop_back(); }
  void LeaveScopes() { scopes_.resize(1); }

  // True when the next statement declares a type: typedef, typealias, or a struct, enum or variant.
  bool AtTypeDeclaration() const;
  absl::Status ParseTypeDeclaration();

  absl::StatusOr<TypePtr> ParseSpecifier();
  absl::StatusOr<TsdlValue> ParseValue();

  // Told of an attribute that nobody here knows: it may say how something is to be read.
  void NoteUnknown(std::string_view what, std::string_view key) {
    unknown_.insert(std::string(what) + " has \"" + std::string(key) + "\"");
  }
  // Each kind once.
  const std::set<std::string>& unknown() const { return unknown_; }

 private:
  struct Scope {
    std::map<std::string, TypePtr>
        aliases;  // "unsigned long", "uint8_t", "struct x", "enum x", ...
  };
  struct Attribute {
    std::string key;
    TsdlValue value;
    Token where;
  };

  TypePtr Find(const std::string& name) const;
  absl::Status Declare(const std::string& name, TypePtr type);
  absl::StatusOr<std::string> ParseAliasName();
  absl::StatusOr<std::vector<Attribute>> ParseAttributes();
  absl::StatusOr<TypePtr> ParseInteger();
  absl::Status ApplyInteger(const Attribute& attribute, std::string_view what, Type& type,
                            bool& aligned);
  absl::StatusOr<TypePtr> ParseFloat();
  absl::StatusOr<TypePtr> ParseString();
  absl::StatusOr<TypePtr> ParseEnum();
  absl::Status ParseMappings(Type& type);
  absl::StatusOr<uint64_t> ParseEnumBound(bool is_signed);
  absl::StatusOr<TypePtr> ParseStruct();
  absl::StatusOr<TypePtr> ParseVariant();
  absl::StatusOr<std::vector<Member>> ParseMembers();
  absl::StatusOr<Member> ParseDeclarator(TypePtr type);
  absl::StatusOr<TypePtr> ParseDimensions(TypePtr element);
  absl::Status SetDepth(Type& type) const;
  absl::StatusOr<TypePtr> ParseNamedType();
  absl::Status ErrorAt(const Token& token, std::string_view message) const;

  TokenCursor& tokens_;
  std::vector<Scope> scopes_;
  std::set<std::string> unknown_;
  uint32_t depth_ = 0;
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_TSDL_TYPES_H_
