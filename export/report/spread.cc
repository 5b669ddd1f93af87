// SPDX-License-Identifier: Apache-2.0
#include "export/report/spread.h"

#include "absl/strings/str_cat.h"
#include "export/report/table.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

constexpr size_t kNameColumns = 40;

bool ByValue(const SpreadValue& a, const SpreadValue& b) { return a.value < b.value; }

std::string RangeText(const std::vector<SpreadValue>& values, size_t from,
                      const SpreadStyle& style) {
  const auto begin = values.begin() + static_cast<ptrdiff_t>(from);
  const auto [least, most] = std::minmax_element(begin, values.end(), ByValue);
  const std::string low = style.text(least->value);
  const std::string high = style.text(most->value);
  return low == high ? low : absl::StrCat(low, " to ", high);
}

// Of a process with a rank, without its command: "worker-0 · rank 1".
std::string ShortName(const std::string& name) {
  constexpr std::string_view kDot = " · ";
  const size_t first = name.find(kDot);
  const size_t second = first == std::string::npos ? first : name.find(kDot, first + kDot.size());
  return Fit(std::string_view(name).substr(0, second), kNameColumns);
}

}  // namespace

std::string SpreadText(std::vector<SpreadValue> values, const SpreadStyle& style) {
  std::stable_sort(values.begin(), values.end(), [&](const SpreadValue& a, const SpreadValue& b) {
    return style.cost(a.value) > style.cost(b.value);
  });
  const size_t named = values.size() <= kNamed ? values.size() : style.named;
  std::string text;
  for (size_t i = 0; i < named; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", values[i].text, " (", ShortName(values[i].name),
                    ")");
  }
  if (named == values.size()) return text;
  const std::string others =
      absl::StrCat(Count(values.size() - named), " others ", RangeText(values, named, style));
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end(), ByValue);
  return absl::StrCat("median ", style.text(middle->value), ", worst ", text, ", ", others);
}

std::string ListText(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNamed; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", ShortName(names[i]));
  }
  if (names.size() > kNamed) absl::StrAppend(&text, " and ", Count(names.size() - kNamed), " more");
  return text;
}

std::string ShownOf(const std::string& title, size_t shown, size_t all) {
  return shown == all ? title : absl::StrCat(title, " (", Count(shown), " of ", Count(all), ")");
}

}  // namespace syncline::report
