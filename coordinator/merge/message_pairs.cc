#include "coordinator/merge/message_pairs.h"

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "coordinator/merge/open_traces.h"
#include "timeline/builder.h"
#include "timeline/placement.h"

namespace syncline::merge {
namespace {

constexpr int64_t kBinNs = 20'000'000;

}  // namespace

std::vector<CausalPair> TightestPairs(std::span<const timeline::MessageStream> streams) {
  std::map<std::tuple<ClockId, ClockId, int64_t>, CausalPair> tightest;
  for (const timeline::MessageStream& stream : streams) {
    if (stream.send_node == stream.receive_node) continue;
    for (const timeline::Message& message : stream.messages) {
      const CausalPair pair{{stream.sender_clock, message.sent_ns},
                            {stream.receiver_clock, message.first_ns}};
      const auto [entry, is_new] = tightest.try_emplace(
          {stream.sender_clock, stream.receiver_clock, message.sent_ns / kBinNs}, pair);
      CausalPair& best = entry->second;
      if (pair.after.ns - pair.before.ns < best.after.ns - best.before.ns) best = pair;
    }
  }
  std::vector<CausalPair> pairs;
  for (const auto& [bin, pair] : tightest) pairs.push_back(pair);
  return pairs;
}

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
    for (OpenedTrace& trace : opened.traces) {
      node.readers.push_back(trace.reader.get());
      traces.push_back(std::move(trace));
    }
  }
  timeline::BuildOptions options;
  options.window = timeline::Interval{{0}, {recording.window.end_timeline_ns}};
  const auto built = timeline::BuildTimeline(nodes, options, {});
  if (!built.ok()) return {};  // the merge itself will say why
  std::vector<timeline::MessageStream> streams;
  for (const timeline::NodeResult& node : built->nodes) {
    streams.insert(streams.end(), node.message_streams.begin(), node.message_streams.end());
  }
  return TightestPairs(streams);
}

}  // namespace syncline::merge
