// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/write_tables.h"

#include <algorithm>
#include <vector>

#include "common/parallel.h"
#include "common/status.h"
#include "coordinator/merge/ordered_events.h"
#include "export/parquet/event_table.h"
#include "export/parquet/job_tables.h"

namespace syncline::merge {
namespace {

struct NodeEvents {
  absl::Status status;
  bool complete = true;
  uint64_t undecided = 0;
};

NodeEvents WriteEventsOf(uint32_t node, const OpenedInputs& inputs, timeline::Interval shown,
                         parquet::TableWriter* writer) {
  OrderedEvents events(inputs, shown);
  NodeEvents written{events.Open(node)};
  if (!written.status.ok()) return written;
  parquet::EventTable table(inputs.nodes[node].name, inputs.nodes.size(), writer);
  for (;;) {
    const absl::StatusOr<const text::EventView*> event = events.Next();
    if (!event.ok()) return {event.status()};
    if (*event == nullptr) break;
    table.Append(events.Decoded(), events.BoundNs());
  }
  table.Finish();
  written.complete = events.IsComplete();
  written.undecided = events.undecided();
  return written;
}

std::vector<NodeEvents> WriteEvents(const OpenedInputs& inputs, timeline::Interval shown,
                                    unsigned threads, parquet::TableWriter* writer) {
  std::vector<NodeEvents> written(inputs.nodes.size());
  InParallel(written.size(), threads, [&](size_t node) {
    written[node] = WriteEventsOf(static_cast<uint32_t>(node), inputs, shown, writer);
  });
  return written;
}

}  // namespace

absl::StatusOr<WrittenTables> WriteTables(const OpenedInputs& inputs,
                                          const timeline::BuiltTimeline& built,
                                          timeline::Interval shown, unsigned threads,
                                          parquet::TableWriter* writer) {
  parquet::WritePartitions(built.nodes, writer);
  parquet::WriteCollectives(built.collectives, built.nodes, inputs.models().proven, writer);
  parquet::WriteDevices(built.nodes, inputs.CountedWindow(), writer);
  WrittenTables tables;
  uint64_t undecided = 0;
  for (const NodeEvents& node : WriteEvents(inputs, shown, threads, writer)) {
    SYNCLINE_RETURN_IF_ERROR(node.status);
    tables.complete &= node.complete;
    undecided += node.undecided;
  }
  tables.complaint = UndecidedComplaint(undecided);
  SYNCLINE_RETURN_IF_ERROR(writer->Finish());
  return tables;
}

}  // namespace syncline::merge
