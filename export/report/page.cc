// SPDX-License-Identifier: Apache-2.0
#include "export/report/page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "common/text_width.h"
#include "export/report/words.h"

namespace syncline::report {
namespace {

constexpr size_t kLabel = 14;      // columns of "Clock events  "
constexpr size_t kWidthMin = 40;   // narrower terminals wrap by themselves
constexpr size_t kTextMax = 1000;  // columns of one sentence
constexpr char kBold[] = "\x1b[1m";
constexpr char kYellow[] = "\x1b[33m";
constexpr char kPlain[] = "\x1b[0m";

}  // namespace

Page::Page(const analysis::Report& report, size_t width, bool color)
    : report_(report), width_(std::max(width, kWidthMin)), color_(color) {}

void Page::Heading(std::string_view text) {
  absl::StrAppend(&out_, out_.empty() ? "" : "\n", color_ ? kBold : "", Fit(text, kTextMax),
                  color_ ? kPlain : "", "\n");
  in_table_ = false;
}

void Page::Item(std::string_view label, std::string_view text) {
  if (in_table_) out_ += "\n";
  in_table_ = false;
  std::string begin(label);
  begin.resize(std::max(kLabel, begin.size()), ' ');
  const size_t at = out_.size();
  Wrap(begin, kLabel, text);
  if (!color_ || label.empty()) return;
  out_.insert(at + label.size(), kPlain);
  out_.insert(at, kBold);
}

void Page::Line(std::string_view text) { Wrap(std::string(kIndent, ' '), kIndent, text); }

void Page::Below(std::string_view text) {
  constexpr size_t kDetailIndent = kIndent + 4;
  Wrap(std::string(kDetailIndent, ' '), kDetailIndent, text);
}

void Page::Warn(std::string_view text) {
  const size_t at = out_.size();
  Wrap(std::string(kIndent, ' ') + "! ", kIndent + 2, text);
  if (!color_) return;
  out_.insert(out_.size() - 1, kPlain);
  out_.insert(at, kYellow);
}

void Page::Print(const Table& table) { Raw(table.Format(width_, kIndent)); }

void Page::PrintBelow(std::string_view title, const Table& table) {
  std::string lines = table.Format(width_, kIndent);
  // The title stands at the margin, the other columns' where they were.
  if (lines.compare(kIndent, title.size(), title.data(), title.size()) == 0) {
    lines.insert(kIndent + title.size(), kIndent, ' ');
    lines.erase(0, kIndent);
    if (color_) lines.insert(title.size(), kPlain).insert(0, kBold);
  }
  absl::StrAppend(&out_, out_.empty() ? "" : "\n", lines);
  in_table_ = true;
}

void Page::Raw(std::string_view lines) {
  absl::StrAppend(&out_, AbslView(lines));
  in_table_ = true;
}

void Page::Wrap(std::string_view begin, size_t hanging, std::string_view text) {
  out_ +=
      syncline::Wrap(begin, WordsOf(Fit(text, kTextMax)), {.width = width_, .hanging = hanging});
}

}  // namespace syncline::report
