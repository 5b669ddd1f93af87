// SPDX-License-Identifier: Apache-2.0
#include "export/report/json_report.h"

#include <optional>

#include "analysis/contradictions.h"
#include "export/report/json_values.h"
#include "export/report/sections.h"

namespace syncline::report {
namespace {

Json OfAssumption(const analysis::Assumption& assumption) {
  const bool any = assumption.asymmetry_percent >= clocksync::kAsymmetryPercentAny;
  if (any) return nullptr;
  return {{"path_asymmetry_percent_max", assumption.asymmetry_percent},
          {"name", clocksync::AsymmetryText(assumption.asymmetry_percent)},
          {"meaning", clocksync::AsymmetryMeaning(assumption.asymmetry_percent)},
          {"refuted_by", assumption.refuted_by.empty() ? Json() : Json(assumption.refuted_by)}};
}

Json OfEnd(const std::optional<analysis::ProcessEnd>& end) {
  if (!end.has_value()) return nullptr;
  return {{"after_ns", OrNull(end->after)}, {"before_ns", end->before.ns}};
}

Json OfProcess(const analysis::ProcessReport& process) {
  return {{"name", process.name},
          {"pid", process.pid},
          {"rank", process.rank},
          {"job", process.job},
          {"role", process.role},
          {"part", process.part},
          {"command_line", process.command_line},
          {"threads", process.threads},
          {"covered_begin_ns", OrNull(process.covered_begin)},
          {"covered_end_ns", OrNull(process.covered_end)},
          {"covered_ns", process.covered_ns},
          {"missing_ns", process.missing_ns},
          {"end_known", process.end_known},
          {"ended", OfEnd(process.ended)},
          {"events", process.events},
          {"counted_events", OrNull(process.counted_events)},
          {"lost_events", OrNull(process.lost)},
          {"cost_ns", process.cost.has_value() ? Json(process.cost->est_ns) : Json()}};
}

Json OfLoss(const timeline::LossTotal& loss) {
  return {{"reason", LossReasonName(loss.reason)},
          {"source", loss.source},
          {"detail", loss.detail},
          {"intervals", loss.intervals},
          {"count", OrNull(loss.count)},
          {"begin_ns", loss.begin.ns},
          {"end_ns", loss.end.ns}};
}

const char* NameOf(timeline::Profiler profiler) {
  switch (profiler) {
    case timeline::Profiler::kTensorFlow:
      return "tensorflow";
    case timeline::Profiler::kKineto:
      return "kineto";
    case timeline::Profiler::kJax:
      return "jax";
    case timeline::Profiler::kTable:
      return "table";
  }
  return "";
}

Json OfProfile(const timeline::ProfileResult& profile) {
  return {{"process", profile.name},
          {"pid", profile.process.pid},
          {"profiler", NameOf(profile.profiler)},
          {"task", profile.task},
          {"begin_ns", OrNull(profile.begin)},
          {"end_ns", OrNull(profile.end)},
          {"events", profile.events},
          {"operators", profile.operators},
          {"steps", profile.steps},
          {"undecided_events", profile.undecided_events},
          {"absence", profile.absence}};
}

Json OfCommonCoverage(const analysis::Report& report) {
  Json intervals = Json::array();
  int64_t common_ns = 0;
  std::optional<TimelineTime> begin;
  std::optional<TimelineTime> end;
  for (const timeline::Interval& one : report.common_coverage) {
    intervals.push_back({{"begin_ns", one.begin.ns}, {"end_ns", one.end.ns}});
    common_ns += one.end.ns - one.begin.ns;
    if (!begin.has_value()) begin = one.begin;
    end = one.end;
  }
  return {{"ranks", report.ranks},
          {"covered_ns", common_ns},
          {"begin_ns", OrNull(begin)},
          {"end_ns", OrNull(end)},
          {"intervals", std::move(intervals)}};
}

Json OfMessages(const analysis::Report& report) {
  const analysis::MessageReport& messages = report.messages;
  Json streams = Json::array();
  for (const analysis::MessageRow& row : messages.rows) {
    streams.push_back({{"sender", row.sender},
                       {"receiver", row.receiver},
                       {"from", row.from},
                       {"to", row.to},
                       {"send_node", report.nodes[row.send_node].name},
                       {"receive_node", report.nodes[row.receive_node].name},
                       {"messages", row.messages},
                       {"unmatched", row.unmatched},
                       {"sent_bytes", row.sent_bytes},
                       {"received_bytes", row.received_bytes},
                       {"matched_bytes", row.matched_bytes},
                       {"unplaced_bytes", row.unplaced_bytes},
                       {"largest_bytes", row.largest_bytes},
                       {"arrows", row.arrows},
                       {"retransmitted_segments", OrNull(row.retransmits)},
                       {"flight", Interval(row.flight)}});
  }
  return {{"matched", messages.messages},
          {"matched_across_nodes", messages.across_nodes},
          {"arrows", {{"drawn", messages.arrows}, {"of", messages.drawable}}},
          {"received_before_sent",
           {{"by_wall_clock", OrNull(messages.backwards_by_wall_clock)},
            {"here", messages.backwards_here},
            {"checked_against_the_model", messages.checked},
            {"contradicting_the_model", messages.contradictions}}},
          {"connections", messages.ends.connections},
          {"ends_without_the_other", messages.ends.alone},
          {"bytes_of_ends_without_the_other", messages.ends.alone_bytes},
          {"doubted_directions", messages.ends.doubted},
          {"transfers_left_out", messages.ends.left_out},
          {"streams", std::move(streams)}};
}

Json OfTensors(const analysis::Report& report) {
  const analysis::TensorReport& tensors = report.tensors;
  Json edges = Json::array();
  for (const analysis::TensorEdgeReport& edge : tensors.edges) {
    edges.push_back({{"tensor", edge.tensor},
                     {"send_device", edge.send_device},
                     {"receive_device", edge.receive_device},
                     {"send_node", report.nodes[edge.send_node].name},
                     {"receive_node", report.nodes[edge.receive_node].name},
                     {"count", edge.count},
                     {"bytes", OrNull(edge.bytes())},
                     {"sized_count", edge.sized},
                     {"sized_bytes", OrNull(edge.sized_bytes)},
                     {"waiting_ns", OrNull(edge.waiting_ns)},
                     {"flight", Interval(std::optional(edge.flight))}});
  }
  const timeline::TensorEnds& unmatched = tensors.unmatched;
  return {{"matched", tensors.tensors},
          {"matched_in_complete_steps", tensors.in_complete_steps},
          {"matched_across_nodes", tensors.across_nodes},
          {"received_before_sent",
           {{"by_wall_clock", tensors.backwards_by_wall_clock},
            {"here", tensors.backwards_here},
            {"contradicting_the_model", tensors.contradictions}}},
          {"unmatched",
           {{"sends", unmatched.unmatched_sends},
            {"receives", unmatched.unmatched_receives},
            {"sends_in_complete_steps", unmatched.unmatched_sends_in_complete_steps},
            {"receives_in_complete_steps", unmatched.unmatched_receives_in_complete_steps}}},
          {"edges", std::move(edges)}};
}

Json OfPartition(const timeline::Partition& partition, const std::string& node) {
  Json nodes = Json::array();
  for (const timeline::PartitionNode& entry : partition.nodes) {
    Json json = {{"name", entry.name},
                 {"type", entry.type.empty() ? Json() : Json(entry.type)},
                 {"executions", entry.executions},
                 {"total_ns", entry.total_ns},
                 {"data_edges", OrNull(entry.data_edges)},
                 {"control_edges", OrNull(entry.control_edges)}};
    if (!entry.tensor.empty()) {
      json["tensor"] = entry.tensor;
      json["send_device"] = entry.send_device;
      json["receive_device"] = entry.receive_device;
    }
    nodes.push_back(std::move(json));
  }
  Json graphs = Json::array();
  for (const timeline::PartitionGraph& graph : partition.graphs) {
    graphs.push_back({{"steps", graph.steps}, {"nodes", graph.nodes}});
  }
  return {{"node", node},
          {"process", partition.process},
          {"task", partition.task},
          {"devices", partition.devices},
          {"nodes", std::move(nodes)},
          {"graphs", std::move(graphs)}};
}

Json OfCollective(const timeline::Collective& collective, const analysis::Report& report) {
  Json members = Json::array();
  for (const timeline::CollectiveMember& member : collective.members) {
    members.push_back({{"node", report.nodes[member.node].name},
                       {"rank", member.rank},
                       {"entered_ns", member.entered_at.ns},
                       {"left_ns", member.left_at ? Json(member.left_at->ns) : Json()}});
  }
  return {{"group", collective.group},
          {"number", collective.number},
          {"name", collective.name},
          {"bytes", OrNull(collective.bytes)},
          {"members", std::move(members)}};
}

Json OfCollectives(const analysis::Report& report) {
  const analysis::CollectiveReport& collectives = report.collectives;
  Json groups = Json::array();
  for (const timeline::CollectiveGroup& group : collectives.found.groups) {
    groups.push_back({{"job", group.job},
                      {"name", group.name},
                      {"description", group.description},
                      {"ranks", group.ranks},
                      {"size", group.size}});
  }
  Json kinds = Json::array();
  for (const analysis::CollectiveKindReport& kind : collectives.kinds) {
    kinds.push_back({{"group", kind.group},
                     {"name", kind.name},
                     {"count", kind.count},
                     {"whole", kind.whole},
                     {"bytes", OrNull(kind.bytes)},
                     {"spread", Interval(kind.spread)},
                     {"duration", Interval(kind.duration)},
                     {"first_before_last",
                      {{"proven", kind.order.proven},
                       {"likely", kind.order.likely},
                       {"undecided", kind.order.undecided}}}});
  }
  Json rows = Json::array();
  for (const timeline::Collective& collective : collectives.found.collectives) {
    rows.push_back(OfCollective(collective, report));
  }
  return {{"groups", std::move(groups)},
          {"kinds", std::move(kinds)},
          {"rows", std::move(rows)},
          {"undecided_launches", collectives.found.undecided.size()},
          {"contradicting_the_model", collectives.contradictions}};
}

// null where there is a recording, whose clocks were probed.
Json OfFileClocks(const analysis::Report& report) {
  if (!report.file_clocks.has_value()) return nullptr;
  const analysis::FileClocks& told = *report.file_clocks;
  Json files = Json::array();
  for (const analysis::FileClocks::File& file : told.files) {
    files.push_back({{"file", file.name},
                     {"node", file.node},
                     {"collective_kernels", file.kernels},
                     {"without_number", file.without_number},
                     {"matched", file.matched}});
  }
  return {{"files", std::move(files)},
          {"compared", told.compared},
          {"contradiction", told.contradiction},
          {"rate_ppm_assumed", told.rate_ppm},
          {"matched", told.collectives},
          {"binding", told.binding},
          {"repeated", told.repeated},
          {"of_one_rank_only", told.alone},
          {"impossible_kernels", told.impossible},
          {"unmatched_transfers", told.transfers_left},
          {"disagreeing", told.disagreeing}};
}

Json OfTransfers(const analysis::Report& report) {
  const analysis::TransferReport& transfers = report.transfers;
  const timeline::Transfers& found = transfers.found;
  Json rows = Json::array();
  for (const timeline::Transfer& transfer : found.transfers) {
    const timeline::Channel& channel = found.channels[transfer.channel];
    rows.push_back({{"job", channel.group.job},
                    {"group", channel.group.name},
                    {"group_ranks", channel.group.ranks},
                    {"source", channel.source},
                    {"destination", channel.destination},
                    {"tag", channel.tag},
                    {"bytes", transfer.bytes},
                    {"send_node", report.nodes[transfer.send_node].name},
                    {"receive_node", report.nodes[transfer.receive_node].name},
                    {"sent_ns", transfer.sent_at.ns},
                    {"received_ns", OrNull(transfer.received_at)}});
  }
  return {
      {"matched", found.transfers.size()},
      {"matched_across_nodes", transfers.across_nodes},
      {"received_before_sent",
       {{"here", transfers.backwards_here}, {"contradicting_the_model", transfers.contradictions}}},
      {"unmatched", {{"sends", found.unmatched_sends}, {"receives", found.unmatched_receives}}},
      {"undecided", found.undecided},
      {"rows", std::move(rows)}};
}

Json OfNode(const analysis::NodeReport& node) {
  Json json = {{"name", node.name},
               {"role", node.role},
               {"state", node.state},
               {"failure", node.failure},
               {"streams", node.streams},
               {"events", node.events},
               {"foreign_events", node.foreign_events},
               {"undecodable_events", node.undecodable_events},
               {"start_skew", Interval(node.start_skew)},
               {"stop_skew", Interval(node.stop_skew)},
               {"clock_bound_ns", OrNull(node.bound_ns)},
               {"likely_clock_bound_ns", OrNull(node.likely_bound_ns)},
               {"wall_clock_error", Interval(node.wall_error)}};
  json["processes"] = Json::array();
  for (const auto& process : node.processes) json["processes"].push_back(OfProcess(process));
  json["profiles"] = Json::array();
  for (const auto& profile : node.profiles) json["profiles"].push_back(OfProfile(profile));
  json["losses"] = Json::array();
  for (const auto& loss : node.losses) json["losses"].push_back(OfLoss(loss));
  return json;
}

Json OfEvent(const clocksync::ClockEvent& event) {
  return {{"clock_of", event.node},
          {"what", clocksync::EventName(event)},
          {"begin_ns", OrNull(event.begin)},
          {"end_ns", OrNull(event.end)},
          {"text", event.text}};
}

Json OfSteps(const analysis::Report& report, const analysis::StepSeries& series) {
  Json json = {{"node", report.nodes[series.node].name},
               {"process", series.process},
               {"domain", series.domain},
               {"name", series.name},
               {"count", series.steps.size()},
               {"mean_ns", series.mean_ns},
               {"min_ns", series.min_ns},
               {"median_ns", series.median_ns},
               {"max_ns", series.max_ns}};
  json["steps"] = Json::array();
  for (const analysis::Step& step : series.steps) {
    json["steps"].push_back(
        {{"name", step.name}, {"begin_ns", step.begin.ns}, {"end_ns", step.end.ns}});
  }
  return json;
}

const char* InsideName(analysis::StepGroup::Inside inside) {
  switch (inside) {
    case analysis::StepGroup::Inside::kYes:
      return "yes";
    case analysis::StepGroup::Inside::kNo:
      return "no";
    case analysis::StepGroup::Inside::kLikely:
      return "likely";
    case analysis::StepGroup::Inside::kLikelyNot:
      return "likely not";
    case analysis::StepGroup::Inside::kUndecided:
      return "undecided";
  }
  return "undecided";
}

Json OfGroups(const analysis::Report& report, const analysis::GroupSeries& series) {
  Json json = {{"node", report.nodes[series.node].name},
               {"inside", series.inside},
               {"outside", series.outside},
               {"likely_inside", series.likely_inside},
               {"likely_outside", series.likely_outside},
               {"undecided", series.undecided},
               {"wall_clock_shift", Interval(series.wall_shift)},
               {"moved_by_wall_clock", series.moved_by_wall_clock}};
  json["groups"] = Json::array();
  for (const analysis::StepGroup& group : series.groups) {
    json["groups"].push_back({{"step", group.step},
                              {"tasks", group.tasks},
                              {"begin_ns", group.begin.ns},
                              {"end_ns", group.end.ns},
                              {"inside_step", InsideName(group.inside)}});
  }
  return json;
}

}  // namespace

std::string ReportJson(const analysis::Report& report) {
  Json json = {{"format_version", kFormatVersion},
               {"recording_id", report.recording_id},
               {"detail", report.detail},
               {"complete", !report.incomplete},
               {"epoch_unix_ns", report.epoch_unix_ns},
               {"window",
                {{"begin_ns", report.window_begin.ns},
                 {"end_ns", report.window_end.ns},
                 {"stop_reason", report.stop_reason}}},
               {"reference_node", report.reference},
               {"common_coverage", OfCommonCoverage(report)},
               {"events", report.events}};
  if (!report.only_events.empty()) json["only_events"] = report.only_events;
  json["clock_bounds_hold"] = analysis::ContradictionsOf(report).proven == 0;
  json["likely_assumes"] = OfAssumption(report.assumption);
  json["complaints"] = report.complaints;
  json["nodes"] = Json::array();
  for (const auto& node : report.nodes) json["nodes"].push_back(OfNode(node));
  json["tasks"] = Json::array();
  for (const analysis::TaskTotal& task : report.tasks) {
    json["tasks"].push_back(
        {{"node", task.node},
         {"domain", task.domain},
         {"name", task.name},
         {"count", task.count},
         {"clipped", task.clipped},
         {"total_ns", task.total_ns},
         {"self_ns", task.self_ns},
         {"average_ns",
          task.count == 0 ? Json() : Json(task.total_ns / static_cast<int64_t>(task.count))}});
    if (task.overlapping) json["tasks"].back()["overlapping"] = true;
  }
  json["steps"] = Json::array();
  for (const auto& series : report.steps) json["steps"].push_back(OfSteps(report, series));
  json["groups"] = Json::array();
  for (const auto& series : report.groups) json["groups"].push_back(OfGroups(report, series));
  json["partitions"] = Json::array();
  for (const auto& node : report.nodes) {
    for (const auto& partition : node.partitions) {
      json["partitions"].push_back(OfPartition(partition, node.name));
    }
  }
  json["tensors"] = OfTensors(report);
  json["clock_events"] = Json::array();
  for (const auto& event : report.clock_events) json["clock_events"].push_back(OfEvent(event));
  json["messages"] = OfMessages(report);
  json["collectives"] = OfCollectives(report);
  json["file_clocks"] = OfFileClocks(report);
  json["transfers"] = OfTransfers(report);
  for (const Section& section : Sections()) {
    if (section.json != nullptr) section.json(report, &json);
  }
  // Names come from the traced program: bytes that are not UTF-8 are replaced, never an error.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
