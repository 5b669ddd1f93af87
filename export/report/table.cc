// SPDX-License-Identifier: Apache-2.0
#include "export/report/table.h"

#include <algorithm>

namespace syncline::report {
namespace {

constexpr size_t kGap = 2;

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }));
}

std::string Fit(std::string_view text, size_t width) {
  std::string out;
  const size_t whole = DisplayWidth(text);
  const size_t keep = whole > width && width > 0 ? width - 1 : width;
  size_t columns = 0;
  for (const char c : text) {
    if (!Continues(c) && ++columns > keep) break;
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(byte < 0x20 || byte == 0x7f ? '?' : c);
  }
  if (whole > width && width > 0) out += "…";
  return out;
}

Table::Column Table::Names(const std::string& title) {
  Column column{title, Align::kLeft, true};
  column.width_least = std::max(column.width_least, DisplayWidth(title));
  return column;
}

std::string Table::Format(size_t width, size_t indent) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(DisplayWidth(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  size_t total = indent + kGap * (columns_.size() - 1);
  for (const size_t column : widths) total += column;
  for (size_t i = 0; i < columns_.size() && total > width; ++i) {
    if (!columns_[i].shrinks || widths[i] <= columns_[i].width_least) continue;
    const size_t less = std::min(total - width, widths[i] - columns_[i].width_least);
    widths[i] -= less;
    total -= less;
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text(indent, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) text.append(kGap, ' ');
      const std::string fitted = Fit(cell(i), widths[i]);
      const std::string blanks(widths[i] - std::min(widths[i], DisplayWidth(fitted)), ' ');
      text += columns_[i].align == Align::kRight ? blanks + fitted : fitted + blanks;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) {
    line([&](size_t i) -> const std::string& { return row[i]; });
  }
  return out;
}

}  // namespace syncline::report
