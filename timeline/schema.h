// SPDX-License-Identifier: Apache-2.0
// Our own events (docs/event-schema.md) as numbers: which kind an event class is, and where its
// fields lie in the list of decoded values. Everything else is kForeign and is shown as it is.
//
// Thread-safety: one thread per EventReader.
#ifndef SYNCLINE_TIMELINE_SCHEMA_H_
#define SYNCLINE_TIMELINE_SCHEMA_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/event_cursor.h"
#include "common/field_place.h"
#include "instrumentation/abi/events.h"

namespace syncline::timeline {

using abi::EventKind;
using abi::kEventKinds;

enum class Field : uint8_t {
  kThread,
  kProcess,
  kDomain,
  kName,
  kDepth,
  kNumber,
  kD1,
  kD2,
  kD3,
  kP1,
  kP2,
  kP3,
  kE1,
  kE2,
  kE3,
  kFn,
  kTid,
  kPid,
  kPidns,
  kStartTicks,
  kGeneration,
  kEvents,
  kLost,
  kCostNs,
  kId,
  kKind,
  kText,
  kScope,
  kBegin,
  kEnd,
  kValue,
  kValues,
  kKey,
  kObject,
  kConnection,
  kSent,
  kReceived,
  kRetransmits,
  kRttUs,
  kLocalPort,
  kRemotePort,
  kLocal,
  kRemote,
  kBytes,
  kSince,
  kDirection,
  kExpected,
  kFound,
  kOn,
  kGroup,
  kDescription,
  kRanks,
  kRank,
  kSize,
  kSequence,
  kRoot,
  kPeer,
  kTag,
  kWaited,
  kLaunch,
  kDevice,
  kQueue,
  kBound,
  kSource,
  kCount,
  kState,
  kCommunicator,
  kAhead,
  kFieldCount,
};

// Of "provider:name".
EventKind KindOf(std::string_view event_name);

// Of our own events: whether it is a thread's (Field::kThread) and not its process's.
inline bool HasThread(EventKind kind) {
  switch (kind) {
    case EventKind::kForeign:
    case EventKind::kCanary:
    case EventKind::kOn:
    case EventKind::kOff:
    case EventKind::kName:
      return false;
    default:
      return true;
  }
}

// An ITT id; all zero: none.
struct IttId {
  uint64_t d1 = 0;
  uint64_t d2 = 0;
  uint64_t d3 = 0;
  auto operator<=>(const IttId&) const = default;
  explicit operator bool() const { return d1 != 0 || d2 != 0 || d3 != 0; }
};

// The begin or end of a task as nearly all are written (EventReader::ReadTask).
struct PlainTask {
  uint32_t thread = 0;
  uint32_t domain = 0;
  uint32_t name = 0;
  uint16_t depth = 0;
  bool numbered = false;
  uint16_t number = 0;  // if so: how many begins and ends the thread wrote before, modulo 65,536
  bool begins = false;
  IttId id;
  IttId parent;
};

// Decodes events and finds their fields by name once per class. Serves the classes of any readers.
class EventReader {
 public:
  EventKind Kind(const EventRecord& record) { return BindingFor(record.event_class).kind; }

  // Makes the getters speak of `record`, which must stay valid meanwhile; false when its bytes do
  // not decode. Where every field of ours has a place (FieldPlace), nothing is decoded at all.
  bool Decode(EventCursor* cursor, const EventRecord& record) {
    const Binding& binding = BindingFor(record.event_class);
    bytes_ = record.bytes;
    return binding.placed || DecodeAll(cursor, record);
  }

  // All of a task at once, without Decode(); nothing where it is not laid out as usual, or is known
  // by more than its name, and of other events.
  bool ReadTask(const EventRecord& record, PlainTask* task) {
    const Binding& binding = BindingFor(record.event_class);
    if (!binding.plain_task) return false;
    const auto load = [&](Field field, auto* to) {
      std::memcpy(to, record.bytes + binding.places[static_cast<size_t>(field)].offset, sizeof *to);
    };
    load(Field::kThread, &task->thread);
    load(Field::kDomain, &task->domain);
    load(Field::kName, &task->name);
    load(Field::kDepth, &task->depth);
    task->numbered = binding.numbered;
    if (binding.numbered) load(Field::kNumber, &task->number);
    task->begins = binding.kind == EventKind::kTaskBegin;
    task->id = task->parent = {};
    if (!binding.has_ids) return true;
    load(Field::kD1, &task->id.d1);
    load(Field::kD2, &task->id.d2);
    load(Field::kD3, &task->id.d3);
    load(Field::kP1, &task->parent.d1);
    load(Field::kP2, &task->parent.d2);
    load(Field::kP3, &task->parent.d3);
    return true;
  }

  // 0 or empty when the event has no such field.
  uint64_t U64(Field field) const {
    if (last_binding_ == nullptr || !last_binding_->placed) return FoundNumber(field);
    const FieldPlace& place = last_binding_->places[static_cast<size_t>(field)];
    const bool number =
        place.kind == FieldPlace::Kind::kUnsigned || place.kind == FieldPlace::Kind::kSigned;
    return number ? LoadNumber(place, bytes_) : 0;
  }
  bool Has(Field field) const {
    if (last_binding_ == nullptr) return false;
    const auto index = static_cast<size_t>(field);
    return last_binding_->placed ? bool{last_binding_->places[index]}
                                 : last_binding_->index[index] >= 0;
  }
  uint32_t U32(Field field) const { return static_cast<uint32_t>(U64(field)); }
  double Real(Field field) const;
  std::string_view Text(Field field) const;
  // The number or string itself, or the elements of the array; empty when there is no such field.
  std::span<const FieldValue> Values(Field field) const;
  IttId Id() const { return {U64(Field::kD1), U64(Field::kD2), U64(Field::kD3)}; }
  IttId ParentId() const { return {U64(Field::kP1), U64(Field::kP2), U64(Field::kP3)}; }
  IttId OtherId() const { return {U64(Field::kE1), U64(Field::kE2), U64(Field::kE3)}; }

  // Every value of a foreign event, in preorder.
  std::span<const FieldValue> all() const { return values_; }

 private:
  static constexpr size_t kFieldCount = static_cast<size_t>(Field::kFieldCount);
  struct Binding {
    EventKind kind = EventKind::kForeign;
    bool plain_task = false;  // for ReadTask(),
    bool has_ids = false;     // and there are d1 to p3,
    bool numbered = false;    // and a number
    bool placed = false;      // `places` has all there is of the event; else `index` counts
    std::array<FieldPlace, kFieldCount> places;
    bool located = false;
    std::array<int32_t, kFieldCount> index;  // into the decoded values; -1: no such field
    int32_t last_index = -1;                 // the largest of them, and what lies there
    const FieldClass* last_field = nullptr;
  };

  // Classes take turns, a task's begin and its end do: a look at one place finds most.
  struct Recent {
    const EventClass* event_class = nullptr;
    Binding* binding = nullptr;
  };
  static constexpr size_t kRecent = 16;

  Binding& BindingFor(const EventClass* event_class) {
    const Recent& recent = recent_[event_class->index % kRecent];
    last_binding_ = recent.event_class == event_class ? recent.binding : &FindBinding(event_class);
    return *last_binding_;
  }
  Binding& FindBinding(const EventClass* event_class);
  bool DecodeAll(EventCursor* cursor, const EventRecord& record);
  static void FindPlainTask(Binding* binding);
  static void Place(const EventClass& event_class, Binding* binding);
  void Locate(Binding* binding) const;
  const FieldValue* Find(Field field) const;
  uint64_t FoundNumber(Field field) const;
  FieldPlace PlaceOf(Field field) const;

  std::unordered_map<const EventClass*, Binding> bindings_;
  std::array<Recent, kRecent> recent_;  // by EventClass::index
  Binding* last_binding_ = nullptr;
  const uint8_t* bytes_ = nullptr;  // of the record at hand
  std::vector<FieldValue> values_;
};

// Values in preorder: how many entries `values[0]` and its descendants take.
size_t SubtreeSize(std::span<const FieldValue> values);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_SCHEMA_H_
