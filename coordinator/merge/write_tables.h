// SPDX-License-Identifier: Apache-2.0
// `merge --format parquet`: the tables beside the timeline's own: what the job is made of, and the
// inputs' events as they were recorded (export/parquet/job_tables.h, event_table.h).
#ifndef SYNCLINE_COORDINATOR_MERGE_WRITE_TABLES_H_
#define SYNCLINE_COORDINATOR_MERGE_WRITE_TABLES_H_

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/merge/inputs.h"
#include "export/parquet/table_writer.h"
#include "timeline/builder.h"
#include "timeline/cut_sink.h"

namespace syncline::merge {

struct WrittenTables {
  bool complete = true;
  std::string complaint;  // one line for people; "": none
};

// The last ones that `writer` gets; the bytes do not depend on `threads`, each of which takes a
// node's events at a time. ResourceExhausted where the disk is full.
absl::StatusOr<WrittenTables> WriteTables(const OpenedInputs& inputs,
                                          const timeline::BuiltTimeline& built,
                                          timeline::Interval shown, unsigned threads,
                                          parquet::TableWriter* writer);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WRITE_TABLES_H_
