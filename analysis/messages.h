// SPDX-License-Identifier: Apache-2.0
// Messages between processes: what each connection carried and how long it took, and how a merge by
// wall clock would have drawn it. Pure.
#ifndef SYNCLINE_ANALYSIS_MESSAGES_H_
#define SYNCLINE_ANALYSIS_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/levels.h"
#include "common/time.h"
#include "timeline/node_input.h"

namespace syncline::analysis {

// One direction of a connection.
struct MessageRow {
  std::string sender;  // its process's name
  std::string receiver;
  std::string from;  // address and port
  std::string to;
  uint32_t send_node = 0;  // indices into Report::nodes
  uint32_t receive_node = 0;
  uint64_t messages = 0;  // of which both ends were recorded
  uint64_t unmatched = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
  uint64_t matched_bytes = 0;
  uint64_t unplaced_bytes = 0;
  uint64_t largest_bytes = 0;
  uint64_t drawable = 0;                // messages in what the timeline shows
  uint64_t arrows = 0;                  // of those, drawn
  std::optional<uint32_t> retransmits;  // segments
  // From before the send began until all of it had been taken; the median of up to kFlightsMax
  // messages spread over all, with the bound of that very message. Nothing without messages.
  std::optional<LevelledDuration> flight;
};

inline constexpr size_t kFlightsMax = 1000;

struct MessageReport {
  std::vector<MessageRow> rows;  // by nodes, processes, addresses
  uint64_t messages = 0;
  uint64_t drawable = 0;      // of those, in what the timeline shows
  uint64_t arrows = 0;        // of those, drawn: not all where there are too many
  uint64_t across_nodes = 0;  // of `messages`
  // Of those across nodes: a first byte taken before it was sent, which cannot be.
  std::optional<uint64_t> backwards_by_wall_clock;  // nullopt: the traces name no wall clock
  uint64_t backwards_here = 0;
  // Of those whose flight was computed: backwards also at the ends of the intervals.
  uint64_t checked = 0;
  uint64_t contradictions = 0;
  uint64_t likely_contradictions = 0;  // more, by what is called likely: the assumption is wrong
  timeline::MessageEnds ends;          // of all nodes
};

// `wall_offsets_ns`: REALTIME - trace clock of each node, beside `nodes`.
MessageReport SummariseMessages(std::span<const timeline::NodeResult> nodes,
                                std::span<const std::optional<int64_t>> wall_offsets_ns,
                                const Models& models);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_MESSAGES_H_
