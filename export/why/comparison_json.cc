// SPDX-License-Identifier: Apache-2.0
#include "export/why/comparison_json.h"

#include <array>
#include <nlohmann/json.hpp>

#include "export/why/change_json.h"

namespace syncline::report {
namespace {

using analysis::why::Change;
using analysis::why::Comparison;
using analysis::why::kParts;
using analysis::why::Mismatch;
using analysis::why::OperatorChange;
using analysis::why::Part;
using analysis::why::PartJsonName;
using analysis::why::RankChange;
using analysis::why::Refusal;
using analysis::why::RefusalJsonName;
using Json = nlohmann::ordered_json;

Json JsonOf(const std::array<Change, kParts>& parts, const Comparison& comparison) {
  Json json = Json::object();
  for (size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    const bool known = PartKnown(part, comparison.taken_away_known, comparison.blocked_known);
    json[PartJsonName(part)] = known ? ChangeJson(parts[i]) : Json();
  }
  return json;
}

const char* NameOf(OperatorChange::Work work) {
  switch (work) {
    case OperatorChange::Work::kMoreCalls:
      return "other_count";
    case OperatorChange::Work::kOtherShapes:
      return "other_shapes";
    case OperatorChange::Work::kSameShapes:
      return "same";
    case OperatorChange::Work::kUnknownShapes:
      break;
  }
  return "same_count";
}

Json JsonOf(const OperatorChange& change) {
  return {{"operator", change.name},
          {"time", ChangeJson(change.time)},
          {"calls_before_per_step", change.calls_before},
          {"calls_now_per_step", change.calls_now},
          {"work", NameOf(change.work)},
          {"rank", change.rank < 0 ? Json() : Json(change.rank)},
          {"rank_change_ns", change.rank_change_ns}};
}

}  // namespace

std::string ComparisonJson(const ComparedRecordings& compared) {
  const Comparison& comparison = compared.comparison;
  const bool refused = comparison.mismatch != Mismatch::kNone;
  const bool by_why = comparison.refusal != Refusal::kNone;
  Json json = ComparedJson(comparison, compared, by_why ? RefusalJsonName(comparison.refusal) : "",
                           RanksSideJson);
  json["taken_away_known"] = comparison.taken_away_known;
  json["blocked_known"] = comparison.blocked_known;
  json["redacted"] = comparison.redacted;
  json["other_detail"] = comparison.other_detail;
  json["step"] = refused ? Json() : ChangeJson(comparison.step);
  json["parts"] = refused ? Json() : JsonOf(comparison.parts, comparison);
  Json ranks = Json::array();
  for (const RankChange& rank : comparison.ranks) {
    ranks.push_back({{"rank", rank.rank}, {"parts", JsonOf(rank.parts, comparison)}});
  }
  json["ranks"] = std::move(ranks);
  json["only_before"] = comparison.only_before;
  json["only_now"] = comparison.only_now;
  Json operators = Json::array();
  for (const OperatorChange& change : comparison.operators) operators.push_back(JsonOf(change));
  json["operators"] = std::move(operators);
  // Names come from the job and may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
