// SPDX-License-Identifier: Apache-2.0
#include "export/parquet/event_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text.h"

namespace syncline::parquet {
namespace {

using enum ColumnType;

// Nodes whose events are in memory together, about: not how many threads there are, upon which the
// bytes would depend.
constexpr size_t kNodesAtOnce = 16;
constexpr size_t kPiecesMax = 64;  // of a row group: events of rarer shapes share the last one
constexpr size_t kShapesMax = 16;  // remembered, of a class

// Columns.
enum Place : size_t {
  kTimeAt,
  kBoundAt,
  kClockOffsetAt,
  kStreamAt,
  kCpuAt,
  kNameAt,
  kContextAt,
  kFirstFieldAt
};

// Fields with a column of their own.
struct Known {
  std::string_view field;
  std::string_view column;
  ColumnType type;
};
constexpr Known kKnown[] = {
    // Of Syncline's events (docs/event-schema.md).
    {"thread", "thread", kInt64},
    {"domain", "domain", kInt64},
    {"name", "name_id", kInt64},
    {"depth", "depth", kInt64},
    {"connection", "connection", kInt64},
    {"begin", "begin", kInt64},
    {"bytes", "bytes", kWord},
    {"since", "since", kInt64},
    // Of TensorFlow's profiles.
    {"duration_ps", "duration_ps", kWord},
    {"id", "id", kWord},
    {"step_id", "step_id", kWord},
    {"_c", "_c", kInt64},
    {"_p", "_p", kInt64},
};
constexpr size_t kRestAt = kFirstFieldAt + std::size(kKnown);

Table MakeTable() {
  Table table{"events",
              {{"time_ns", kInt64},
               {"bound_ns", kInt64, Column::kSometimes},
               {"clock_offset_ns", kInt64},
               {"stream", kName},
               {"cpu", kInt32, Column::kSometimes},
               {"name", kName},
               {"context", kText, Column::kSometimes}}};
  for (const Known& known : kKnown) {
    table.columns.emplace_back(std::string(known.column), known.type, Column::kSometimes);
  }
  table.columns.emplace_back("fields", kText, Column::kSometimes);
  return table;
}

// Whether a column can hold it.
bool Fits(const FieldValue& value) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return value.type == FieldType::kSigned ||
         (value.type == FieldType::kUnsigned && value.u <= kMax);
}

size_t ColumnOf(const FieldClass& field) {
  for (size_t i = 0; i < std::size(kKnown); ++i) {
    if (kKnown[i].field == field.name) return kFirstFieldAt + i;
  }
  return 0;
}

// Clocks that are far apart are so by a number that wraps around, as the sum will.
int64_t Distance(int64_t from_ns, int64_t to_ns) {
  return static_cast<int64_t>(static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns));
}

}  // namespace

EventTable::EventTable(std::string_view node, size_t nodes, TableWriter* writer)
    : writer_(writer), partition_(MakeTable(), node, std::min(nodes, kNodesAtOnce)) {}

timeline::TextId EventTable::Interned(std::string_view text) {
  const auto found = ids_.find(AbslView(text));
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<timeline::TextId>(texts_.size());
  texts_.emplace_back(text);
  ids_.emplace(texts_.back(), id);
  return id;
}

const EventTable::Kind& EventTable::KindOf(const text::EventView& event) {
  const EventClass* const event_class = event.record->event_class;
  const auto [known, is_new] = kinds_.try_emplace({event.stream, event_class});
  if (is_new) {
    std::unique_ptr<Shapes>& shapes = shapes_[event_class];
    if (shapes == nullptr) shapes = std::make_unique<Shapes>();
    known->second = {Interned(event.stream->name), Interned(event_class->name), shapes.get()};
  }
  return known->second;
}

size_t EventTable::PieceOf(const std::string& key) {
  const auto known = pieces_.find(key);
  if (known != pieces_.end()) return known->second;
  if (pieces_.size() == kPiecesMax) return kPiecesMax - 1;
  const size_t piece = pieces_.empty() ? 0 : partition_.AddPiece();
  pieces_.emplace(key, piece);
  return piece;
}

EventTable::Shape EventTable::MakeShape(std::span<const FieldValue> payload) {
  Shape shape;
  std::string key;
  std::vector<bool> taken(kRestAt);
  for (size_t i = 0; i < payload.size(); i += text::Extent(payload.subspan(i))) {
    const FieldValue& value = payload[i];
    Shape::Step step{value.field, ColumnOf(*value.field)};
    step.fits = step.known != 0 && Fits(value);
    if (step.fits && !taken[step.known]) step.column = step.known;
    taken[step.column] = step.column != 0;
    shape.steps.push_back(step);
    shape.has_rest |= step.column == 0;
    shape.all_rest &= step.column == 0;
    absl::StrAppend(&key, value.field->name, step.column != 0 ? "#" : ",");
  }
  shape.piece = PieceOf(key);
  return shape;
}

const EventTable::Shape& EventTable::ShapeOf(std::span<const FieldValue> payload, Shapes* shapes) {
  const auto is_of = [payload](const Shape& shape) {
    size_t i = 0;
    for (const Shape::Step& step : shape.steps) {
      if (i >= payload.size() || payload[i].field != step.field) return false;
      if (step.known != 0 && Fits(payload[i]) != step.fits) return false;
      i += payload[i].count == 0 ? 1 : text::Extent(payload.subspan(i));
    }
    return i >= payload.size();
  };
  const auto found = std::find_if(shapes->begin(), shapes->end(), is_of);
  if (found != shapes->end()) return *found;
  if (shapes->size() == kShapesMax) shapes->pop_back();
  return shapes->emplace_back(MakeShape(payload));
}

void EventTable::PutObject(std::span<const FieldValue> values, Column* column) {
  if (values.empty()) return column->Null();
  json_.AppendObject(values);
  column->Text(json_.buffer()->text());
  json_.buffer()->Clear();
}

void EventTable::PutPayload(const Shape& shape, std::span<const FieldValue> payload,
                            std::vector<Column>* row) {
  const size_t before = row->front().rows() - 1;
  const auto column = [&](size_t place) {
    (*row)[place].NullUpTo(before);
    return &(*row)[place];
  };
  if (shape.has_rest && shape.all_rest) return PutObject(payload, column(kRestAt));
  rest_.clear();
  size_t i = 0;
  for (const Shape::Step& step : shape.steps) {
    const size_t extent = payload[i].count == 0 ? 1 : text::Extent(payload.subspan(i));
    if (step.column != 0) {
      column(step.column)->Int(payload[i].s);
    } else {
      rest_.insert(rest_.end(), &payload[i], &payload[i] + extent);
    }
    i += extent;
  }
  if (shape.has_rest) PutObject(rest_, column(kRestAt));
}

void EventTable::Append(const text::EventView& event, std::optional<int64_t> bound_ns) {
  const auto first = std::find_if(
      event.values.begin(), event.values.end(),
      [](const FieldValue& value) { return value.field->scope == FieldScope::kPayload; });
  const auto in_context = static_cast<size_t>(first - event.values.begin());
  const std::span<const FieldValue> payload = event.values.subspan(in_context);
  const Kind& kind = KindOf(event);
  const Shape& shape = ShapeOf(payload, kind.shapes);
  std::vector<Column>& row = partition_.row(shape.piece);
  row[kTimeAt].Int(event.time.ns);
  bound_ns.has_value() ? row[kBoundAt].Int(*bound_ns) : row[kBoundAt].Null();
  row[kClockOffsetAt].Int(Distance(event.time.ns, event.record->time_ns));
  row[kStreamAt].Name(kind.stream);
  event.stream->cpu.has_value() ? row[kCpuAt].Int(*event.stream->cpu) : row[kCpuAt].Null();
  row[kNameAt].Name(kind.name);
  PutObject(event.values.first(in_context), &row[kContextAt]);
  PutPayload(shape, payload, &row);
  partition_.Added(writer_, texts_, shape.piece);
}

void EventTable::Finish() { partition_.Finish(writer_, texts_); }

}  // namespace syncline::parquet
