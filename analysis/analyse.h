// SPDX-License-Identifier: Apache-2.0
// From what the builder and the summary found to a report. Pure.
#ifndef SYNCLINE_ANALYSIS_ANALYSE_H_
#define SYNCLINE_ANALYSIS_ANALYSE_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/machines.h"
#include "analysis/network.h"
#include "analysis/report.h"
#include "analysis/scheduling.h"
#include "analysis/summary_sink.h"
#include "clocksync/clock_model.h"
#include "timeline/builder.h"
#include "timeline/node_input.h"
#include "timeline/placement.h"

namespace syncline::analysis {

// One node, beside its NodeResult.
struct NodeFacts {
  std::string role;
  std::string state;
  std::string failure;
  timeline::Placement* placement = nullptr;
  std::optional<NodeTime> gate_opened;  // MONOTONIC_RAW
  std::optional<NodeTime> gate_closed;
  std::optional<int64_t> wall_offset_ns;  // REALTIME - trace clock, as the tracer sampled it
  std::optional<uint64_t> trace_bytes;    // written by LTTng; these three as counted at stop;
                                          // nullopt: unknown
  std::optional<uint64_t> discarded_events;
  std::optional<uint64_t> lost_packets;
  std::optional<MachineUsage> usage;  // nullopt: it was not sampled
  std::vector<DeviceHealth> health;   // of its devices; `node` and names are filled in
  std::vector<ConnectionUsage> connections;
  std::optional<NodeScheduling> scheduling;  // likewise; nullopt: recorded without
};

struct AnalyseInput {
  std::span<const timeline::NodeResult> nodes;
  std::span<const NodeFacts> facts;  // beside `nodes`
  const timeline::Collectives* collectives = nullptr;
  const timeline::Transfers* transfers = nullptr;
  const clocksync::ClockModel* model = nullptr;  // nullptr: nothing across nodes can be said
  // `model` under the assumption, nullptr where that is known to be false (`assumption` says why)
  // or where nothing is assumed.
  const clocksync::ClockModel* likely = nullptr;
  Assumption assumption;
  std::optional<uint32_t> reference;  // index into `nodes`
  std::optional<timeline::Interval> window;
  std::optional<NodeTime> start_requested;  // the same instants as the window's ends, in the
  std::optional<NodeTime> stop_requested;   // reference's clock
};

// What the processes of `nodes`, of one job if it is given, sent each other and to others, by what
// their kernels say in `facts`, beside it.
std::vector<NetworkLink> NetworkOf(std::span<const timeline::NodeResult> nodes,
                                   std::span<const NodeFacts> facts,
                                   const std::optional<std::string>& job = std::nullopt);

// Fills all of the report but its head (recording id, complaints), which the caller knows.
Report Analyse(const AnalyseInput& input, const SummarySink& summary);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_ANALYSE_H_
