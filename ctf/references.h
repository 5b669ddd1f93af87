// SPDX-License-Identifier: Apache-2.0
// Absolute references from one field to another: a scope's name and a path in it (CTF 1.8, section
// 7.3.2; what CTF 2's field locations become).
#ifndef SYNCLINE_CTF_REFERENCES_H_
#define SYNCLINE_CTF_REFERENCES_H_

#include <optional>
#include <string_view>

#include "ctf/layout.h"

namespace syncline::ctf {

struct ScopePrefix {
  std::string_view text;  // "event.fields."
  Scope scope;
};

// nullopt: the reference is relative.
inline std::optional<ScopePrefix> ScopePrefixOf(std::string_view reference) {
  static constexpr ScopePrefix kPrefixes[] = {
      {"trace.packet.header.", Scope::kPacketHeader},
      {"stream.packet.context.", Scope::kPacketContext},
      {"stream.event.header.", Scope::kEventHeader},
      {"stream.event.context.", Scope::kStreamContext},
      {"event.context.", Scope::kEventContext},
      {"event.fields.", Scope::kPayload},
  };
  for (const ScopePrefix& prefix : kPrefixes) {
    if (reference.starts_with(prefix.text)) return prefix;
  }
  return std::nullopt;
}

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_REFERENCES_H_
