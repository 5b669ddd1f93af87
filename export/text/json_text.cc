// SPDX-License-Identifier: Apache-2.0
#include "export/text/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/str_format.h"
#include "common/utf8.h"

namespace syncline::text {

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
