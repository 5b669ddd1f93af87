// SPDX-License-Identifier: Apache-2.0
#include "export/why/change_json.h"

#include "export/report/json_values.h"

namespace syncline::report {
namespace {

using analysis::why::Change;
using analysis::why::ComparedSide;
using analysis::why::ComparedSides;
using analysis::why::LimitResult;
using analysis::why::Mismatch;
using analysis::why::MismatchJsonName;

const char* NameOf(LimitResult::State state) {
  switch (state) {
    case LimitResult::State::kAbove:
      return "above";
    case LimitResult::State::kNotAbove:
      return "not_above";
    case LimitResult::State::kNotJudged:
      break;
  }
  return "not_judged";
}

Json JsonOf(const LimitResult& result) {
  return {{"limit", result.limit.text},
          {"limit_ppm", result.limit.ppm},
          {"state", NameOf(result.state)},
          {"because", result.why},
          {"change", result.change.has_value() ? ChangeJson(*result.change) : Json()}};
}

const char* StatusOf(const ComparedSides& comparison) {
  if (comparison.mismatch != Mismatch::kNone) return "refused";
  return comparison.incomplete() ? "incomplete" : "compared";
}

}  // namespace

Json ChangeJson(const Change& change) {
  return {
      {"before_ns", change.before_ns},
      {"now_ns", change.now_ns},
      {"change_ns",
       {{"est", change.change.est_ns}, {"lo", change.change.lo_ns}, {"hi", change.change.hi_ns}}},
      {"change_ppm", {{"est", change.est_ppm}, {"lo", change.lo_ppm}, {"hi", change.hi_ppm}}},
      {"certain", change.certain()}};
}

Json RanksSideJson(const ComparedSide& side, const std::string& recording) {
  return {{"recording", recording},        {"job", side.job},
          {"window_ns", side.window_ns},   {"ranks", side.ranks},
          {"steps", side.steps},           {"class", side.step_class},
          {"incomplete", side.incomplete}, {"lost_events", OrNull(side.lost_events)}};
}

Json ComparedJson(const ComparedSides& comparison, const ComparedNames& names, const char* refusal,
                  const SideToJson& side) {
  const bool refused = comparison.mismatch != Mismatch::kNone;
  Json json = {{"format", "syncline-comparison"},
               {"format_version", kComparisonFormatVersion},
               {"status", StatusOf(comparison)},
               {"reason", refused ? Json(MismatchJsonName(comparison.mismatch)) : Json()},
               {"refusal", *refusal != 0 ? Json(refusal) : Json()},
               {"message", comparison.mismatch_text},
               {"before", side(comparison.before, names.before.front())},
               {"now", side(comparison.now, names.now)}};
  json["befores"] = Json::array();
  for (size_t i = 0; i < comparison.befores.size(); ++i) {
    json["befores"].push_back(side(comparison.befores[i], names.before[i]));
  }
  json["drift_known"] = comparison.drift_known();
  Json limits = Json::array();
  for (const LimitResult& result : names.limits) limits.push_back(JsonOf(result));
  json["limits"] = std::move(limits);
  return json;
}

}  // namespace syncline::report
