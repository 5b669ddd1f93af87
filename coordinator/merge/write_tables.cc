#include "coordinator/merge/write_tables.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

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
  std::atomic<uint32_t> next = 0;
  const auto work = [&] {
    for (uint32_t node; (node = next++) < written.size();) {
      written[node] = WriteEventsOf(node, inputs, shown, writer);
    }
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < std::min<size_t>(threads, written.size()); ++i) others.emplace_back(work);
  work();
  others.clear();
  return written;
}

}  // namespace

absl::StatusOr<WrittenTables> WriteTables(const OpenedInputs& inputs,
                                          const timeline::BuiltTimeline& built,
                                          timeline::Interval shown, unsigned threads,
                                          parquet::TableWriter* writer) {
  parquet::WritePartitions(built.nodes, writer);
  parquet::WriteCollectives(built.collectives, built.nodes, inputs.model.get(), writer);
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
