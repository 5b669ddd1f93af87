// SPDX-License-Identifier: Apache-2.0
// How wide a text is on a terminal, and where its lines break. Pure.
#ifndef SYNCLINE_COMMON_TEXT_WIDTH_H_
#define SYNCLINE_COMMON_TEXT_WIDTH_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace syncline {

// Columns that a terminal needs for `text`, one per code point (no wide or combining characters).
size_t DisplayWidth(std::string_view text);

struct WrapOptions {
  size_t width = 0;
  size_t hanging = 0;  // blanks before all lines but the first; fewer than `width`
  // A word that is wider than a line goes on in the next one; else it sticks out.
  bool break_words = false;
};

// Lines of `words` behind `begin`, each ended by a newline.
std::string Wrap(std::string_view begin, std::span<const std::string> words,
                 const WrapOptions& options);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_TEXT_WIDTH_H_
