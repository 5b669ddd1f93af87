// SPDX-License-Identifier: Apache-2.0
// What the report for a terminal is printed on: headings, labelled lines, sentences that wrap at
// the terminal's width, tables.
//
// Names come from the traced program: control characters in them never reach the terminal.
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_REPORT_PAGE_H_
#define SYNCLINE_EXPORT_REPORT_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/report.h"
#include "export/report/table.h"

namespace syncline::report {

class Page {
 public:
  static constexpr size_t kIndent = 2;

  // `report` outlives the page.
  Page(const analysis::Report& report, size_t width, bool color);

  const analysis::Report& report() const { return report_; }
  int64_t window_ns() const { return report_.window_end.ns - report_.window_begin.ns; }
  size_t width() const { return width_; }
  // The node with which the others are compared.
  std::string reference() const {
    return report_.reference.empty() ? "the reference node" : report_.reference;
  }

  // A title, with a blank line before it unless it is the first line.
  void Heading(std::string_view text);
  // One line of the short report, "Losses        none". An empty label continues the line above.
  void Item(std::string_view label, std::string_view text);
  void Line(std::string_view text);
  // Details of the table's row above.
  void Below(std::string_view text);
  void Warn(std::string_view text);
  void Print(const Table& table);
  // A table of the short report, whose first column is headed by `title`: that line is the heading.
  void PrintBelow(std::string_view title, const Table& table);
  // Lines that are already indented, as other texts of the report are made.
  void Raw(std::string_view lines);

  std::string Take() { return std::move(out_); }

 private:
  // Words of `text` behind `begin`; further lines are indented by `hanging` columns.
  void Wrap(std::string_view begin, size_t hanging, std::string_view text);

  const analysis::Report& report_;
  const size_t width_;
  const bool color_;
  bool in_table_ = false;  // a labelled line that follows a table needs a blank line
  std::string out_;
};

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_PAGE_H_
