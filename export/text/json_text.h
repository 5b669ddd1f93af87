// SPDX-License-Identifier: Apache-2.0
// Pieces of JSON: strings and numbers of which no byte and no digit is lost.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_TEXT_JSON_TEXT_H_
#define SYNCLINE_EXPORT_TEXT_JSON_TEXT_H_

#include <string>
#include <string_view>

namespace syncline::text {

// Whether the byte stands for itself in a JSON string.
inline bool IsPlain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD, and control
// characters are written as escapes.
void AppendJsonString(std::string_view text, std::string* out);
// The shortest digits that read back as the same number; what is no number becomes a string.
void AppendJsonReal(double value, std::string* out);

}  // namespace syncline::text

#endif  // SYNCLINE_EXPORT_TEXT_JSON_TEXT_H_
