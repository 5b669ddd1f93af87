// SPDX-License-Identifier: Apache-2.0
#include "export/why/cut_json.h"

#include <nlohmann/json.hpp>

#include "export/report/json_values.h"
#include "export/report/network_text.h"
#include "export/why/why_json.h"

namespace syncline::report {
namespace {

using analysis::why::CutAnswer;
using analysis::why::CutDirectionSummary;
using analysis::why::CutEdgeSummary;
using analysis::why::CutOperatorSummary;
using analysis::why::CutPartitionSummary;
using analysis::why::CutRefusal;
using analysis::why::CutRefusalJsonName;
using analysis::why::MeanEstimate;

Json JsonOf(const MeanEstimate& mean) {
  return {{"est", mean.est_ns}, {"lo", mean.lo_ns}, {"hi", mean.hi_ns}};
}

Json PartitionsOf(const CutAnswer& answer) {
  Json array = Json::array();
  for (const CutPartitionSummary& partition : answer.partitions) {
    array.push_back({{"task", partition.task},
                     {"node", partition.node},
                     {"path_ns", JsonOf(partition.path)},
                     {"saved_by_half_the_work_ns", JsonOf(partition.saved)},
                     {"sending_at_work_ns", partition.sending_busy_ns},
                     {"path_in_operators_ns", partition.operators_ns},
                     {"path_idle_ns", partition.idle_ns},
                     {"at_work_ns", partition.busy_ns}});
  }
  return array;
}

Json TensorsOf(const CutAnswer& answer) {
  Json array = Json::array();
  for (const CutEdgeSummary& edge : answer.edges) {
    array.push_back({{"tensor", edge.edge.tensor},
                     {"from", answer.partitions[edge.edge.from].task},
                     {"to", answer.partitions[edge.edge.to].task},
                     {"steps", edge.steps},
                     {"path_ns", JsonOf(edge.path)},
                     {"clock_bound_ns", OrNull(edge.clock_ns)},
                     {"sender_at_work_ns", edge.sender_busy_ns},
                     {"in_send_ns", edge.sending_ns},
                     {"asked_late_ns", edge.asked_ns},
                     {"bytes", OrNull(edge.bytes)}});
  }
  return array;
}

Json DirectionsOf(const CutAnswer& answer) {
  Json array = Json::array();
  for (const CutDirectionSummary& one : answer.directions) {
    array.push_back({{"from", answer.partitions[one.from].task},
                     {"to", answer.partitions[one.to].task},
                     {"saved_without_ns", JsonOf(one.saved)}});
  }
  return array;
}

Json OperatorsOf(const CutAnswer& answer) {
  Json array = Json::array();
  for (const CutOperatorSummary& one : answer.operators) {
    array.push_back({{"name", one.name},
                     {"task", answer.partitions[one.partition].task},
                     {"steps", one.steps},
                     {"path_ns", JsonOf(one.path)}});
  }
  return array;
}

}  // namespace

std::string CutWhyJson(const CutAnswer& answer, const std::vector<std::string>& inputs) {
  const bool refused = answer.refusal != CutRefusal::kNone;
  Json json = {{"format_version", kWhyFormatVersion},
               {"kind", "cut"},
               {"status", refused             ? "refused"
                          : answer.incomplete ? "incomplete"
                                              : "answered"},
               {"reason", refused ? Json(CutRefusalJsonName(answer.refusal)) : Json()},
               {"message", answer.refusal_text},
               {"inputs", inputs},
               {"steps",
                {{"judged", answer.steps},
                 {"other", answer.other_steps},
                 {"overlapping", answer.overlapping_steps},
                 {"broken", answer.broken_steps},
                 {"mean_ns", refused ? Json() : JsonOf(answer.step)}}},
               {"path",
                {{"partitions", PartitionsOf(answer)},
                 {"tensors_ns", refused ? Json() : JsonOf(answer.tensors)},
                 {"saved_without_tensors_ns", refused ? Json() : JsonOf(answer.tensors_saved)},
                 {"between_steps_ns", refused ? Json() : JsonOf(answer.between)},
                 {"tensors", TensorsOf(answer)},
                 {"directions", DirectionsOf(answer)},
                 {"operators", OperatorsOf(answer)}}},
               {"clock_bound_ns", OrNull(answer.clock_ns)},
               {"replay_error_ns", refused ? Json() : Json(answer.replay_error_ns)},
               {"overlap_ns", refused ? Json() : Json(answer.overlap_ns)},
               {"network", FindingsJson(answer.network)},
               {"client", refused ? Json() : Json(answer.partitions[answer.client].task)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
