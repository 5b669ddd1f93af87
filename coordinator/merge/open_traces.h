// SPDX-License-Identifier: Apache-2.0
// Opens every CTF trace below a directory, and says where a trace's own wall clock puts it.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_OPEN_TRACES_H_
#define SYNCLINE_COORDINATOR_MERGE_OPEN_TRACES_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/event_cursor.h"
#include "common/loss.h"
#include "timeline/node_input.h"
#include "timeline/placement.h"

namespace syncline::merge {

struct OpenedTrace {
  std::filesystem::path path;
  std::unique_ptr<TraceReader> reader;
};

struct UnreadableTrace {
  std::filesystem::path path;
  Loss loss;
  std::string complaint;  // without the node's name
};

struct OpenedTraces {
  std::vector<OpenedTrace> traces;  // sorted by path
  std::vector<UnreadableTrace> unreadable;
  std::vector<std::filesystem::path> links;  // not followed
};

// All that lies below `root`. What cannot be read is in `unreadable`; never an error.
OpenedTraces OpenTraces(const std::filesystem::path& root);

// Takes out of `traces` those that hold the same streams as an earlier one (copies): what they are,
// one line each.
std::vector<std::string> DropCopies(std::vector<OpenedTrace>* traces);

// Chains the streams of traces that share a clock (ctf/stream_chain.h), so that what is missing
// between two of them is known, and what is in both is read once. A line each.
struct ChainedTraces {
  std::vector<std::string> notes;       // what is read once
  std::vector<std::string> complaints;  // what may be read twice
  bool begins_late = false;             // packets were written before the first that is here
};
ChainedTraces ChainTraces(const std::vector<OpenedTrace>& traces);

// What the reader found damaged when it was opened, one line each.
std::vector<std::string> ComplaintsOf(const TraceReader& reader);

// REALTIME - trace clock of the first that says it.
std::optional<int64_t> WallOffset(std::span<TraceReader* const> readers);

// From the first to the last time of their streams, trace clock; nullopt: they hold nothing.
std::optional<timeline::ClockInterval> ExtentOf(std::span<TraceReader* const> readers);

// By the wall clock: timeline zero is the Unix time `zero_unix_ns`.
std::unique_ptr<timeline::Placement> PlaceByWallClock(ClockId clock,
                                                      std::span<TraceReader* const> readers,
                                                      int64_t zero_unix_ns);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_OPEN_TRACES_H_
