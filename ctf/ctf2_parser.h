// SPDX-License-Identifier: Apache-2.0
// Metadata of CTF 2 -> Metadata: a sequence of JSON texts (RFC 7464), each behind a record
// separator, each a fragment: preamble, aliases, trace, clocks, data streams, event records.
//
// Written from CTF2-SPEC-2.0 and from what LTTng's tracers write. No tracer that writes CTF 2, and
// no other reader of it, was at hand: the tests decode CTF 1.8 traces with their metadata put into
// CTF 2's words, and compare.
#ifndef SYNCLINE_CTF_CTF2_PARSER_H_
#define SYNCLINE_CTF_CTF2_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

// True when `text` begins as CTF 2's metadata does, and not as TSDL.
bool IsCtf2(std::string_view text);

// A last fragment that is cut off is left out, with a warning.
absl::StatusOr<Metadata> ParseCtf2(std::string_view text);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_CTF2_PARSER_H_
