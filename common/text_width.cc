// SPDX-License-Identifier: Apache-2.0
#include "common/text_width.h"

#include <algorithm>

#include "common/utf8.h"

namespace syncline {
namespace {

// The longest start of `text` that takes at most `columns`.
size_t BytesOf(std::string_view text, size_t columns) {
  size_t bytes = 0;
  for (size_t used = 0; bytes < text.size() && used < columns; ++used) {
    bytes += std::max<size_t>(1, Utf8Length(text.substr(bytes)));
  }
  return bytes;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  // Continuation bytes take no column.
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string Wrap(std::string_view begin, std::span<const std::string> words,
                 const WrapOptions& options) {
  std::string lines(begin);
  size_t used = DisplayWidth(begin);
  bool first = true;  // no word is on the line yet
  const auto end_line = [&] {
    lines += '\n';
    lines.append(options.hanging, ' ');
    used = options.hanging;
    first = true;
  };
  for (std::string_view word : words) {
    if (!first && used + 1 + DisplayWidth(word) > options.width) end_line();
    while (options.break_words && used + DisplayWidth(word) > options.width) {
      const size_t bytes = BytesOf(word, std::max(options.width, used) - used);
      lines += word.substr(0, bytes);
      word.remove_prefix(bytes);
      end_line();
    }
    if (!first) lines += ' ';
    used += DisplayWidth(word) + (first ? 0 : 1);
    lines += word;
    first = false;
  }
  lines += '\n';
  return lines;
}

}  // namespace syncline
