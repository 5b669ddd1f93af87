// SPDX-License-Identifier: Apache-2.0
// Metadata written out as TSDL, the language of CTF 1.8: for traces that we write.
#ifndef SYNCLINE_CTF_TSDL_WRITER_H_
#define SYNCLINE_CTF_TSDL_WRITER_H_

#include <string>

#include "absl/status/statusor.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

// The whole text, plain (not in packets), with every type spelled out where it stands. What it says
// is what ParseMetadata() reads from it again. Unimplemented for what CTF 1.8 has no words for:
// blobs, reversed bits, roles that do not go by name (see ctf18_words.h).
absl::StatusOr<std::string> WriteTsdl(const Metadata& metadata);

// As metadata writes them: 8-4-4-4-12 hexadecimal digits.
std::string UuidText(const Uuid& uuid);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_TSDL_WRITER_H_
