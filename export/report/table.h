// SPDX-License-Identifier: Apache-2.0
// Text in columns, for terminals. Widths count characters, not bytes.
#ifndef SYNCLINE_EXPORT_REPORT_TABLE_H_
#define SYNCLINE_EXPORT_REPORT_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace syncline::report {

// At most `width` columns, the last one "…" when something was cut. Control characters become "?":
// names come from the traced program and must not steer the terminal.
std::string Fit(std::string_view text, size_t width);
// The same, with "…" in the middle: of names that begin alike the ends tell which is which.
std::string FitMiddle(std::string_view text, size_t width);

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool shrinks = false;     // gives way when the table is too wide, but never so far that two
                              // of its cells that differ look the same
    size_t width_least = 12;  // that a column which gives way keeps
  };
  // Of names: gives way, but not so far that its title is cut.
  static Column Names(const std::string& title);

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Each line ends with a newline and begins with `indent` blanks.
  std::string Format(size_t width, size_t indent) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_TABLE_H_
