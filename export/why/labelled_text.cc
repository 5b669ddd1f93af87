// SPDX-License-Identifier: Apache-2.0
#include "export/why/labelled_text.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "common/text_width.h"
#include "export/report/words.h"

namespace syncline::report {
namespace {

constexpr size_t kLabel = 8;      // columns of "LATE    "
constexpr size_t kHanging = 2;    // of lines without a label
constexpr size_t kWidthMin = 40;  // narrower terminals wrap by themselves

}  // namespace

LabelledText::LabelledText(size_t width, bool color)
    : width_(std::max(width, kWidthMin)), color_(color) {}

void LabelledText::Say(std::string_view label, const std::vector<std::string>& paragraphs) {
  std::string begin(label);
  begin.resize(std::max(kLabel, begin.size() + 1), ' ');
  for (const std::string& paragraph : paragraphs) {
    const size_t at = out_.size();
    Wrap(begin, kLabel, paragraph);
    if (color_ && begin[0] != ' ') {
      out_.insert(at + label.size(), "\033[0m");
      out_.insert(at, "\033[1m");
    }
    begin.assign(kLabel, ' ');
  }
}

void LabelledText::Line(const std::string& text) { Wrap("", kHanging, text); }

void LabelledText::Indented(const std::string& text) {
  Wrap(std::string(kHanging, ' '), kHanging, text);
}

// Lines of at most the terminal's width; all but the first are indented by `hanging`. A word that
// is wider than that is broken.
void LabelledText::Wrap(const std::string& begin, size_t hanging, const std::string& text) {
  out_ += syncline::Wrap(begin, WordsOf(text),
                         {.width = width_, .hanging = hanging, .break_words = true});
}

std::string Tenths(int64_t tenths) {
  return absl::StrFormat("%s%d.%d", tenths < 0 ? "-" : "", std::abs(tenths) / 10,
                         std::abs(tenths) % 10);
}

}  // namespace syncline::report
