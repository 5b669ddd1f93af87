// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_comparison.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "analysis/why/series.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kRowsMax = 32;

using Series = std::vector<int64_t>;

void AddTo(const Series& series, Series* sums) {
  sums->resize(series.size());
  for (size_t i = 0; i < series.size(); ++i) (*sums)[i] += series[i];
}

Series WorkOf(const CutSide& side) {
  Series work;
  for (const auto& [task, series] : side.partitions) AddTo(series, &work);
  return work;
}

using Direction = std::pair<std::string, std::string>;

std::map<Direction, Series> DirectionsOf(const CutSide& side) {
  std::map<Direction, Series> directions;
  for (const auto& [name, one] : side.tensors) {
    AddTo(one.path_ns, &directions[{name.from, name.to}]);
  }
  return directions;
}

// By how much the clocks may have moved a step's tensors that `is_one_of` takes; nullopt: not
// known.
template <class Predicate>
std::optional<int64_t> ClockNs(const CutSide& side, const Predicate& is_one_of) {
  int64_t sum_ns = 0;
  for (const auto& [name, one] : side.tensors) {
    if (!is_one_of(name)) continue;
    if (!one.clock_ns.has_value()) return std::nullopt;
    sum_ns += *one.clock_ns;
  }
  const auto steps = static_cast<int64_t>(side.steps());
  return (sum_ns + steps - 1) / steps;
}

// "MaxPool2d" of "edge_13_MaxPool2d".
std::string WithoutNumber(const std::string& tensor) {
  absl::string_view name = tensor;
  if (!absl::ConsumePrefix(&name, "edge_")) return tensor;
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  name.remove_prefix(digits);
  if (digits == 0 || !absl::ConsumePrefix(&name, "_") || name.empty()) return tensor;
  return std::string(name);
}

CutTensorName WithoutNumber(const CutTensorName& name) {
  return {WithoutNumber(name.tensor), name.from, name.to};
}

// Names of which a side has several.
void AddAmbiguous(const CutSide& side, std::set<CutTensorName>* ambiguous) {
  std::set<CutTensorName> seen;
  for (const CutTensorName& name : side.all_tensors) {
    const CutTensorName without = WithoutNumber(name);
    if (!seen.insert(without).second) ambiguous->insert(without);
  }
}

// Takes numbers of edges out of names that are then still those of one tensor on each side.
void MatchTensors(std::vector<CutSide>* before, CutSide* now) {
  std::set<CutTensorName> ambiguous;
  AddAmbiguous(*now, &ambiguous);
  for (const CutSide& side : *before) AddAmbiguous(side, &ambiguous);
  const auto rename = [&](CutSide* side) {
    std::map<CutTensorName, CutSide::Tensor> renamed;
    for (auto& [name, tensor] : side->tensors) {
      CutTensorName without = WithoutNumber(name);
      renamed[ambiguous.contains(without) ? name : std::move(without)] = std::move(tensor);
    }
    side->tensors = std::move(renamed);
  };
  rename(now);
  for (CutSide& side : *before) rename(&side);
}

class Comparer {
 public:
  // `before` is all recordings before together, which have so many steps each.
  Comparer(const CutSide& before, std::vector<size_t> lengths, const CutSide& now,
           CutComparison* comparison)
      : before_(before), now_(now), comparison_(*comparison), changes_(std::move(lengths)) {}

  void Run() {
    const size_t step = changes_.Add(before_.step_ns, now_.step_ns);
    const size_t work = changes_.Add(WorkOf(before_), WorkOf(now_));
    const size_t tensors = changes_.Add(before_.tensors_ns, now_.tensors_ns);
    const size_t between = changes_.Add(before_.between_ns, now_.between_ns);
    const std::vector<size_t> partitions = AddPartitions();
    const std::vector<size_t> directions = AddDirections();
    const std::vector<size_t> tensor_rows = AddTensors();
    const std::vector<size_t> operators = AddOperators();
    changes_.Sample();
    comparison_.step = changes_.Of(step);
    comparison_.clock_ns = MovedNs([](const CutTensorName&) { return true; });
    if (!comparison_.clock_ns.has_value()) {
      comparison_.partitions.clear();
      comparison_.directions.clear();
      comparison_.tensor_changes.clear();
      comparison_.operators.clear();
      return;
    }
    comparison_.work = changes_.Of(work);
    comparison_.tensors = changes_.Of(tensors, *comparison_.clock_ns);
    comparison_.between = changes_.Of(between, *comparison_.clock_ns);
    Take(partitions, &comparison_.partitions);
    Take(operators, &comparison_.operators);
    for (size_t i = 0; i < directions.size(); ++i) {
      CutDirectionChange& one = comparison_.directions[i];
      one.path = changes_.Of(directions[i], *MovedNs([&](const CutTensorName& name) {
                               return name.from == one.from && name.to == one.to;
                             }));
    }
    for (size_t i = 0; i < tensor_rows.size(); ++i) {
      CutTensorChange& one = comparison_.tensor_changes[i];
      one.path = changes_.Of(tensor_rows[i],
                             *MovedNs([&](const CutTensorName& name) { return name == one.name; }));
    }
  }

 private:
  // Of both recordings.
  template <class Predicate>
  std::optional<int64_t> MovedNs(const Predicate& is_one_of) const {
    const auto before_ns = ClockNs(before_, is_one_of);
    const auto now_ns = ClockNs(now_, is_one_of);
    if (!before_ns.has_value() || !now_ns.has_value()) return std::nullopt;
    return *before_ns + *now_ns;
  }

  template <class Rows>
  void Take(const std::vector<size_t>& numbers, Rows* rows) const {
    for (size_t i = 0; i < numbers.size(); ++i) (*rows)[i].path = changes_.Of(numbers[i]);
  }

  std::vector<size_t> AddPartitions() {
    std::vector<size_t> rows;
    for (const auto& [task, series] : now_.partitions) {
      rows.push_back(changes_.Add(before_.partitions.at(task), series));
      comparison_.partitions.push_back({task, {}});
    }
    return rows;
  }

  std::vector<size_t> AddDirections() {
    std::map<Direction, Series> before = DirectionsOf(before_);
    std::map<Direction, Series> now = DirectionsOf(now_);
    for (const auto& [direction, series] : before) now.try_emplace(direction);
    std::vector<size_t> rows;
    for (auto& [direction, series] : now) {
      Series& other = before[direction];
      other.resize(before_.steps());
      series.resize(now_.steps());
      rows.push_back(changes_.Add(std::move(other), std::move(series)));
      comparison_.directions.push_back({direction.first, direction.second, {}});
    }
    return rows;
  }

  std::vector<size_t> AddTensors() {
    std::vector<size_t> rows;
    const NamedSeries before{before_.tensors, before_.steps(), &CutSide::Tensor::path_ns};
    const NamedSeries now{now_.tensors, now_.steps(), &CutSide::Tensor::path_ns};
    for (CutTensorName& name : NamesByChange(before, now, kRowsMax)) {
      rows.push_back(changes_.Add(before.Of(name), now.Of(name)));
      CutTensorChange& change = comparison_.tensor_changes.emplace_back();
      change.before = before_.tensors.contains(name);
      change.now = now_.tensors.contains(name);
      change.name = std::move(name);
    }
    return rows;
  }

  static double CallsOf(const CutSide& side, const CutOperatorName& name) {
    const auto found = side.operators.find(name);
    return found == side.operators.end()
               ? 0
               : static_cast<double>(found->second.calls) / static_cast<double>(side.steps());
  }

  std::string MovedFrom(const CutOperatorName& name, double calls_now) const {
    if (calls_now == 0 || CallsOf(before_, name) != 0) return "";
    std::string from;
    for (const auto& [task, series] : before_.partitions) {
      const CutOperatorName other{task, name.name};
      if (CallsOf(before_, other) == calls_now && CallsOf(now_, other) == 0) from = task;
    }
    return from;
  }

  std::vector<size_t> AddOperators() {
    std::vector<size_t> rows;
    const NamedSeries before{before_.operators, before_.steps(), &CutSide::Operator::path_ns};
    const NamedSeries now{now_.operators, now_.steps(), &CutSide::Operator::path_ns};
    for (CutOperatorName& name : NamesByChange(before, now, kRowsMax)) {
      rows.push_back(changes_.Add(before.Of(name), now.Of(name)));
      CutOperatorChange& change = comparison_.operators.emplace_back();
      change.calls_before = CallsOf(before_, name);
      change.calls_now = CallsOf(now_, name);
      change.moved_from = MovedFrom(name, change.calls_now);
      change.name = std::move(name);
    }
    return rows;
  }

  const CutSide& before_;
  const CutSide& now_;
  CutComparison& comparison_;
  Changes changes_;
};

std::string TasksOf(const CutSide& side) {
  return absl::StrJoin(side.partitions, ", ",
                       [](std::string* out, const auto& one) { absl::StrAppend(out, one.first); });
}

void CheckComparable(const CutSide& before, const CutSide& now, CutComparison* comparison) {
  if (AreRefused(before, now, comparison)) return;
  const std::string tasks_now = TasksOf(now);
  const std::string tasks_before = TasksOf(before);
  if (tasks_now == tasks_before) return;
  comparison->Refuse(Mismatch::kOtherWorldSize,
                     absl::StrCat("not comparable, the model is cut for other tasks: ", tasks_now,
                                  " now; ", tasks_before, " before"));
}

}  // namespace

ComparedSide SummaryOf(const CutSide& side) {
  return {.window_ns = side.window_ns,
          .steps = side.steps(),
          .ranks = side.partitions.size(),
          .incomplete = side.incomplete,
          .lost_events = side.lost_events};
}

CutComparison CompareCut(std::vector<CutSide> before, CutSide now) {
  MatchTensors(&before, &now);
  auto comparison = Checked<CutComparison>(std::span<const CutSide>(before), now, CheckComparable);
  if (comparison.mismatch != Mismatch::kNone) return comparison;
  const CutSide pooled = Pooled(before);
  comparison.before = SummaryOf(pooled);
  Comparer(pooled, comparison.steps_before(), now, &comparison).Run();
  return comparison;
}

}  // namespace syncline::analysis::why
