// SPDX-License-Identifier: Apache-2.0
#include "analysis/optimizer_steps.h"

#include <algorithm>

namespace syncline::analysis {

bool OptimizerSteps::Is(std::string_view name) {
  return name.starts_with("Optimizer.step#") && name.ends_with(".step");
}

void OptimizerSteps::Add(const timeline::Span& span, bool whole) {
  const auto [entry, inserted] = series_.try_emplace({span.track, span.category, span.name});
  Ends& ends = entry->second;
  ends.depth = inserted ? span.depth : std::min(ends.depth, span.depth);
  ends.ends.push_back({span.end, span.node_end, whole});
}

std::vector<OptimizerSteps::Series> OptimizerSteps::Take(const Known& known) const {
  std::vector<Series> all;
  for (const auto& [key, found] : series_) {
    Series series{key.track, key.name, found.depth, {}};
    std::vector<End> ends = found.ends;
    std::stable_sort(ends.begin(), ends.end(),
                     [](const End& a, const End& b) { return a.time < b.time; });
    for (size_t i = 1; i < ends.size(); ++i) {
      const End& from = ends[i - 1];
      const End& to = ends[i];
      if (!from.whole || !to.whole || !known(key.track, {from.time, to.time})) continue;
      series.steps.push_back({from.node_time, to.node_time, from.time, to.time, ""});
    }
    if (!series.steps.empty()) all.push_back(std::move(series));
  }
  return all;
}

}  // namespace syncline::analysis
