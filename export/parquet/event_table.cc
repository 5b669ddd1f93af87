#include "export/parquet/event_table.h"

#include <algorithm>
#include <utility>

#include "common/text.h"

namespace syncline::parquet {
namespace {

using enum ColumnType;

Table MakeTable() {
  return {"events",
          {{"time_ns", kInt64},
           {"bound_ns", kInt64, Column::kSometimes},
           {"clock_ns", kInt64},
           {"stream", kName},
           {"cpu", kInt32, Column::kSometimes},
           {"name", kName},
           {"context", kText, Column::kSometimes},
           {"fields", kText, Column::kSometimes}}};
}

}  // namespace

EventTable::EventTable(std::string_view node, size_t nodes, TableWriter* writer)
    : writer_(writer), partition_(MakeTable(), node, nodes) {}

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
  if (is_new) known->second = {Interned(event.stream->name), Interned(event_class->name)};
  return known->second;
}

void EventTable::PutObject(std::span<const FieldValue> values, Column* column) {
  if (values.empty()) return column->Null();
  json_.AppendObject(values);
  column->Text(json_.buffer()->text());
  json_.buffer()->Clear();
}

void EventTable::Append(const text::EventView& event, std::optional<int64_t> bound_ns) {
  const Kind& kind = KindOf(event);
  auto column = partition_.row().begin();
  (column++)->Int(event.time.ns);
  bound_ns.has_value() ? (column++)->Int(*bound_ns) : (column++)->Null();
  (column++)->Int(event.record->time_ns);
  (column++)->Name(kind.stream);
  event.stream->cpu.has_value() ? (column++)->Int(*event.stream->cpu) : (column++)->Null();
  (column++)->Name(kind.name);
  const auto payload = std::find_if(
      event.values.begin(), event.values.end(),
      [](const FieldValue& value) { return value.field->scope == FieldScope::kPayload; });
  const auto in_context = static_cast<size_t>(payload - event.values.begin());
  PutObject(event.values.first(in_context), &*column++);
  PutObject(event.values.subspan(in_context), &*column++);
  partition_.Added(writer_, texts_);
}

void EventTable::Finish() { partition_.Finish(writer_, texts_); }

}  // namespace syncline::parquet
