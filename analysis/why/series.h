// SPDX-License-Identifier: Apache-2.0
// Series with one value a judged step, by names, of recordings that are compared.
//
// Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_WHY_SERIES_H_
#define SYNCLINE_ANALYSIS_WHY_SERIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "analysis/why/statistics.h"

namespace syncline::analysis::why {

// What is named so: `series` is the member of a value of `all` that has one value a step.
template <class Map, class Series>
struct NamedSeries {
  const Map& all;
  uint64_t steps = 0;
  Series Map::mapped_type::*series;

  // Of one that is not there, none of the time.
  Series Of(const typename Map::key_type& name) const {
    const auto found = all.find(name);
    return found == all.end() ? Series(steps) : found->second.*series;
  }
};
template <class Map, class Series>
NamedSeries(const Map&, uint64_t, Series Map::mapped_type::*) -> NamedSeries<Map, Series>;

// All names of both, at most `most` of them: the largest change of the mean first.
template <class Map, class Series>
std::vector<typename Map::key_type> NamesByChange(const NamedSeries<Map, Series>& before,
                                                  const NamedSeries<Map, Series>& now,
                                                  size_t most) {
  using Name = typename Map::key_type;
  std::set<Name> names;
  for (const auto& [name, one] : before.all) names.insert(name);
  for (const auto& [name, one] : now.all) names.insert(name);
  std::vector<std::pair<int64_t, Name>> by_change;
  for (const Name& name : names) {
    const int64_t change_ns = MeanOf(now.Of(name)) - MeanOf(before.Of(name));
    by_change.emplace_back(-std::abs(change_ns), name);
  }
  std::sort(by_change.begin(), by_change.end());
  if (by_change.size() > most) by_change.resize(most);
  std::vector<Name> ordered;
  for (auto& [change_ns, name] : by_change) ordered.push_back(std::move(name));
  return ordered;
}

// Behind the first `steps`, which are filled up with nothing.
template <class T>
void AppendSeries(const std::vector<T>& from, uint64_t steps, std::vector<T>* to) {
  to->resize(steps);
  to->insert(to->end(), from.begin(), from.end());
}

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_SERIES_H_
