#include "coordinator/merge/write_tables.h"

#include <vector>

#include "common/status.h"
#include "coordinator/merge/ordered_events.h"
#include "export/parquet/event_table.h"
#include "export/parquet/job_tables.h"

namespace syncline::merge {

absl::StatusOr<WrittenTables> WriteTables(const OpenedInputs& inputs,
                                          const timeline::BuiltTimeline& built,
                                          timeline::Interval shown, parquet::TableWriter* writer) {
  parquet::WritePartitions(built.nodes, writer);
  parquet::WriteCollectives(built.collectives, built.nodes, inputs.model.get(), writer);
  OrderedEvents events(inputs, shown);
  SYNCLINE_RETURN_IF_ERROR(events.Open());
  std::vector<std::string> nodes;
  for (const timeline::NodeInput& node : inputs.nodes) nodes.push_back(node.name);
  parquet::EventTable table(nodes, writer);
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const text::EventView* event, events.Next());
    if (event == nullptr) break;
    table.Append(events.node(), events.Decoded(), events.BoundNs());
  }
  table.Finish();
  SYNCLINE_RETURN_IF_ERROR(writer->Finish());
  return WrittenTables{events.IsComplete(), events.complaint()};
}

}  // namespace syncline::merge
