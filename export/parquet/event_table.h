// Every event as it was recorded, as a Parquet table beside those of parquet_sink.h:
//
//   events/node=NAME/part-0.parquet     time_ns, bound_ns, clock_ns, stream, cpu, name, context,
//                                       fields
//
// time_ns is on the timeline, the truth within bound_ns of it (null: unknown), clock_ns what the
// node's clock read. `fields` is the payload, `context` the rest, both as JSON objects with every
// field, as `syncline events --format jsonl` has them: fields->>'bytes' in DuckDB.
//
// Memory and bytes: as parquet_sink.h. Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PARQUET_EVENT_TABLE_H_
#define SYNCLINE_EXPORT_PARQUET_EVENT_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "export/parquet/partition.h"
#include "export/parquet/table_writer.h"
#include "export/text/event_text.h"

namespace syncline::parquet {

class EventTable {
 public:
  // For the events of one of `nodes` nodes. `writer` outlives this; what goes wrong in writing, its
  // Finish() says.
  EventTable(std::string_view node, size_t nodes, TableWriter* writer);

  void Append(const text::EventView& event, std::optional<int64_t> bound_ns);
  void Finish();

 private:
  // What the events of one class and stream have in common.
  struct Kind {
    timeline::TextId stream = timeline::kNoText;
    timeline::TextId name = timeline::kNoText;
  };

  timeline::TextId Interned(std::string_view text);
  const Kind& KindOf(const text::EventView& event);
  // An object of these values; null when there are none.
  void PutObject(std::span<const FieldValue> values, Column* column);

  TableWriter* writer_;
  Partition partition_;
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, timeline::TextId> ids_;
  absl::flat_hash_map<std::pair<const StreamInfo*, const EventClass*>, Kind> kinds_;
  text::EventText json_{text::EventText::Style::kJson};
};

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_EVENT_TABLE_H_
