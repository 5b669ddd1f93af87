// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_side.h"

#include "analysis/why/compared_sides.h"
#include "analysis/why/cut_path.h"
#include "analysis/why/cut_steps.h"
#include "analysis/why/cut_times.h"
#include "analysis/why/series.h"

namespace syncline::analysis::why {
namespace {

using Series = std::vector<int64_t>;

void TakeTimes(const CutInput& input, const CutSteps& found, CutSide* side) {
  CutTimes times = CutTimesOf(input, found.judged);
  const auto task = [&](size_t partition) { return input.partitions[partition].task; };
  side->step_ns = std::move(times.steps);
  side->tensors_ns = std::move(times.tensors);
  side->between_ns = std::move(times.between);
  for (size_t p = 0; p < input.partitions.size(); ++p) {
    Series& series = side->partitions[task(p)];
    series = std::move(times.partitions[p]);
    series.resize(side->steps());  // of one that is never on the path
  }
  for (const CutEdge& edge : input.edges) {
    side->all_tensors.insert({edge.tensor, task(edge.from), task(edge.to)});
  }
  for (auto& [edge, series] : times.edges) {
    const CutEdge& one = input.edges[edge];
    side->tensors[{one.tensor, task(one.from), task(one.to)}] = {std::move(series),
                                                                 times.clocks.at(edge)};
  }
  for (const auto& [key, calls] : found.operators) {
    CutSide::Operator& one = side->operators[{task(key.first), input.names[key.second]}];
    one.calls += calls * side->steps();
    one.path_ns.resize(side->steps());
  }
  for (auto& [key, series] : times.operators) {
    side->operators[{task(key.first), input.names[key.second]}].path_ns = std::move(series);
  }
}

void Add(const CutSide& side, CutSide* pooled) {
  const uint64_t steps = pooled->steps();
  AppendSeries(side.step_ns, steps, &pooled->step_ns);
  AppendSeries(side.tensors_ns, steps, &pooled->tensors_ns);
  AppendSeries(side.between_ns, steps, &pooled->between_ns);
  for (const auto& [task, series] : side.partitions) {
    AppendSeries(series, steps, &pooled->partitions[task]);
  }
  for (const auto& [name, one] : side.tensors) {
    CutSide::Tensor& tensor = pooled->tensors[name];
    AppendSeries(one.path_ns, steps, &tensor.path_ns);
    if (!one.clock_ns.has_value()) tensor.clock_ns.reset();
    if (tensor.clock_ns.has_value()) *tensor.clock_ns += *one.clock_ns;
  }
  for (const auto& [name, one] : side.operators) {
    CutSide::Operator& made = pooled->operators[name];
    AppendSeries(one.path_ns, steps, &made.path_ns);
    made.calls += one.calls;
  }
  pooled->window_ns += side.window_ns;
  pooled->incomplete = pooled->incomplete || side.incomplete;
  AddLost(side.lost_events, &pooled->lost_events);
}

}  // namespace

CutSide CutSideOf(const CutInput& input) {
  const CutPaths paths(input);
  const CutSteps found = CutStepsOf(input, paths);
  CutSide side;
  side.refusal = found.refusal;
  side.refusal_text = found.refusal_text;
  if (side.refusal == CutRefusal::kNone) TakeTimes(input, found, &side);
  return side;
}

CutSide Pooled(std::span<const CutSide> sides) {
  CutSide pooled = sides.front();
  for (const CutSide& side : sides.subspan(1)) Add(side, &pooled);
  for (auto& [name, one] : pooled.tensors) one.path_ns.resize(pooled.steps());
  for (auto& [name, one] : pooled.operators) one.path_ns.resize(pooled.steps());
  return pooled;
}

}  // namespace syncline::analysis::why
