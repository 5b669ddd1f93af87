// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "common/text_width.h"
#include "common/utf8.h"

namespace syncline::cli {

std::string Styled(std::string_view text, Style style, bool colour) {
  if (!colour) return std::string(text);
  const char* code = "0";
  switch (style) {
    case Style::kBold:
      code = "1";
      break;
    case Style::kDim:
      code = "2";
      break;
    case Style::kRed:
      code = "31";
      break;
    case Style::kGreen:
      code = "32";
      break;
    case Style::kYellow:
      code = "33";
      break;
  }
  return absl::StrCat("\x1b[", code, "m", AbslView(text), "\x1b[0m");
}

std::string Printable(std::string_view text) { return OnlyPrintable(text, '?'); }

std::optional<size_t> TerminalWidth() {
  constexpr size_t kUsable = 60;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < kUsable) return std::nullopt;
  return size.ws_col;
}

size_t AnswerWidth() { return std::min<size_t>(TerminalWidth().value_or(80), 100); }

void Table::Print(std::ostream& out) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - DisplayWidth(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

}  // namespace syncline::cli
