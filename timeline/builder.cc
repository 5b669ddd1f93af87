#include "timeline/builder.h"

#include <utility>

#include "common/status.h"
#include "timeline/emitter.h"
#include "timeline/node_builder.h"

namespace syncline::timeline {
namespace {

// The arrows of the tensors that were sent and received, and what is said of them by node.
void AddTensors(TensorMatcher::Result tensors, Emitter* emitter, std::vector<NodeResult>* results) {
  uint64_t next_flow = 1;
  for (TensorMatcher::Matched& matched : tensors.matched) {
    TensorTransfer& transfer = matched.transfer;
    if (transfer.sent_at.has_value() && transfer.received_at.has_value()) {
      Flow flow;
      flow.id = next_flow++;
      flow.from = matched.from;
      flow.to = matched.to;
      flow.sent = *transfer.sent_at;
      flow.received = *transfer.received_at;
      flow.name = emitter->Text(transfer.edge.tensor);
      emitter->Push(flow);
    }
    (*results)[transfer.receive_node].received.push_back(std::move(transfer));
  }
  for (size_t i = 0; i < tensors.nodes.size(); ++i) {
    (*results)[i].tensor_ends = tensors.nodes[i];
  }
}

}  // namespace

absl::StatusOr<std::vector<NodeResult>> BuildTimeline(std::span<const NodeInput> nodes,
                                                      const BuildOptions& options,
                                                      std::span<TimelineSink* const> sinks) {
  Emitter emitter(std::vector<TimelineSink*>(sinks.begin(), sinks.end()));
  SharedTracks shared;
  TensorMatcher matcher;
  std::vector<NodeResult> results;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    NodeBuilder builder(nodes[i], i, options, &emitter, &shared, &matcher);
    auto result = builder.Build();
    if (!result.ok()) return WithContext(result.status(), "node " + nodes[i].name);
    results.push_back(*std::move(result));
  }
  AddTensors(matcher.Match(), &emitter, &results);
  SYNCLINE_RETURN_IF_ERROR(emitter.Finish());
  return results;
}

}  // namespace syncline::timeline
