// SPDX-License-Identifier: Apache-2.0
#include "export/why/cut_comparison_json.h"

#include <nlohmann/json.hpp>

#include "export/report/json_values.h"
#include "export/why/change_json.h"

namespace syncline::report {
namespace {

using analysis::why::Change;
using analysis::why::ComparedSide;
using analysis::why::CutComparison;
using analysis::why::CutDirectionChange;
using analysis::why::CutOperatorChange;
using analysis::why::CutPartitionChange;
using analysis::why::CutRefusal;
using analysis::why::CutRefusalJsonName;
using analysis::why::CutTensorChange;
using analysis::why::Mismatch;

Json SideJson(const ComparedSide& side, const std::string& recording) {
  return {{"recording", recording},        {"window_ns", side.window_ns},
          {"partitions", side.ranks},      {"steps", side.steps},
          {"incomplete", side.incomplete}, {"lost_events", OrNull(side.lost_events)}};
}

Json OrNull(const std::optional<Change>& change) {
  return change.has_value() ? ChangeJson(*change) : Json();
}

Json PathJson(const CutComparison& comparison) {
  Json partitions = Json::array();
  for (const CutPartitionChange& one : comparison.partitions) {
    partitions.push_back({{"task", one.task}, {"path", ChangeJson(one.path)}});
  }
  Json directions = Json::array();
  for (const CutDirectionChange& one : comparison.directions) {
    directions.push_back({{"from", one.from}, {"to", one.to}, {"path", ChangeJson(one.path)}});
  }
  Json tensors = Json::array();
  for (const CutTensorChange& one : comparison.tensor_changes) {
    tensors.push_back({{"tensor", one.name.tensor},
                       {"from", one.name.from},
                       {"to", one.name.to},
                       {"before", one.before},
                       {"now", one.now},
                       {"path", ChangeJson(one.path)}});
  }
  Json operators = Json::array();
  for (const CutOperatorChange& one : comparison.operators) {
    operators.push_back({{"operator", one.name.name},
                         {"task", one.name.task},
                         {"calls_before_per_step", one.calls_before},
                         {"calls_now_per_step", one.calls_now},
                         {"moved_from", one.moved_from.empty() ? Json() : Json(one.moved_from)},
                         {"path", ChangeJson(one.path)}});
  }
  return {{"work", OrNull(comparison.work)},
          {"partitions", std::move(partitions)},
          {"tensors", OrNull(comparison.tensors)},
          {"directions", std::move(directions)},
          {"between_steps", OrNull(comparison.between)},
          {"tensor_changes", std::move(tensors)},
          {"operators", std::move(operators)}};
}

}  // namespace

std::string ComparisonJson(const ComparedCuts& compared) {
  const CutComparison& comparison = compared.comparison;
  const bool refused = comparison.mismatch != Mismatch::kNone;
  const bool by_why = comparison.refusal != CutRefusal::kNone;
  Json json = ComparedJson(comparison, compared,
                           by_why ? CutRefusalJsonName(comparison.refusal) : "", SideJson);
  json["kind"] = "cut";
  json["clock_bound_ns"] = OrNull(comparison.clock_ns);
  json["step"] = refused ? Json() : ChangeJson(comparison.step);
  json["path"] = refused ? Json() : PathJson(comparison);
  // Names come from the job and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
