// Traces of nodes in, one timeline out: the builder walks each node's streams in time order and
// pushes what it finds into the sinks (sink.h).
//
// Memory: names, threads, open spans and one batch per stream; never the events.
// Thread-safety: one thread. The same input gives the same calls in the same order.
#ifndef SYNCLINE_TIMELINE_BUILDER_H_
#define SYNCLINE_TIMELINE_BUILDER_H_

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/identity.h"
#include "timeline/collectives.h"
#include "timeline/node_input.h"
#include "timeline/sink.h"
#include "timeline/transfers.h"

namespace syncline::timeline {

struct Interval {
  TimelineTime begin;
  TimelineTime end;
};

struct BuildOptions {
  // The window asked for: outside of a process's coverage it is a hole, and events of providers
  // that are not ours are cut to it. Without a window holes are only drawn between coverage
  // intervals.
  std::optional<Interval> window;
  // Counts and losses in the results are those of this interval only. What the processes counted
  // themselves is then unknown: nothing says when. The sinks get everything (cut_sink.h).
  std::optional<Interval> cut;
  // With a cut: how far before it a trace is read at most (look_back.h). Without, all of it is.
  std::optional<int64_t> look_back_ns;
  // For tests only: pretends that processes of all nodes share one set of keys, as tools do that
  // key by pid. A test must notice.
  bool keys_without_node = false;
};

// Tracks by process, for all nodes: what keeps equal pids of two nodes apart.
using SharedTracks = std::map<ProcessKey, TrackId>;

struct BuiltTimeline {
  std::vector<NodeResult> nodes;  // in the order of the input
  Collectives collectives;
  Transfers transfers;
};

// Pushes everything and calls Finish() of each sink.
absl::StatusOr<BuiltTimeline> BuildTimeline(std::span<const NodeInput> nodes,
                                            const BuildOptions& options,
                                            std::span<TimelineSink* const> sinks);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_BUILDER_H_
