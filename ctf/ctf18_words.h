// SPDX-License-Identifier: Apache-2.0
// Metadata of CTF 2 said in CTF 1.8's words: the bytes of the streams stay what they are.
//
//   CTF 2                                     CTF 1.8
//   a role of a header's field                its reserved name
//   the stream's default clock                a mapping of each timestamp to it
//   ranges that select a variant's option     labels of an enum that is the tag
//   a name                                    "_" before it, so that no keyword is in the way
//   a blob                                    an array of bytes
//
// What CTF 1.8 has no words for is Unimplemented: LEB128, reversed bits, optionals, strings of
// UTF-16 and UTF-32, arrays that are aligned more than their elements, names that are no
// identifiers, tags that lie outside of their variant's scope, or in a struct that does
// not hold the variant, or that two variants read in different ways.
#ifndef SYNCLINE_CTF_CTF18_WORDS_H_
#define SYNCLINE_CTF_CTF18_WORDS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

// What is in CTF 1.8's words already comes back as it is.
absl::StatusOr<std::shared_ptr<const Metadata>> InCtf18Words(
    std::shared_ptr<const Metadata> metadata);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_CTF18_WORDS_H_
