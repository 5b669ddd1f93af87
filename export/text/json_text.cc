#include "export/text/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/str_format.h"

namespace syncline::text {

size_t Utf8Length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  if (length == 3) {  // overlong forms and surrogates
    const auto second = static_cast<unsigned char>(text[1]);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0)) return 0;
  }
  if (length == 4) {
    const auto second = static_cast<unsigned char>(text[1]);
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) return 0;
  }
  return length;
}

bool IsControl(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first != 0xc2 || text.size() < 2) return first < 0x20 || first == 0x7f;
  const auto second = static_cast<unsigned char>(text[1]);
  return second >= 0x80 && second < 0xa0;
}

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain])) ++plain;
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char c = text.front();
    const size_t length = Utf8Length(text);
    if (length == 0) {
      out->append(kReplacement);
      text.remove_prefix(1);
      continue;
    }
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '\t') {
      out->append("\\t");
    } else if (IsControl(text)) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned char>(text[length - 1]));
    } else {
      out->append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  out->push_back('"');
}

void AppendJsonReal(double value, std::string* out) {
  if (!std::isfinite(value)) {  // JSON has no word for it
    out->append(std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
    return;
  }
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out->append(digits.data(), end.ptr);
}

}  // namespace syncline::text
