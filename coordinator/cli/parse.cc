// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/parse.h"

#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/text.h"

namespace syncline::cli {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kTimeUnits[] = {{"ns", 1},  {"us", 1e3},   {"µs", 1e3}, {"ms", 1e6},
                               {"s", 1e9}, {"min", 60e9}, {"m", 60e9}, {"h", 3600e9}};
constexpr Unit kSizeUnits[] = {{"", 1},
                               {"B", 1},
                               {"K", 1024.0},
                               {"M", 1048576.0},
                               {"G", 1073741824.0},
                               {"T", 1099511627776.0}};

// Splits "1.5GiB" at the end of the number; false when there is no number.
bool SplitNumber(std::string_view text, long double* number, std::string_view* unit) {
  size_t end = 0;
  while (end < text.size() && (absl::ascii_isdigit(text[end]) || text[end] == '.')) ++end;
  *unit = text.substr(end);
  const auto [rest, error] = std::from_chars(text.data(), text.data() + end, *number);
  return error == std::errc() && rest == text.data() + end;
}

}  // namespace

absl::StatusOr<int64_t> ParseDuration(std::string_view text) {
  long double number = 0;
  std::string_view name;
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", AbslView(text), "\" is not a duration: ", AbslView(why)));
  };
  if (!SplitNumber(text, &number, &name)) return refuse("write 500ms, 10s or 2m");
  if (name.empty()) {
    return refuse(absl::StrCat("its unit is missing, e.g. ", AbslView(text), "s"));
  }
  for (const Unit& unit : kTimeUnits) {
    if (name != unit.name) continue;
    const long double ns = number * unit.factor;
    if (ns > 1e18) return refuse("that is longer than thirty years");
    return static_cast<int64_t>(std::llround(ns));
  }
  return refuse("the unit is ns, us, ms, s, min (or m) or h");
}

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  long double number = 0;
  std::string_view name;
  const auto refuse = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", AbslView(text), "\" is not a size: write 4096, 512M or 2G"));
  };
  if (!SplitNumber(text, &number, &name)) return refuse();
  if (name.size() > 2 && name.substr(1) == "iB") name = name.substr(0, 1);
  if (name.size() == 2 && name[1] == 'B') name = name.substr(0, 1);
  const bool small = name.size() == 1 && name[0] >= 'a' && name[0] <= 'z';
  const std::string upper(name.size(), small ? static_cast<char>(name[0] - 'a' + 'A') : '\0');
  for (const Unit& unit : kSizeUnits) {
    if ((small ? std::string_view(upper) : name) != unit.name) continue;
    const long double bytes = number * unit.factor;
    if (bytes > 1e18) return refuse();
    return static_cast<uint64_t>(std::llround(bytes));
  }
  return refuse();
}

std::string FormatSize(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

}  // namespace syncline::cli
