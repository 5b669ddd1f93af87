// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/message_pairs.h"

#include <memory>
#include <utility>

#include "coordinator/merge/open_traces.h"
#include "coordinator/merge/tightest_pairs.h"
#include "timeline/builder.h"
#include "timeline/placement.h"

namespace syncline::merge {
std::vector<CausalPair> MessagePairsOf(const recording::Layout& layout,
                                       const recording::Recording& recording) {
  std::vector<OpenedTrace> traces;
  std::vector<std::unique_ptr<timeline::Placement>> placements;
  std::vector<timeline::NodeInput> nodes;
  for (uint32_t i = 0; i < recording.nodes.size(); ++i) {
    const recording::NodeRecord& record = recording.nodes[i];
    // No model yet: nodes are laid where their gates opened at once, which is right within
    // milliseconds, enough to tell two uses of an address apart.
    placements.push_back(timeline::ShiftPlacement({i}, -record.start.gate_begin_monotonic_ns));
    timeline::NodeInput& node = nodes.emplace_back();
    node.name = record.name;
    node.placement = placements.back().get();
    OpenedTraces opened = OpenTraces(layout.Trace(record.name));
    DropCopies(&opened.traces);
    ChainTraces(opened.traces);
    for (OpenedTrace& trace : opened.traces) {
      node.readers.push_back(trace.reader.get());
      traces.push_back(std::move(trace));
    }
  }
  timeline::BuildOptions options;
  options.window = timeline::Interval{{0}, {recording.window.end_timeline_ns}};
  const auto built = timeline::BuildTimeline(nodes, options, {});
  if (!built.ok()) return {};  // the merge itself will say why
  TightestPairs pairs;
  for (const timeline::NodeResult& node : built->nodes) {
    for (const timeline::MessageStream& stream : node.message_streams) {
      if (stream.send_node == stream.receive_node) continue;
      for (const timeline::Message& message : stream.messages) {
        pairs.Offer(
            {{stream.sender_clock, message.sent_ns}, {stream.receiver_clock, message.first_ns}});
      }
    }
  }
  return pairs.Take();
}

}  // namespace syncline::merge
