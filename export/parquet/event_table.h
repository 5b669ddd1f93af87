// SPDX-License-Identifier: Apache-2.0
// Every event as it was recorded, as a Parquet table beside those of parquet_sink.h:
//
//   events/node=NAME/part-0.parquet     time_ns, bound_ns, clock_offset_ns, stream, cpu, name,
//                                       context, thread, domain, name_id, depth, connection, begin,
//                                       bytes, since, duration_ps, id, step_id, _c, _p, fields
//
// time_ns is on the timeline, the truth within bound_ns of it (null: unknown); the node's clock
// read time_ns + clock_offset_ns. The columns from thread to _p are the fields of the payload that
// many events have, of the same name (name_id: of the field `name`), where they are whole numbers
// that 64 bits with a sign can hold; null for an event without one. `fields` is an object with the
// payload's other fields, `context` one of those of the packet and the event's contexts, as JSON,
// null without any: fields->>'kernel_name' in DuckDB. No field of any event is left out.
//
// Rows with the same fields stand together in a row group, and in the order of time: each column
// then takes room and time for the events that have it. A query that wants an order says so.
//
// Memory and bytes: as parquet_sink.h. Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PARQUET_EVENT_TABLE_H_
#define SYNCLINE_EXPORT_PARQUET_EVENT_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
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
  // Where the payload's fields of some events go.
  struct Shape {
    struct Step {
      const FieldClass* field = nullptr;
      size_t known = 0;   // the column for fields of that name; 0: there is none
      bool fits = false;  // into that column
      size_t column = 0;  // where it goes; 0: into `fields`
    };
    std::vector<Step> steps;
    size_t piece = 0;
    bool has_rest = false;  // something for `fields`
    bool all_rest = true;   // everything
  };
  using Shapes = std::vector<Shape>;  // of the events of one class
  // What the events of one class and stream have in common.
  struct Kind {
    timeline::TextId stream = timeline::kNoText;
    timeline::TextId name = timeline::kNoText;
    Shapes* shapes = nullptr;
  };

  timeline::TextId Interned(std::string_view text);
  const Kind& KindOf(const text::EventView& event);
  const Shape& ShapeOf(std::span<const FieldValue> payload, Shapes* shapes);
  // Of the events whose payloads are made of this.
  size_t PieceOf(const std::string& key);
  Shape MakeShape(std::span<const FieldValue> payload);
  void PutPayload(const Shape& shape, std::span<const FieldValue> payload,
                  std::vector<Column>* row);
  // An object of these values; null when there are none.
  void PutObject(std::span<const FieldValue> values, Column* column);

  TableWriter* writer_;
  Partition partition_;
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, timeline::TextId> ids_;
  absl::flat_hash_map<std::pair<const StreamInfo*, const EventClass*>, Kind> kinds_;
  absl::flat_hash_map<const EventClass*, std::unique_ptr<Shapes>> shapes_;
  std::map<std::string, size_t> pieces_;  // by what their payloads are made of
  std::vector<FieldValue> rest_;          // of the event at hand, for `fields`
  text::EventText json_{text::EventText::Style::kJson};
};

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_EVENT_TABLE_H_
