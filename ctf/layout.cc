// SPDX-License-Identifier: Apache-2.0
#include "ctf/layout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/text.h"
#include "ctf/clocks.h"
#include "ctf/references.h"
#include "ctf/roles.h"

namespace syncline::ctf {
namespace {

// Named types can be nested so that the tree grows exponentially; real ones have tens of nodes.
constexpr uint32_t kNodesMaxPerEvent = 1 << 16;
constexpr uint64_t kNodesMax = 1 << 22;

std::string_view WithoutUnderscore(std::string_view name) {
  if (name.starts_with('_')) name.remove_prefix(1);
  return name;
}

FieldScope FieldScopeOf(Scope scope) {
  switch (scope) {
    case Scope::kPacketHeader:
    case Scope::kPacketContext:
      return FieldScope::kPacketContext;
    case Scope::kEventHeader:
      return FieldScope::kEventHeader;
    case Scope::kStreamContext:
      return FieldScope::kStreamContext;
    case Scope::kEventContext:
      return FieldScope::kEventContext;
    case Scope::kPayload:
      return FieldScope::kPayload;
  }
  return FieldScope::kPayload;
}

FieldType FieldTypeOf(const Node& node) {
  if (node.is_text) return FieldType::kString;
  switch (node.kind) {
    case TypeKind::kInteger:
      return node.is_signed ? FieldType::kSigned : FieldType::kUnsigned;
    case TypeKind::kFloat:
      return FieldType::kReal;
    case TypeKind::kEnum:
      return FieldType::kEnum;
    case TypeKind::kString:
      return node.unit_bytes == 1 ? FieldType::kString : FieldType::kBlob;
    case TypeKind::kStruct:
      return FieldType::kStruct;
    case TypeKind::kVariant:
      return FieldType::kVariant;
    case TypeKind::kArray:
    case TypeKind::kSequence:
      return FieldType::kArray;
    case TypeKind::kBlob:
    case TypeKind::kSequenceBlob:
      return FieldType::kBlob;
  }
  return FieldType::kUnsigned;
}

// True when `node` holds anything but numbers that the reader itself consumes (sizes, ids, times).
bool HasOwnContent(const Node& node) {
  if (node.role != Role::kNone && node.role != Role::kCpuId) return false;
  if (node.children.empty()) return true;
  return std::any_of(node.children.begin(), node.children.end(), HasOwnContent);
}

bool Contains(const Node& node, bool (*test)(const Node&)) {
  if (test(node)) return true;
  return std::any_of(node.children.begin(), node.children.end(),
                     [test](const Node& child) { return Contains(child, test); });
}

// Lays out the scopes of one event or stream, in decoding order.
class LayoutBuilder {
 public:
  LayoutBuilder(const Metadata& metadata, ScopeNodes& out) : metadata_(metadata), out_(out) {}

  absl::Status Add(Scope scope, const TypePtr& type) {
    if (type == nullptr) return absl::OkStatus();
    scope_ = scope;
    auto& root = out_.roots[static_cast<int>(scope)];
    root = std::make_unique<Node>();
    enclosing_.clear();
    return Fill(*root, *type, "");
  }

  // The fields of all scopes, in order, and the nodes pointing at them.
  void AddFields(EventClass& event_class) {
    const bool underscores = metadata_.roles_by_name;
    size_t count = 0;
    ForEachField([&count](Node&, const std::string&, Scope) { ++count; });
    event_class.fields.reserve(count);  // nodes keep pointers into it
    ForEachField([&](Node& node, const std::string& name, Scope scope) {
      event_class.fields.emplace_back();
      FillField(node, name, {"", scope, underscores}, event_class.fields.back());
    });
  }

  // Whether packet header and context, and the event header, must be walked before an event's own
  // scopes.
  void NoteNeeds() {
    const auto wanted = [](const Node& node) { return node.slot >= 0 || node.field != nullptr; };
    for (const Scope scope : {Scope::kPacketHeader, Scope::kPacketContext}) {
      if (out_.root(scope) != nullptr && Contains(*out_.root(scope), wanted)) {
        out_.needs_packet = true;
      }
    }
    const Node* header = out_.root(Scope::kEventHeader);
    out_.needs_header = header != nullptr && Contains(*header, wanted);
    out_.has_header_fields = header != nullptr && Contains(*header, [](const Node& node) {
                               return node.field != nullptr;
                             });
  }

  uint32_t node_count() const { return node_count_; }

 private:
  absl::Status Fill(Node& node, const Type& type, std::string_view name) {
    if (++node_count_ > kNodesMaxPerEvent) return Error(name, "its type has too many parts");
    node.kind = type.kind;
    node.type = &type;
    const ByteOrder order =
        type.byte_order == ByteOrder::kNative ? metadata_.byte_order : type.byte_order;
    node.big = order == ByteOrder::kBig;
    node.is_signed = type.is_signed;
    node.reversed_bits = type.reversed_bits;
    node.alignment = type.alignment;
    node.size_bits = type.size_bits;
    node.length = type.length;
    node.variable_length = type.variable_length;
    node.unit_bytes = static_cast<uint8_t>(type.unit_bytes);
    const FieldSpot spot{name, scope_, enclosing_.size() == 1};
    if (IsBrokenUuid(type, spot, metadata_.roles_by_name)) {
      return Error(name, "a uuid must be 16 bytes");
    }
    node.role = metadata_.roles_by_name ? RoleByName(type, spot) : RoleByType(type, spot);
    switch (type.kind) {
      case TypeKind::kEnum:
        node.labels = std::make_shared<EnumLabels>(type);
        return absl::OkStatus();
      case TypeKind::kStruct:
        return FillStruct(node, type);
      case TypeKind::kVariant:
        return FillVariant(node, type, name);
      case TypeKind::kArray:
      case TypeKind::kSequence:
        return FillArray(node, type, name);
      case TypeKind::kSequenceBlob: {
        SYNCLINE_ASSIGN_OR_RETURN(Node * length, Resolve(type.reference, name));
        return Refer(node, *length, name);
      }
      default:
        return absl::OkStatus();
    }
  }

  absl::Status FillStruct(Node& node, const Type& type) {
    node.children.reserve(type.members.size());  // pointers into it are kept while it fills
    enclosing_.push_back(&node);
    for (const Member& member : type.members) {
      SYNCLINE_RETURN_IF_ERROR(Fill(node.children.emplace_back(), *member.type, member.name));
    }
    enclosing_.pop_back();
    return absl::OkStatus();
  }

  absl::Status FillVariant(Node& node, const Type& type, std::string_view name) {
    if (type.reference.empty()) return Error(name, "this variant has no tag");
    SYNCLINE_ASSIGN_OR_RETURN(Node * tag, Resolve(type.reference, name));
    SYNCLINE_RETURN_IF_ERROR(Refer(node, *tag, name));
    node.tag_is_signed = tag->is_signed;
    node.may_be_empty = type.may_be_empty;
    for (uint32_t option = 0; option < type.members.size(); ++option) {
      for (const EnumMapping& range : type.members[option].selected_by) {
        node.cases.push_back({range.low, range.high, option});
      }
    }
    const bool by_label = node.cases.empty();
    if (by_label && tag->kind != TypeKind::kEnum) {
      return Error(name, "a variant's tag must be an enum");
    }
    if (by_label) AddCasesByLabel(node, type, *tag);
    node.children.reserve(type.members.size());
    enclosing_.push_back(&node);
    for (const Member& member : type.members) {
      SYNCLINE_RETURN_IF_ERROR(Fill(node.children.emplace_back(), *member.type, member.name));
    }
    enclosing_.pop_back();
    return absl::OkStatus();
  }

  static void AddCasesByLabel(Node& node, const Type& type, const Node& tag) {
    for (const EnumMapping& mapping : tag.type->mappings) {
      const auto option =
          std::find_if(type.members.begin(), type.members.end(), [&mapping](const Member& member) {
            return WithoutUnderscore(member.name) == WithoutUnderscore(mapping.label);
          });
      if (option == type.members.end()) continue;
      node.cases.push_back(
          {mapping.low, mapping.high, static_cast<uint32_t>(option - type.members.begin())});
    }
  }

  absl::Status FillArray(Node& node, const Type& type, std::string_view name) {
    if (type.kind == TypeKind::kSequence) {
      SYNCLINE_ASSIGN_OR_RETURN(Node * length, Resolve(type.reference, name));
      SYNCLINE_RETURN_IF_ERROR(Refer(node, *length, name));
    }
    const Type& element = *type.element;
    node.is_text = element.kind == TypeKind::kInteger && element.is_text &&
                   element.size_bits == 8 && element.alignment % 8 == 0 && !element.variable_length;
    node.children.reserve(1);
    return Fill(node.children.emplace_back(), element, "");
  }

  absl::Status Refer(Node& node, Node& target, std::string_view name) {
    if (target.kind != TypeKind::kInteger && target.kind != TypeKind::kEnum) {
      return Error(name, "what it refers to is not an integer");
    }
    if (target.slot < 0) target.slot = out_.slots++;
    node.reference = target.slot;
    return absl::OkStatus();
  }

  // CTF 1.8, section 7.3.2, and CTF 2's field locations: an absolute path names its scope; a
  // relative one is looked up in the enclosing structs from the inside out, then in the scopes that
  // precede this one.
  absl::StatusOr<Node*> Resolve(const std::string& reference, std::string_view name) {
    if (const auto prefix = ScopePrefixOf(reference)) {
      Node* root = out_.roots[static_cast<int>(prefix->scope)].get();
      Node* found =
          root == nullptr ? nullptr : Descend(*root, reference.substr(prefix->text.size()));
      if (found != nullptr) return found;
    }
    for (auto node = enclosing_.rbegin(); node != enclosing_.rend(); ++node) {
      if ((*node)->kind != TypeKind::kStruct) continue;
      if (Node* found = Descend(**node, reference)) return found;
    }
    for (int scope = static_cast<int>(scope_) - 1; scope >= 0; --scope) {
      Node* root = out_.roots[scope].get();
      if (root == nullptr) continue;
      if (Node* found = Descend(*root, reference)) return found;
    }
    return Error(name, absl::StrCat("cannot find \"", reference, "\", which must stand before it"));
  }

  // The node at `path` below `node`, among what is laid out already.
  static Node* Descend(Node& node, std::string_view path) {
    Node* at = &node;
    for (const absl::string_view step : absl::StrSplit(AbslView(path), '.')) {
      while (at->kind == TypeKind::kArray || at->kind == TypeKind::kSequence || at->may_be_empty) {
        if (at->children.empty()) return nullptr;
        at = &at->children[0];
      }
      if (at->kind != TypeKind::kStruct && at->kind != TypeKind::kVariant) return nullptr;
      Node* next = nullptr;
      for (size_t i = 0; i < at->children.size(); ++i) {
        if (at->type->members[i].name == StdView(step)) next = &at->children[i];
      }
      if (next == nullptr) return nullptr;
      at = next;
    }
    return at;
  }

  template <class F>
  void ForEachField(F f) {
    for (int i = 0; i < kScopeCount; ++i) {
      Node* root = out_.roots[i].get();
      if (root == nullptr) continue;
      const auto scope = static_cast<Scope>(i);
      for (size_t child = 0; child < root->children.size(); ++child) {
        Node& node = root->children[child];
        if (scope <= Scope::kEventHeader && !HasOwnContent(node)) continue;
        f(node, root->type->members[child].name, scope);
      }
    }
  }

  struct FieldNaming {
    std::string prefix;
    Scope scope;
    bool underscores;  // CTF 1.8: the first one is no part of the name
  };
  static void FillField(Node& node, std::string_view name, const FieldNaming& naming,
                        FieldClass& field) {
    field.name = std::string(naming.underscores ? WithoutUnderscore(name) : name);
    field.path = naming.prefix;
    if (!field.name.empty()) {
      absl::StrAppend(&field.path, naming.prefix.empty() ? "" : ".", field.name);
    }
    field.type = FieldTypeOf(node);
    field.scope = FieldScopeOf(naming.scope);
    field.display_base = node.type->base;
    field.is_signed = node.is_signed;
    field.size_bits = node.size_bits;
    node.field = &field;
    if (node.is_text) return;
    const bool named = node.kind == TypeKind::kStruct || node.kind == TypeKind::kVariant;
    field.children.reserve(node.children.size());
    for (size_t i = 0; i < node.children.size(); ++i) {
      field.children.emplace_back();
      FillField(node.children[i], named ? node.type->members[i].name : "",
                {field.path, naming.scope, naming.underscores}, field.children.back());
    }
  }

  absl::Status Error(std::string_view name, std::string_view message) const {
    static constexpr std::string_view kNames[] = {"packet header", "packet context",
                                                  "event header",  "event context of the stream",
                                                  "event context", "payload"};
    return absl::InvalidArgumentError(absl::StrCat("field \"", AbslView(name), "\" of the ",
                                                   AbslView(kNames[static_cast<int>(scope_)]), ": ",
                                                   AbslView(message)));
  }

  const Metadata& metadata_;
  ScopeNodes& out_;
  Scope scope_ = Scope::kPacketHeader;
  std::vector<Node*> enclosing_;
  uint32_t node_count_ = 0;
};

// The clock that a stream's timestamps are mapped to: named (CTF 2, where none is null), or the
// first mapping found, or the only one.
const ClockClass* ClockOf(const Metadata& metadata, const StreamType& stream,
                          const ScopeNodes& nodes) {
  if (!metadata.roles_by_name || !stream.clock.empty()) return metadata.FindClock(stream.clock);
  std::string name;
  const auto search = [&name](const Node& node, const auto& self) -> void {
    if (name.empty() && node.type != nullptr) name = node.type->clock;
    for (const Node& child : node.children) self(child, self);
  };
  for (const Scope scope : {Scope::kEventHeader, Scope::kPacketContext}) {
    if (nodes.root(scope) != nullptr) search(*nodes.root(scope), search);
  }
  if (!name.empty()) return metadata.FindClock(name);
  static const ClockClass kImplicit{};  // CTF 1.8 without a clock: nanoseconds
  return metadata.clocks.empty() ? &kImplicit : &metadata.clocks[0];
}

absl::Status AddEvent(const Metadata& metadata, const StreamType& stream, const EventType& event,
                      EventLayout& layout, uint64_t& nodes_total) {
  LayoutBuilder builder(metadata, layout.nodes);
  absl::Status status = builder.Add(Scope::kPacketHeader, metadata.packet_header);
  if (status.ok()) status = builder.Add(Scope::kPacketContext, stream.packet_context);
  if (status.ok()) status = builder.Add(Scope::kEventHeader, stream.event_header);
  if (status.ok()) status = builder.Add(Scope::kStreamContext, stream.event_context);
  if (status.ok()) status = builder.Add(Scope::kEventContext, event.context);
  if (status.ok()) status = builder.Add(Scope::kPayload, event.payload);
  nodes_total += builder.node_count();
  if (status.ok() && nodes_total > kNodesMax) {
    status = absl::InvalidArgumentError("the metadata describes too many fields");
  }
  if (!status.ok()) return WithContext(status, absl::StrCat("event \"", event.name, "\""));
  layout.event_class.name = event.name;
  layout.event_class.attributes = event.attributes;
  builder.AddFields(layout.event_class);
  builder.NoteNeeds();
  layout.fast = CompileFast(layout.nodes);
  return absl::OkStatus();
}

// Tells each field its place.
void PlaceFields(const std::unordered_map<const FieldClass*, FieldPlace>& places,
                 std::vector<FieldClass>& fields) {
  for (FieldClass& field : fields) {
    if (field.type == FieldType::kStruct) PlaceFields(places, field.children);
    const auto found = places.find(&field);
    if (found != places.end()) field.place = found->second;
  }
}

// Ids are small and dense in what LTTng writes; others take the general way.
constexpr uint64_t kFastIds = 1 << 12;
constexpr uint64_t kCompactIds = 31;  // what the short header of the compact kind can tell

void AddFastEvents(StreamLayout& stream) {
  stream.fast_header = ClassifyHeader(stream.nodes);
  if (stream.fast_header == FastHeader::kNone) return;
  for (const auto& [id, event] : stream.events) {
    if (!event->fast) continue;
    const auto places = event->fast->Places();
    PlaceFields({places.begin(), places.end()}, event->event_class.fields);
    if (id >= kFastIds) continue;
    if (stream.fast_events.size() <= id) stream.fast_events.resize(id + 1);
    stream.fast_events[id] = {event->fast->fixed_bytes(), event->event_class.index, event.get()};
    stream.fast_bytes_max = std::max(stream.fast_bytes_max, event->fast->fixed_bytes());
  }
  const bool compact = stream.fast_header == FastHeader::kCompact;
  for (const FastEvent& event : stream.fast_events) {
    if (compact && stream.brief_events.size() == kCompactIds) break;
    const uint32_t header = compact ? 4 : 6;
    const uint32_t bytes = event.fixed_bytes == 0 ? 0 : header + event.fixed_bytes;
    stream.brief_events.push_back({bytes, event.class_index});
  }
}

absl::StatusOr<std::shared_ptr<const TraceLayout>> Build(std::shared_ptr<const Metadata> metadata,
                                                         bool with_events) {
  auto trace = std::make_shared<TraceLayout>();
  trace->metadata = metadata;
  SYNCLINE_RETURN_IF_ERROR(LayoutBuilder(*metadata, trace->packet_header)
                               .Add(Scope::kPacketHeader, metadata->packet_header));
  uint64_t nodes_total = 0;
  for (const StreamType& stream : metadata->streams) {
    auto layout = std::make_unique<StreamLayout>();
    layout->id = stream.id;
    LayoutBuilder builder(*metadata, layout->nodes);
    SYNCLINE_RETURN_IF_ERROR(builder.Add(Scope::kPacketHeader, metadata->packet_header));
    SYNCLINE_RETURN_IF_ERROR(builder.Add(Scope::kPacketContext, stream.packet_context));
    SYNCLINE_RETURN_IF_ERROR(builder.Add(Scope::kEventHeader, stream.event_header));
    nodes_total += builder.node_count();
    layout->clock = ClockOf(*metadata, stream, layout->nodes);
    for (const EventType& event : stream.events) {
      if (!with_events) break;
      auto event_layout = std::make_unique<EventLayout>();
      SYNCLINE_RETURN_IF_ERROR(AddEvent(*metadata, stream, event, *event_layout, nodes_total));
      event_layout->event_class.index = static_cast<uint32_t>(trace->events.size());
      trace->events.push_back(event_layout.get());
      layout->events.emplace(event.id.value_or(0), std::move(event_layout));
    }
    AddFastEvents(*layout);
    trace->streams.push_back(std::move(layout));
  }
  PlaceClocks(trace.get());
  return std::shared_ptr<const TraceLayout>(std::move(trace));
}

}  // namespace

const StreamLayout* TraceLayout::FindStream(uint64_t id) const {
  for (const auto& stream : streams) {
    if (stream->id == id) return stream.get();
  }
  return nullptr;
}

const StreamLayout* TraceLayout::OnlyStream() const {
  return streams.size() == 1 ? streams[0].get() : nullptr;
}

absl::StatusOr<std::shared_ptr<const TraceLayout>> BuildLayout(
    std::shared_ptr<const Metadata> metadata) {
  return Build(std::move(metadata), true);
}

absl::StatusOr<std::shared_ptr<const TraceLayout>> BuildPacketLayout(
    std::shared_ptr<const Metadata> metadata) {
  return Build(std::move(metadata), false);
}

uint32_t BitsOf(Role role, const Node* node) {
  if (node == nullptr) return 0;
  if (node->role == role) return node->size_bits;
  uint32_t bits = 0;
  for (const Node& child : node->children) bits = std::max(bits, BitsOf(role, &child));
  return bits;
}

}  // namespace syncline::ctf
