// SPDX-License-Identifier: Apache-2.0
#include "timeline/schema.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace syncline::timeline {
namespace {

// In the order of enum Field.
constexpr std::string_view kFieldNames[] = {
    "thread",       "process",     "domain",      "name",       "depth",       "number",
    "d1",           "d2",          "d3",          "p1",         "p2",          "p3",
    "e1",           "e2",          "e3",          "fn",         "tid",         "pid",
    "pidns",        "start_ticks", "generation",  "events",     "lost",        "cost_ns",
    "id",           "kind",        "text",        "scope",      "begin",       "end",
    "value",        "values",      "key",         "object",     "connection",  "sent",
    "received",     "retransmits", "rtt_us",      "local_port", "remote_port", "local",
    "remote",       "bytes",       "since",       "direction",  "expected",    "found",
    "on",           "group",       "description", "ranks",      "rank",        "size",
    "sequence",     "root",        "peer",        "tag",        "waited",      "launch",
    "device",       "queue",       "bound",       "source",     "count",       "state",
    "communicator", "ahead",
};
static_assert(std::size(kFieldNames) == static_cast<size_t>(Field::kFieldCount));

// kFieldCount: none of ours.
size_t FieldIndex(std::string_view name) {
  return static_cast<size_t>(std::find(std::begin(kFieldNames), std::end(kFieldNames), name) -
                             std::begin(kFieldNames));
}

}  // namespace

EventKind KindOf(std::string_view event_name) {
  const size_t colon = event_name.find(':');
  if (colon == std::string_view::npos) return EventKind::kForeign;
  const std::string_view provider = event_name.substr(0, colon);
  const std::string_view name = event_name.substr(colon + 1);
  for (const abi::EventRow& row : abi::kEvents) {
    if (row.name == name && row.provider == provider) return row.kind;
  }
  return EventKind::kForeign;
}

size_t SubtreeSize(std::span<const FieldValue> values) {
  size_t left = 1;
  size_t size = 0;
  while (left > 0 && size < values.size()) {
    left += values[size].count;
    --left;
    ++size;
  }
  return size;
}

EventReader::Binding& EventReader::FindBinding(const EventClass* event_class) {
  const auto [entry, inserted] = bindings_.try_emplace(event_class);
  if (inserted) {
    entry->second.kind = KindOf(event_class->name);
    entry->second.index.fill(-1);
    Place(*event_class, &entry->second);
  }
  recent_[event_class->index % kRecent] = {event_class, &entry->second};
  return entry->second;
}

void EventReader::Place(const EventClass& event_class, Binding* binding) {
  if (binding->kind == EventKind::kForeign) return;
  for (const FieldClass& field : event_class.fields) {
    if (field.scope != FieldScope::kPayload) continue;
    const size_t index = FieldIndex(field.name);
    if (index == kFieldCount) continue;
    // Values() hands out decoded values.
    if (!field.place || index == static_cast<size_t>(Field::kValues)) return;
    binding->places[index] = field.place;
  }
  binding->placed = true;
  FindPlainTask(binding);
}

void EventReader::FindPlainTask(Binding* binding) {
  if (binding->kind != EventKind::kTaskBegin && binding->kind != EventKind::kTaskEnd) return;
  const auto place = [&](Field field) { return binding->places[static_cast<size_t>(field)]; };
  const auto is = [&](Field field, uint8_t width) {
    const FieldPlace found = place(field);
    return found.kind == FieldPlace::Kind::kUnsigned && found.width == width && !found.big;
  };
  constexpr Field kIds[] = {Field::kD1, Field::kD2, Field::kD3, Field::kP1, Field::kP2, Field::kP3};
  const auto ids =
      std::count_if(std::begin(kIds), std::end(kIds), [&](Field field) { return is(field, 8); });
  const auto any_id = std::any_of(std::begin(kIds), std::end(kIds),
                                  [&](Field field) { return bool{place(field)}; });
  binding->numbered = is(Field::kNumber, 2);
  binding->has_ids = ids == std::ssize(kIds);
  binding->plain_task = std::endian::native == std::endian::little && is(Field::kThread, 4) &&
                        is(Field::kDomain, 4) && is(Field::kName, 4) && is(Field::kDepth, 2) &&
                        binding->has_ids == any_id && !place(Field::kFn) &&
                        binding->numbered == bool{place(Field::kNumber)};
}

void EventReader::Locate(Binding* binding) const {
  // Only direct fields of the payload count. The payload may be given as one struct or flat.
  binding->index.fill(-1);
  binding->last_index = -1;
  for (size_t i = 0; i < values_.size();) {
    const FieldValue& value = values_[i];
    const bool is_wrapper = value.type == FieldType::kStruct &&
                            value.field->scope == FieldScope::kPayload && value.field->name.empty();
    if (is_wrapper) {
      ++i;
      continue;
    }
    if (value.field->scope == FieldScope::kPayload) {
      const size_t index = FieldIndex(value.field->name);
      if (index != kFieldCount) {
        binding->index[index] = static_cast<int32_t>(i);
        binding->last_index = static_cast<int32_t>(i);
        binding->last_field = value.field;
      }
    }
    i += SubtreeSize(std::span(values_).subspan(i));
  }
  binding->located = true;
}

bool EventReader::DecodeAll(EventCursor* cursor, const EventRecord& record) {
  Binding& binding = *last_binding_;
  if (!cursor->Decode(record, &values_)) return false;
  // Positions move only behind fields of variable size, which our events have at their end; a trace
  // with such contexts is located anew each time.
  const bool moved =
      binding.last_index >= 0 && (static_cast<size_t>(binding.last_index) >= values_.size() ||
                                  values_[binding.last_index].field != binding.last_field);
  if (!binding.located || moved) Locate(&binding);
  return true;
}

const FieldValue* EventReader::Find(Field field) const {
  if (last_binding_ == nullptr || last_binding_->placed) return nullptr;
  const int32_t index = last_binding_->index[static_cast<size_t>(field)];
  return index < 0 ? nullptr : &values_[static_cast<size_t>(index)];
}

FieldPlace EventReader::PlaceOf(Field field) const {
  if (last_binding_ == nullptr || !last_binding_->placed) return {};
  return last_binding_->places[static_cast<size_t>(field)];
}

uint64_t EventReader::FoundNumber(Field field) const {
  const FieldValue* value = Find(field);
  if (value == nullptr) return 0;
  switch (value->type) {
    case FieldType::kUnsigned:
    case FieldType::kSigned:
    case FieldType::kEnum:
      return value->AsUnsigned();
    default:
      return 0;
  }
}

double EventReader::Real(Field field) const {
  const FieldPlace place = PlaceOf(field);
  if (place && place.kind != FieldPlace::Kind::kText) {
    const uint64_t bits = LoadNumber(place, bytes_);
    return place.kind == FieldPlace::Kind::kReal ? std::bit_cast<double>(bits)
           : place.kind == FieldPlace::Kind::kSigned
               ? static_cast<double>(static_cast<int64_t>(bits))
               : static_cast<double>(bits);
  }
  const FieldValue* value = Find(field);
  if (value == nullptr) return 0;
  switch (value->type) {
    case FieldType::kReal:
      return value->d;
    case FieldType::kSigned:
      return static_cast<double>(value->s);
    case FieldType::kUnsigned:
      return static_cast<double>(value->u);
    default:
      return 0;
  }
}

std::string_view EventReader::Text(Field field) const {
  const FieldPlace place = PlaceOf(field);
  if (place.kind == FieldPlace::Kind::kText) return LoadText(place, bytes_);
  const FieldValue* value = Find(field);
  if (value == nullptr || value->type != FieldType::kString) return {};
  return value->text;
}

std::span<const FieldValue> EventReader::Values(Field field) const {
  const FieldValue* value = Find(field);
  if (value == nullptr) return {};
  const std::span<const FieldValue> rest(value, values_.data() + values_.size() - value);
  if (value->type == FieldType::kArray) {
    return rest.subspan(1, std::min<size_t>(value->count, rest.size() - 1));
  }
  return rest.first(1);
}

}  // namespace syncline::timeline
