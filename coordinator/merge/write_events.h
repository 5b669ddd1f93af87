// `merge --format parquet`: the inputs' events as they were recorded, beside the timeline's tables
// (export/parquet/event_table.h).
#ifndef SYNCLINE_COORDINATOR_MERGE_WRITE_EVENTS_H_
#define SYNCLINE_COORDINATOR_MERGE_WRITE_EVENTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/merge/inputs.h"
#include "export/parquet/table_writer.h"
#include "timeline/cut_sink.h"

namespace syncline::merge {

struct WrittenEvents {
  bool complete = true;
  std::string complaint;  // one line for people; "": none
};

absl::StatusOr<WrittenEvents> WriteEvents(const OpenedInputs& inputs, timeline::Interval shown,
                                          const parquet::WriterOptions& writer);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WRITE_EVENTS_H_
