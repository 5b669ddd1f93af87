// SPDX-License-Identifier: Apache-2.0
// Many values in a line or two: all of a few; of a fleet's the median, the outliers, and the range
// of the others.
//
// "median ± 3.1 µs, worst ± 48 µs (n7), ± 12 µs (n2), ± 11 µs (n5), 997 others ± 870 ns to ± 4.2
// µs". The median is that of all. Each number is one of the values, so that a reader finds it
// again. Pure.
#ifndef SYNCLINE_EXPORT_REPORT_SPREAD_H_
#define SYNCLINE_EXPORT_REPORT_SPREAD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace syncline::report {

struct SpreadValue {
  std::string name;
  int64_t value = 0;
  std::string text;  // of this value, with its bound, say
};

inline constexpr size_t kNamed = 3;  // so many are named

struct SpreadStyle {
  std::string (*text)(int64_t value);  // of the ends of the range, and of the median
  // How bad a value is; the worst stand first.
  std::function<int64_t(int64_t value)> cost = [](int64_t value) { return value; };
  size_t named = kNamed;  // where there are more than kNamed
};

std::string SpreadText(std::vector<SpreadValue> values, const SpreadStyle& style);

// "a, b, c and 997 more".
std::string ListText(const std::vector<std::string>& names);

// Heads a table of the short report: "Steps (3 of 64)", or "Steps" where all are shown.
std::string ShownOf(const std::string& title, size_t shown, size_t all);

// Pointers to `rows`, those with the largest cost first; of equal cost in the order of `rows`.
template <class Row, class Cost>
std::vector<const Row*> Ranked(const std::vector<Row>& rows, Cost cost) {
  std::vector<const Row*> ranked;
  for (const Row& row : rows) ranked.push_back(&row);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const Row* a, const Row* b) { return cost(*a) > cost(*b); });
  return ranked;
}

// The first of them.
template <class Row>
std::vector<const Row*> First(std::vector<const Row*> ranked, size_t count) {
  ranked.resize(std::min(ranked.size(), count));
  return ranked;
}

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_SPREAD_H_
