// SPDX-License-Identifier: Apache-2.0
#include "export/report/table.h"

#include <algorithm>
#include <set>

#include "common/text_width.h"

namespace syncline::report {
namespace {

constexpr size_t kGap = 2;

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

using Cells = std::vector<std::string>;

Cells FitAll(const Cells& cells, size_t width,
             std::string (*fit)(std::string_view text, size_t width)) {
  Cells fitted;
  for (const std::string& cell : cells) fitted.push_back(fit(cell, width));
  return fitted;
}

size_t Kinds(const Cells& cells) {
  return std::set<std::string>(cells.begin(), cells.end()).size();
}

// `cells` in `*width` columns, or in the fewest more in which those that differ look different.
Cells FitDistinct(const Cells& cells, size_t* width) {
  size_t enough = *width;
  for (const std::string& cell : cells) enough = std::max(enough, DisplayWidth(cell));
  const size_t kinds = Kinds(FitAll(cells, enough, Fit));
  Cells fitted = FitAll(cells, *width, Fit);
  if (Kinds(fitted) == kinds) return fitted;
  for (size_t least = *width; least < enough;) {
    *width = least + (enough - least) / 2;
    if (Kinds(FitAll(cells, *width, FitMiddle)) == kinds) {
      enough = *width;
    } else {
      least = *width + 1;
    }
  }
  *width = enough;
  return FitAll(cells, enough, FitMiddle);
}

}  // namespace

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

std::string FitMiddle(std::string_view text, size_t width) {
  const size_t whole = DisplayWidth(text);
  if (whole <= width || width < 3) return Fit(text, width);
  const size_t tail = (width - 1) / 2;
  size_t at = text.size();
  for (size_t columns = 0; columns < tail; columns += Continues(text[at]) ? 0 : 1) --at;
  std::string out = Fit(text, width - tail);  // its last column is the "…"
  return out + Fit(text.substr(at), tail);
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
  auto rows = rows_;
  size_t total = indent + kGap * (columns_.size() - 1);
  for (const size_t column : widths) total += column;
  for (size_t i = 0; i < columns_.size() && total > width; ++i) {
    if (!columns_[i].shrinks || widths[i] <= columns_[i].width_least) continue;
    const size_t before = widths[i];
    widths[i] -= std::min(total - width, widths[i] - columns_[i].width_least);
    Cells cells;
    for (const auto& row : rows_) cells.push_back(row[i]);
    cells = FitDistinct(cells, &widths[i]);
    for (size_t row = 0; row < rows.size(); ++row) rows[row][i] = std::move(cells[row]);
    total -= before - widths[i];
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
  for (const auto& row : rows) {
    line([&](size_t i) -> const std::string& { return row[i]; });
  }
  return out;
}

}  // namespace syncline::report
