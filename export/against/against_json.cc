// SPDX-License-Identifier: Apache-2.0
#include "export/against/against_json.h"

#include <nlohmann/json.hpp>

#include "export/report/json_values.h"
#include "export/why/change_json.h"

namespace syncline::report {
namespace {

using analysis::against::Comparison;
using analysis::against::Condition;
using analysis::against::ConditionChange;
using analysis::against::Edge;
using analysis::against::EdgeChange;
using analysis::against::Member;
using analysis::against::Mismatch;
using analysis::against::MismatchJsonName;
using analysis::against::Per;
using analysis::against::RowChange;
using analysis::against::RowKind;
using analysis::against::StepChange;
using analysis::against::Summary;

constexpr int kFormatVersion = 1;

const char* NameOf(RowKind kind) {
  switch (kind) {
    case RowKind::kTask:
      return "task";
    case RowKind::kRegion:
      return "region";
    case RowKind::kDevice:
      return "device";
    case RowKind::kCollective:
      return "collective";
    case RowKind::kAllIn:
      break;
  }
  return "collective_all_in";
}

const char* NameOf(RowChange::State state) {
  switch (state) {
    case RowChange::State::kSame:
      return "not_changed";
    case RowChange::State::kChanged:
      return "changed";
    case RowChange::State::kAppeared:
      return "appeared";
    case RowChange::State::kVanished:
      break;
  }
  return "vanished";
}

Json SideJson(const Summary& side, const std::string& path) {
  return {{"path", path},
          {"recording", side.id},
          {"detail", side.detail},
          {"incomplete", side.incomplete},
          {"counted_ns", side.counted_ns},
          {"nodes", side.nodes},
          {"processes", side.processes},
          {"ranks", side.ranks},
          {"steps", side.steps}};
}

Json JsonOf(const StepChange& step) {
  return {{"name", step.name},
          {"marked_by", step.marked_by},
          {"steps_before", step.steps_before},
          {"steps_now", step.steps_now},
          {"median_before_ns", step.median_before_ns},
          {"median_now_ns", step.median_now_ns},
          {"mean_before_ns", step.length.before_ns},
          {"mean_now_ns", step.length.now_ns},
          {"change", step.has_interval ? ChangeJson(step.length) : Json()},
          {"changed", step.changed}};
}

const char* NameOf(Condition::Kind kind) {
  switch (kind) {
    case Condition::Kind::kWaiting:
      return "waiting_for_cpu";
    case Condition::Kind::kThrottled:
      return "throttled";
    case Condition::Kind::kBlocked:
      break;
  }
  return "blocked";
}

Json MostJson(const RowChange& row, const std::vector<Member>& members) {
  if (row.where.of == 0) return {};
  const Member& most = members[row.where.most];
  return {{"changed_on", row.where.changed},
          {"of", row.where.of},
          {"most_on", {{"rank", most.rank < 0 ? Json() : Json(most.rank)}, {"name", most.name}}},
          {"most_change_ns", row.where.most_ns}};
}

Json JsonOf(const RowChange& row, const Comparison& comparison) {
  const bool tested = row.time.change.lo_ns != INT64_MIN;
  return {{"kind", NameOf(row.name.kind)},
          {"domain", row.name.domain},
          {"name", row.name.name},
          {"state", NameOf(row.state)},
          {"before_ns", row.time.before_ns},
          {"now_ns", row.time.now_ns},
          {"change", tested ? ChangeJson(row.time) : Json()},
          {"calls_before", row.calls_before},
          {"calls_now", row.calls_now},
          {"where", MostJson(row, comparison.members)},
          {"call", row.call.has_value() ? ChangeJson(*row.call) : Json()},
          {"call_changed", row.call_changed}};
}

Json UseJson(const Edge& edge) {
  return {{"bytes", edge.bytes},
          {"retransmitted", edge.retransmitted < 0 ? Json() : Json(edge.retransmitted)},
          {"rtt_us", edge.rtt_us < 0 ? Json() : Json(edge.rtt_us)}};
}

Json JsonOf(const EdgeChange& edge) {
  return {{"from", edge.now.from},
          {"to", edge.now.to},
          {"before", UseJson(edge.before)},
          {"now", UseJson(edge.now)},
          {"changed", edge.changed}};
}

const char* StatusOf(const Comparison& comparison) {
  if (comparison.mismatch != Mismatch::kNone) return "refused";
  return comparison.incomplete() ? "incomplete" : "compared";
}

}  // namespace

std::string AgainstJson(const ComparedReports& compared) {
  const Comparison& comparison = compared.comparison;
  const bool refused = comparison.mismatch != Mismatch::kNone;
  Json json = {{"format", "syncline-report-comparison"},
               {"format_version", kFormatVersion},
               {"status", StatusOf(comparison)},
               {"reason", refused ? Json(MismatchJsonName(comparison.mismatch)) : Json()},
               {"message", comparison.mismatch_text},
               {"now", SideJson(comparison.now, compared.now)}};
  json["befores"] = Json::array();
  for (size_t i = 0; i < comparison.befores.size(); ++i) {
    json["befores"].push_back(SideJson(comparison.befores[i], compared.before[i]));
  }
  json["differs"] = comparison.notes;
  json["drift_known"] = comparison.drift_known();
  json["per"] = comparison.per == Per::kStep ? "step" : "second";
  json["step"] = comparison.per == Per::kStep ? Json(comparison.step_name) : Json();
  json["period"] = refused ? Json() : ChangeJson(comparison.period);
  json["limits"] = {{"of_step_ppm", comparison.limit_ppm},
                    {"of_itself_ppm", comparison.own_limit_ppm},
                    {"tested", comparison.tested}};
  json["steps"] = Json::array();
  for (const StepChange& step : comparison.steps) json["steps"].push_back(JsonOf(step));
  json["machines"] = Json::array();
  for (const ConditionChange& one : comparison.conditions) {
    json["machines"].push_back(
        {{"what", NameOf(one.kind)}, {"before_ppm", one.before_ppm}, {"now_ppm", one.now_ppm}});
  }
  json["edges"] = Json::array();
  for (const EdgeChange& one : comparison.edges) json["edges"].push_back(JsonOf(one));
  json["rows"] = Json::array();
  for (const RowChange& row : comparison.rows) json["rows"].push_back(JsonOf(row, comparison));
  // Names come from the job and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
