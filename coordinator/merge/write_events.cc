#include "coordinator/merge/write_events.h"

#include <utility>
#include <vector>

#include "common/status.h"
#include "coordinator/merge/ordered_events.h"
#include "export/parquet/event_table.h"

namespace syncline::merge {

absl::StatusOr<WrittenEvents> WriteEvents(const OpenedInputs& inputs, timeline::Interval shown,
                                          const parquet::WriterOptions& writer) {
  OrderedEvents events(inputs, shown);
  SYNCLINE_RETURN_IF_ERROR(events.Open());
  SYNCLINE_ASSIGN_OR_RETURN(auto tables, parquet::TableWriter::Start(writer));
  std::vector<std::string> nodes;
  for (const timeline::NodeInput& node : inputs.nodes) nodes.push_back(node.name);
  parquet::EventTable table(nodes, std::move(tables));
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const text::EventView* event, events.Next());
    if (event == nullptr) break;
    table.Append(events.node(), events.Decoded(), events.BoundNs());
  }
  SYNCLINE_RETURN_IF_ERROR(table.Finish());
  return WrittenEvents{events.IsComplete(), events.complaint()};
}

}  // namespace syncline::merge
