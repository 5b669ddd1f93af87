// SPDX-License-Identifier: Apache-2.0
// The field classes of CTF 2 (CTF2-SPEC-2.0, "Field classes"): JSON -> Type.
//
// What CTF 1.8 has no word for becomes what the decoder knows:
//   boolean, bit array, bit map     an unsigned integer; a bit array of more than 64 bits an array
//                                   of single bits
//   optional                        a variant that may be empty
//   UTF-16 and UTF-32 strings       blobs: text here is UTF-8
//   numbers of 128 bits             arrays of bytes
// Selector ranges stand with a variant's options; field locations become dotted paths that begin
// with CTF 1.8's name of their origin, as layout.h resolves them.
#ifndef SYNCLINE_CTF_CTF2_TYPES_H_
#define SYNCLINE_CTF_CTF2_TYPES_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

using Json = nlohmann::ordered_json;

// Members of JSON objects; nullopt or null when absent or of another kind.
const Json* FindMember(const Json& object, const char* name);
std::optional<uint64_t> FindUnsigned(const Json& object, const char* name);
std::optional<std::string> FindText(const Json& object, const char* name);

class FieldClassParser {
 public:
  // A field class object, or the name of an alias.
  absl::StatusOr<TypePtr> Parse(const Json& json);
  absl::Status AddAlias(const std::string& name, const Json& field_class);

 private:
  using Made = absl::StatusOr<std::shared_ptr<Type>>;
  Made ParseObject(const Json& json, const std::string& kind);
  Made Integer(const Json& json, const std::string& kind);
  Made BitArray(const Json& json, const std::string& kind);
  Made Float(const Json& json);
  Made String(const Json& json, const std::string& kind);
  Made Blob(const Json& json, bool dynamic);
  Made Array(const Json& json, bool dynamic);
  Made Structure(const Json& json);
  Made Variant(const Json& json);
  Made Optional(const Json& json);
  absl::Status Bits(const Json& json, Type& type);
  absl::Status Mappings(const Json& json, Type& type);

  std::map<std::string, TypePtr> aliases_;
  uint32_t depth_ = 0;  // of the JSON being parsed
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_CTF2_TYPES_H_
