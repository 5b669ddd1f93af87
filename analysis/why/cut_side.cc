// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_side.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "analysis/why/compared_sides.h"
#include "analysis/why/cut_path.h"
#include "analysis/why/cut_steps.h"
#include "analysis/why/cut_times.h"
#include "analysis/why/series.h"

namespace syncline::analysis::why {
namespace {

using Series = std::vector<int64_t>;

// "MaxPool2d" of "edge_13_MaxPool2d".
std::string WithoutNumber(const std::string& tensor) {
  absl::string_view name = tensor;
  if (!absl::ConsumePrefix(&name, "edge_")) return tensor;
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  name.remove_prefix(digits);
  if (digits == 0 || !absl::ConsumePrefix(&name, "_") || name.empty()) return tensor;
  return std::string(name);
}

// Of all edges, by which those of two recordings are matched.
std::vector<std::string> TensorNames(const CutInput& input) {
  std::map<std::tuple<std::string, size_t, size_t>, size_t> counts;
  for (const CutEdge& edge : input.edges) {
    ++counts[{WithoutNumber(edge.tensor), edge.from, edge.to}];
  }
  std::vector<std::string> names;
  for (const CutEdge& edge : input.edges) {
    const std::string name = WithoutNumber(edge.tensor);
    names.push_back(counts[{name, edge.from, edge.to}] == 1 ? name : edge.tensor);
  }
  return names;
}

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
  const std::vector<std::string> names = TensorNames(input);
  for (auto& [edge, series] : times.edges) {
    const CutEdge& one = input.edges[edge];
    side->tensors[{names[edge], task(one.from), task(one.to)}] = {one.tensor, std::move(series),
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
    tensor.full_name = one.full_name;
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
