// SPDX-License-Identifier: Apache-2.0
// The list of what may stay in a redacted pack: names that are public because Syncline, LTTng or
// PyTorch made them, and the words of Syncline's own formats. A text stays when all of it is one of
// these; nothing stays for how it begins or ends. docs/decisions/0017 says why it is done this way.
//
// Thread-safe: immutable after the first call.
#ifndef SYNCLINE_COORDINATOR_PACK_PUBLIC_NAMES_H_
#define SYNCLINE_COORDINATOR_PACK_PUBLIC_NAMES_H_

#include <cstdint>
#include <string_view>

namespace syncline::pack {

// Names of tasks, domains, threads and counters, whole: "aten::addmm", "PyTorch".
bool IsPublicName(std::string_view text);
// Words of a recording's schema that are values: "requested", "itt", "master".
bool IsSchemaWord(std::string_view text);
// What metadata of our traces may say: its keywords, and what our providers call fields. Without
// the "_" that LTTng puts in front.
bool IsTraceWord(std::string_view word);
// Events of our providers: "syncline_itt:task_begin".
bool IsOurEvent(std::string_view name);

// Whether a word (letters, digits and "_") is part of a public name or of a format, so that it says
// nothing when it is found in a pack: "knots", "addmm". No part of a recording's data is asked.
bool IsVocabulary(std::string_view word);

// Names that are given by lists of words, public_operators.cc.
extern const std::string_view kAtenOperators;
extern const std::string_view kC10dOperators;
extern const std::string_view kFunctionalOperators;
extern const std::string_view kMkldnnOperators;
extern const std::string_view kDerivatives;

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_PUBLIC_NAMES_H_
