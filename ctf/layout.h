// SPDX-License-Identifier: Apache-2.0
// Metadata made ready for decoding: trees of nodes with every question answered that metadata can
// answer.
//
// A `Type` may stand in several places; a `Node` is one place. Byte orders are concrete, roles
// assigned, references (variant tags, sequence lengths) resolved to *slots*: the referred integer
// stores its value into the slot when it is decoded, the referring field reads it. Each event class
// has nodes of its own for all scopes, headers included, so that `FieldValue::field` points into
// its own `EventClass`.
//
// Immutable once built; shared by all cursors of a trace.
#ifndef SYNCLINE_CTF_LAYOUT_H_
#define SYNCLINE_CTF_LAYOUT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "ctf/enum_labels.h"
#include "ctf/fast_path.h"
#include "ctf/metadata.h"

namespace syncline::ctf {

struct VariantCase {
  uint64_t low = 0;
  uint64_t high = 0;
  uint32_t option = 0;
};

struct Node {
  TypeKind kind = TypeKind::kStruct;
  bool big = false;
  bool is_signed = false;
  bool reversed_bits = false;
  bool is_text = false;        // kArray, kSequence: characters, one string value
  bool tag_is_signed = false;  // kVariant
  bool may_be_empty = false;   // kVariant
  bool variable_length = false;
  uint8_t unit_bytes = 1;  // kString
  Role role = Role::kNone;
  uint32_t alignment = 1;
  uint32_t size_bits = 0;
  uint64_t length = 0;
  int32_t slot = -1;                  // kInteger, kEnum: others refer to this value
  int32_t reference = -1;             // kVariant, kSequence: the slot referred to
  const FieldClass* field = nullptr;  // null: walked, but not among an event's values
  const Type* type = nullptr;
  std::vector<Node> children;  // members, options, or the one element
  std::vector<VariantCase> cases;
  std::shared_ptr<const EnumLabels> labels;
};

inline constexpr int kScopeCount = 6;
enum class Scope : uint8_t {
  kPacketHeader,
  kPacketContext,
  kEventHeader,
  kStreamContext,
  kEventContext,
  kPayload,
};

// The scopes of one kind of event, or of a stream's packets (only the first three scopes then).
struct ScopeNodes {
  std::unique_ptr<Node> roots[kScopeCount];  // null: the scope is absent
  int32_t slots = 0;
  // Later scopes refer to values in these, or their fields are wanted: walk them before the event.
  bool needs_packet = false;
  bool needs_header = false;
  bool has_header_fields = false;  // the event header has fields of its own, besides id and time

  const Node* root(Scope scope) const { return roots[static_cast<int>(scope)].get(); }
};

struct EventLayout {
  EventClass event_class;
  ScopeNodes nodes;
  std::optional<FastProgram> fast;  // of contexts and payload, where they qualify
};

// What the fast path needs of an event, by id.
struct FastEvent {
  uint32_t fixed_bytes = 0;  // without the header; 0: varies
  uint32_t class_index = 0;
  const EventLayout* layout = nullptr;
};

// The same of an event with the short header: all that most events need.
struct BriefEvent {
  uint32_t bytes = 0;  // of the header and all that follows; 0: varies, or not for the fast path
  uint32_t class_index = 0;
};

struct StreamLayout {
  uint64_t id = 0;
  const ClockClass* clock = nullptr;  // null: the stream has none; its times are 0
  ScopeNodes nodes;                   // packet header, packet context, event header
  std::unordered_map<uint64_t, std::unique_ptr<EventLayout>> events;
  FastHeader fast_header = FastHeader::kNone;
  std::vector<FastEvent> fast_events;    // by id; layout is null where the fast path does not apply
  uint32_t fast_bytes_max = 0;           // the largest FastEvent::fixed_bytes
  std::vector<BriefEvent> brief_events;  // by id

  const EventLayout* FindEvent(uint64_t id_wanted) const {
    const auto it = events.find(id_wanted);
    return it == events.end() ? nullptr : it->second.get();
  }
};

// Everything about one trace. Keeps its metadata alive.
struct TraceLayout {
  std::shared_ptr<const Metadata> metadata;
  ScopeNodes packet_header;  // only that scope
  std::vector<std::unique_ptr<StreamLayout>> streams;
  std::vector<const EventLayout*> events;  // by EventClass::index
  const ClockClass* clock = nullptr;       // whose zero is that of the trace's time (clocks.h)
  std::deque<ClockClass> shifted_clocks;
  std::set<uint64_t> unplaced_clocks;  // streams whose clocks cannot be compared with it

  const StreamLayout* FindStream(uint64_t id) const;
  // The stream of packets that do not say which; null when there are several.
  const StreamLayout* OnlyStream() const;
};

// InvalidArgument when a reference cannot be resolved or the types are absurdly large.
absl::StatusOr<std::shared_ptr<const TraceLayout>> BuildLayout(
    std::shared_ptr<const Metadata> metadata);

// Only what packet headers need: streams without their events.
absl::StatusOr<std::shared_ptr<const TraceLayout>> BuildPacketLayout(
    std::shared_ptr<const Metadata> metadata);

// Size of the number below `node`, which may be null, that has this role; 0: none has.
uint32_t BitsOf(Role role, const Node* node);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_LAYOUT_H_
