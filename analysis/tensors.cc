// SPDX-License-Identifier: Apache-2.0
#include "analysis/tensors.h"

#include <map>
#include <tuple>
#include <utility>

namespace syncline::analysis {
namespace {

using timeline::TensorTransfer;

struct Edge {
  uint32_t send_node = 0;
  uint32_t receive_node = 0;
  uint64_t count = 0;
  std::vector<uint64_t> bytes;
  std::vector<int64_t> waiting_ns;
  std::vector<LevelledDuration> flights;
};

// Also where the model knows nothing: then by the timeline, unbounded.
LevelledDuration FlightOf(const TensorTransfer& transfer, const Models& models) {
  if (models.Knows(transfer.send_begin.clock, transfer.received.clock)) {
    return Difference(models, transfer.send_begin, transfer.received);
  }
  LevelledDuration flight;
  if (transfer.sent_at.has_value() && transfer.received_at.has_value()) {
    flight.est_ns = transfer.received_at->ns - transfer.sent_at->ns;
  }
  return flight;
}

void Add(const TensorTransfer& transfer, const Models& models, Edge* edge, TensorReport* report) {
  const LevelledDuration flight = FlightOf(transfer, models);
  edge->send_node = transfer.send_node;
  edge->receive_node = transfer.receive_node;
  ++edge->count;
  edge->flights.push_back(flight);
  if (transfer.bytes.has_value()) edge->bytes.push_back(*transfer.bytes);
  if (transfer.posted.has_value()) {
    edge->waiting_ns.push_back(transfer.received.ns - transfer.posted->ns);
  }
  ++report->tensors;
  if (transfer.complete_step) ++report->in_complete_steps;
  if (transfer.send_node == transfer.receive_node) return;
  ++report->across_nodes;
  if (transfer.received.ns < transfer.send_begin.ns) ++report->backwards_by_wall_clock;
  if (transfer.sent_at.has_value() && transfer.received_at.has_value() &&
      *transfer.received_at < *transfer.sent_at) {
    ++report->backwards_here;
  }
  const Level contradiction = LevelOfContradiction(flight);
  report->contradictions += contradiction == Level::kProven ? 1 : 0;
  report->likely_contradictions += contradiction == Level::kLikely ? 1 : 0;
}

}  // namespace

TensorReport SummariseTensors(std::span<const timeline::NodeResult> nodes, const Models& models) {
  TensorReport report;
  using Key = std::tuple<std::string, std::string, std::string, uint32_t, uint32_t>;
  std::map<Key, Edge> edges;
  for (const timeline::NodeResult& node : nodes) {
    for (const TensorTransfer& transfer : node.received) {
      const Key key{transfer.edge.send_device, transfer.edge.receive_device, transfer.edge.tensor,
                    transfer.send_node, transfer.receive_node};
      Add(transfer, models, &edges[key], &report);
    }
    const timeline::TensorEnds& ends = node.tensor_ends;
    report.unmatched.unmatched_sends += ends.unmatched_sends;
    report.unmatched.unmatched_receives += ends.unmatched_receives;
    report.unmatched.unmatched_sends_in_complete_steps += ends.unmatched_sends_in_complete_steps;
    report.unmatched.unmatched_receives_in_complete_steps +=
        ends.unmatched_receives_in_complete_steps;
  }
  for (auto& [key, edge] : edges) {
    TensorEdgeReport row;
    std::tie(row.send_device, row.receive_device, row.tensor, row.send_node, row.receive_node) =
        key;
    row.count = edge.count;
    row.sized = edge.bytes.size();
    row.sized_bytes = Median(std::move(edge.bytes));
    row.waiting_ns = Median(std::move(edge.waiting_ns));
    row.flight = *Median(std::move(edge.flights), ByEstimate());  // an edge has at least one
    report.edges.push_back(std::move(row));
  }
  return report;
}

}  // namespace syncline::analysis
