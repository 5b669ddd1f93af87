// SPDX-License-Identifier: Apache-2.0
// Traces of nodes in, one timeline out: the builder walks each node's streams in time order and
// pushes what it finds into the sinks (sink.h).
//
// Memory: names, threads, open spans and one batch per stream; never the events.
// Thread-safety: one thread. The same input gives the same calls in the same order.
#ifndef SYNCLINE_TIMELINE_BUILDER_H_
#define SYNCLINE_TIMELINE_BUILDER_H_

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_filter.h"
#include "common/identity.h"
#include "timeline/collectives.h"
#include "timeline/device_lanes.h"
#include "timeline/fleet_lanes.h"
#include "timeline/node_input.h"
#include "timeline/sink.h"
#include "timeline/transfers.h"

namespace syncline::timeline {

// How far the walk over the nodes' events has come.
struct Progress {
  uint32_t node = 0;
  TimelineTime time;    // of the node's newest event
  uint64_t events = 0;  // of the node, so far
};

struct BuildOptions {
  // The window asked for: outside of a process's coverage it is a hole, and events of providers
  // that are not ours are cut to it. Without a window holes are only drawn between coverage
  // intervals.
  std::optional<Interval> window;
  // Counts and losses in the results are those of this interval only. What the processes counted
  // themselves is then unknown: nothing says when.
  std::optional<Interval> cut;
  // All sinks cut what they get to an interval within this one (cut_sink.h): tasks that do not meet
  // it are not pushed, which takes the most of the time that they cost.
  Interval shown{{kUnknownLo}, {kUnknownHi}};
  // Only these are shown (shown_events.h), and of a profile. What was lost, and who covers what, is
  // found out from all.
  EventPatterns events;
  // With a cut: how far before it a trace is read at most (look_back.h). Without, all of it is.
  std::optional<int64_t> look_back_ns;
  // Of the walk that looks for names, and from two on one for the sinks; what is built does not
  // depend on it.
  unsigned threads = 1;
  // Called now and then, if it is given.
  std::function<void(const Progress&)> progress;
  // Collectives that were found beside the events; nullptr: none. Outlives the builder.
  const Collectives* matched = nullptr;
  // Found beside the events, to be drawn with them.
  std::vector<FleetLane> lanes;
  // Completes what devices did by what the sinks know, which have got all spans of the nodes;
  // empty: it is complete.
  std::function<void(std::span<NodeResult>)> complete_devices;
  // What is to be drawn of them then; empty: nothing.
  DeviceLanesOf device_lanes;
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
