// SPDX-License-Identifier: Apache-2.0
// What a field of a header is for: told by reserved names in CTF 1.8, by its type in CTF 2.
#ifndef SYNCLINE_CTF_ROLES_H_
#define SYNCLINE_CTF_ROLES_H_

#include <string_view>

#include "ctf/layout.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

// Where a type stands.
struct FieldSpot {
  std::string_view name;
  Scope scope = Scope::kPacketHeader;
  bool at_top = false;  // a member of the scope's own struct
};

// CTF 1.8. Reserved names count where LTTng puts them: at the top of a header, or inside its
// variant. A clock mapping makes a timestamp of any other name.
Role RoleByName(const Type& type, const FieldSpot& spot);

// Whether it stands where packets have their uuid, and cannot be one (CTF 1.8: 16 bytes).
bool IsBrokenUuid(const Type& type, const FieldSpot& spot, bool by_name);

// The reserved name of a role; empty for kNone.
std::string_view ReservedNameOf(Role role);

// CTF 2: the types of headers carry their roles, and one role names three times. LTTng's cpu_id has
// no role and is known by its name.
Role RoleByType(const Type& type, const FieldSpot& spot);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_ROLES_H_
