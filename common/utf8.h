// SPDX-License-Identifier: Apache-2.0
// Texts that somebody else wrote, in UTF-8. Pure.
//
// An argument, a thread's name, a file's name is any bytes; one that was cut may end inside a
// character. A message, a journal and JSON hold UTF-8 only. So each byte that is none becomes
// U+FFFD, here, where a text enters one of them, and nowhere else otherwise; bytes of traces and
// control blocks stay as they are.
#ifndef SYNCLINE_COMMON_UTF8_H_
#define SYNCLINE_COMMON_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace syncline {

// The first `bytes_max` bytes at most, and no character in part.
inline std::string_view CutText(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

// U+FFFD, for bytes that are not UTF-8.
inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The length in bytes of the UTF-8 sequence at the start of `text`, which is not empty; 0: it is
// none.
size_t Utf8Length(std::string_view text);

// `text` with U+FFFD for each byte that is not UTF-8.
std::string RepairedUtf8(std::string_view text);

// Whether `text`, which is not empty, begins with a control character: C0, DEL or, in UTF-8, C1.
// A terminal may obey them.
bool IsControl(std::string_view text);

// `text` with `control` for each control character and U+FFFD for each byte that is not UTF-8.
std::string OnlyPrintable(std::string_view text, char control);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_UTF8_H_
