// SPDX-License-Identifier: Apache-2.0
// Manners of a program that people read: tables, colours only where they are wanted, and foreign
// text that cannot steer the terminal.
#ifndef SYNCLINE_COORDINATOR_CLI_TERMINAL_H_
#define SYNCLINE_COORDINATOR_CLI_TERMINAL_H_

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::cli {

enum class Style : uint8_t { kBold, kDim, kRed, kYellow, kGreen };

// `text` in `style`, or as it is.
std::string Styled(std::string_view text, Style style, bool colour);

// Control characters (of a hostname, a command line, an agent's message) become "?", and bytes that
// are not UTF-8 U+FFFD.
std::string Printable(std::string_view text);

// Columns of the terminal that standard output is; nullopt: it is none, or too narrow for text.
std::optional<size_t> TerminalWidth();

// Of an answer in sentences, which are hard to read in longer lines than of 100 columns.
size_t AnswerWidth();

// Left-aligned columns, two blanks apart, no trailing blanks.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) { rows_.push_back(std::move(headings)); }
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_TERMINAL_H_
