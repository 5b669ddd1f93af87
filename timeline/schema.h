// Our own events (docs/event-schema.md) as numbers: which kind an event class is, and where its
// fields lie in the list of decoded values. Everything else is kForeign and is shown as it is.
//
// Thread-safety: one thread per EventReader.
#ifndef SYNCLINE_TIMELINE_SCHEMA_H_
#define SYNCLINE_TIMELINE_SCHEMA_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/event_cursor.h"

namespace syncline::timeline {

enum class EventKind : uint8_t {
  kForeign,
  kCanary,
  kOn,
  kOff,
  kPause,
  kResume,
  kThread,
  kName,
  kTaskBegin,  // also _id, _fn, _text: the fields that they do not have read as 0
  kTaskEnd,
  kTaskBeginOverlapped,
  kTaskEndOverlapped,
  kMetadata,      // integers
  kMetadataF64,   // doubles; LTTng-UST has no such sequences: their bits travel as u64
  kMetadataText,  // a string
  kMetadataName,  // a string by id
  kMarker,
  kFrameBegin,
  kFrameEnd,
  kFrameSubmit,
  kCounter,
  kEventStart,
  kEventEnd,
  kRelation,
  kSync,
  kConnection,
  kConnectionState,
  kSend,
  kReceive,
  kSendUnplaced,
  kReceiveUnplaced,
  kDoubt,
  // PyTorch's (syncline_torch)
  kTorchOperators,
  kTorchGroup,
  kTorchCollective,
  kTorchTransferBegin,
  kTorchTransferEnd,
};

enum class Field : uint8_t {
  kThread,
  kProcess,
  kDomain,
  kName,
  kDepth,
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
  kPeer,
  kTag,
  kFieldCount,
};

EventKind KindOf(std::string_view event_name);
// Of our own events: whether it is a thread's (Field::kThread) and not its process's.
bool HasThread(EventKind kind);

// An ITT id; all zero: none.
struct IttId {
  uint64_t d1 = 0;
  uint64_t d2 = 0;
  uint64_t d3 = 0;
  auto operator<=>(const IttId&) const = default;
  explicit operator bool() const { return d1 != 0 || d2 != 0 || d3 != 0; }
};

// Decodes events and finds their fields by name once per class. Serves the classes of any readers.
class EventReader {
 public:
  EventKind Kind(const EventRecord& record) { return BindingFor(record.event_class).kind; }

  // Makes the getters speak of `record`, which must stay valid meanwhile; false when its bytes do
  // not decode. Where every field of ours has a place (FieldPlace), nothing is decoded at all.
  bool Decode(EventCursor* cursor, const EventRecord& record);

  // 0 or empty when the event has no such field.
  uint64_t U64(Field field) const;
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
    bool placed = false;  // `places` has all there is of the event; else `index` counts
    std::array<FieldPlace, kFieldCount> places;
    bool located = false;
    std::array<int32_t, kFieldCount> index;  // into the decoded values; -1: no such field
    int32_t last_index = -1;                 // the largest of them, and what lies there
    const FieldClass* last_field = nullptr;
  };

  Binding& BindingFor(const EventClass* event_class);
  static void Place(const EventClass& event_class, Binding* binding);
  void Locate(Binding* binding) const;
  const FieldValue* Find(Field field) const;
  FieldPlace PlaceOf(Field field) const;

  std::unordered_map<const EventClass*, Binding> bindings_;
  const EventClass* last_class_ = nullptr;
  Binding* last_binding_ = nullptr;
  const uint8_t* bytes_ = nullptr;  // of the record at hand
  std::vector<FieldValue> values_;
};

// Values in preorder: how many entries `values[0]` and its descendants take.
size_t SubtreeSize(std::span<const FieldValue> values);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_SCHEMA_H_
