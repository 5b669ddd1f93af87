// SPDX-License-Identifier: Apache-2.0
// TSDL text (CTF 1.8) -> Metadata.
#ifndef SYNCLINE_CTF_TSDL_PARSER_H_
#define SYNCLINE_CTF_TSDL_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

struct TsdlOptions {
  // The text may be damaged, or end too early: keep what can be read, with a warning of what
  // cannot.
  bool tolerate_damage = false;
};

absl::StatusOr<Metadata> ParseTsdl(std::string_view text, TsdlOptions options = {});

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_TSDL_PARSER_H_
