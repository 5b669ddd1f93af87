// Texts that somebody else wrote, in UTF-8. Pure.
#ifndef SYNCLINE_COMMON_UTF8_H_
#define SYNCLINE_COMMON_UTF8_H_

#include <cstddef>
#include <string_view>

namespace syncline {

// The first `bytes_max` bytes at most, and no character in part.
inline std::string_view CutText(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace syncline

#endif  // SYNCLINE_COMMON_UTF8_H_
