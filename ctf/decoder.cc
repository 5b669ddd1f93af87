// SPDX-License-Identifier: Apache-2.0
#include "ctf/decoder.h"

#include <algorithm>

#include "ctf/clocks.h"
#include "ctf/event_header.h"
#include "ctf/walk.h"

namespace syncline::ctf {
namespace {

// LTTng writes a full timestamp when 2^27 ns have passed since the previous event, so a shorter one
// that says so was never written by it.
constexpr uint64_t kLttngCompactSpan = uint64_t{1} << 27;

class ValueSink {
 public:
  static constexpr size_t kNoArray = SIZE_MAX;

  explicit ValueSink(std::vector<FieldValue>& values) : values_(values) {}

  void Integer(const Node& node, uint64_t value) {
    if (node.field == nullptr) return;
    FieldValue& out = Add(node);
    out.u = value;
    if (node.labels != nullptr) out.text = node.labels->Find(value);
  }
  void VariableInteger(const Node& node, uint64_t value, uint32_t) { Integer(node, value); }
  void Real(const Node& node, double value) {
    if (node.field != nullptr) Add(node).d = value;
  }
  void Text(const Node& node, std::string_view text) {
    if (node.field != nullptr) Add(node).text = text;
  }
  void Bytes(const Node& node, std::span<const uint8_t> bytes) {
    if (node.field == nullptr) return;
    Add(node).text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void Compound(const Node& node, uint64_t count) {
    if (node.field != nullptr) Add(node).count = static_cast<uint32_t>(count);
  }
  size_t Array(const Node& node, uint64_t count) {
    if (node.field == nullptr) return kNoArray;
    FieldValue& array = Add(node);
    array.count = static_cast<uint32_t>(count);
    array.u = count;
    return values_.size() - 1;
  }
  bool IsFull(uint64_t taken) const {
    return values_.size() >= kEventValuesMax &&
           (taken >= kShortArray || values_.size() >= 2 * kEventValuesMax);
  }
  void Shorten(size_t array, uint64_t count) {
    if (array != kNoArray) values_[array].count = static_cast<uint32_t>(count);
  }

 private:
  FieldValue& Add(const Node& node) {
    FieldValue& value = values_.emplace_back();
    value.field = node.field;
    value.type = node.field->type;
    return value;
  }
  std::vector<FieldValue>& values_;
};

}  // namespace

PacketDecoder::PacketDecoder(const TraceLayout& layout) {
  const auto& environment = layout.metadata->environment;
  const auto tracer = environment.find("tracer_name");
  lttng_ = tracer != environment.end() && tracer->second.starts_with("lttng");
}

void PacketDecoder::Begin(const Packet& packet, std::span<const uint8_t> bytes, uint64_t clock) {
  stream_ = packet.header.stream;
  base_ = bytes.data();
  content_bits_ = std::min<uint64_t>(packet.content_bits, bytes.size() * 8);
  position_ = packet.header.header_bits;
  clock_ = clock_before_ = packet.header.begin_cycles.value_or(clock);
  open_ended_ = packet.open_ended;
  ++packet_number_;
}

uint64_t* PacketDecoder::Slots(const ScopeNodes& nodes) {
  const auto needed = static_cast<size_t>(nodes.slots);
  if (slots_.size() < needed) slots_.resize(needed);
  return slots_.data();
}

bool PacketDecoder::RestIsZero() const {
  const uint8_t* begin = base_ + position_ / 8;
  const uint8_t* end = base_ + content_bits_ / 8;
  return std::all_of(begin, end, [](uint8_t byte) { return byte == 0; });
}

// In a packet that was never closed, what follows the last event is old bytes or zeros.
bool PacketDecoder::LooksUnwritten(uint64_t cycles, uint32_t clock_bits) const {
  if (base_[position_ / 8] == 0 && RestIsZero()) return true;
  if (clock_bits == 0) return false;
  if (clock_bits >= 64) return cycles < clock_;
  const uint64_t longest = lttng_ ? kLttngCompactSpan : LowBits(clock_bits) / 2;
  return cycles - clock_ > longest;
}

bool PacketDecoder::SkipBody(const EventLayout& layout, uint64_t header_begin, uint64_t header_end,
                             uint64_t* end) {
  const ScopeNodes& nodes = layout.nodes;
  WalkState state{base_, content_bits_, header_end, Slots(nodes)};
  if (nodes.slots > 0) {
    if (nodes.needs_packet) {
      state.position = 0;
      if (!SkipNode(nodes.root(Scope::kPacketHeader), state) ||
          !SkipNode(nodes.root(Scope::kPacketContext), state)) {
        return false;
      }
    }
    state.position = header_begin;
    if (!SkipNode(nodes.root(Scope::kEventHeader), state)) return false;
  }
  if (!SkipNode(nodes.root(Scope::kStreamContext), state) ||
      !SkipNode(nodes.root(Scope::kEventContext), state) ||
      !SkipNode(nodes.root(Scope::kPayload), state)) {
    return false;
  }
  *end = state.position;
  return true;
}

Step PacketDecoder::Next(FoundEvent* event) {
  *event = FoundEvent{};
  event->begin_bits = position_;
  if (position_ >= content_bits_) return Step::kEnd;
  WalkState state{base_, content_bits_, position_, Slots(stream_->nodes)};
  RoleSink roles;
  if (!WalkNode(stream_->nodes.root(Scope::kEventHeader), state, roles)) return Step::kDamaged;
  event->id = roles.has(Role::kEventId)     ? roles.value(Role::kEventId)
              : stream_->events.size() == 1 ? stream_->events.begin()->first
                                            : 0;
  const uint32_t clock_bits = roles.bits(Role::kTimestamp);
  event->cycles =
      clock_bits == 0 ? clock_ : ExtendClock(clock_, roles.value(Role::kTimestamp), clock_bits);
  if (open_ended_ && LooksUnwritten(event->cycles, clock_bits)) return Step::kEnd;
  event->layout = stream_->FindEvent(event->id);
  if (event->layout == nullptr) return Step::kUnknownId;
  event->body_bits = state.position;
  if (!SkipBody(*event->layout, position_, state.position, &event->end_bits)) {
    return Step::kDamaged;
  }
  if (event->end_bits == position_) return Step::kDamaged;  // it would be there for ever
  position_ = event->end_bits;
  clock_before_ = clock_;
  clock_ = event->cycles;
  return Step::kEvent;
}

bool PacketDecoder::IsFast() const {
  return stream_->fast_header != FastHeader::kNone && CountsTraceNs(stream_->clock) &&
         !open_ended_ && position_ % 8 == 0 && position_ <= content_bits_;
}

std::optional<Lane> PacketDecoder::AsLane() const {
  if (!IsFast()) return std::nullopt;
  Lane lane;
  lane.stream = stream_;
  lane.base = base_;
  lane.at = base_ + position_ / 8;
  lane.end = base_ + content_bits_ / 8;
  lane.clock = clock_;
  return lane;
}

bool PacketDecoder::Resume(const Lane& lane) {
  const uint64_t position = static_cast<uint64_t>(lane.at - lane.base) * 8;
  if (position == position_) return false;
  position_ = position;
  clock_ = clock_before_ = lane.clock;
  return true;
}

void PacketDecoder::Run(Limits* limits, size_t records_max, std::vector<EventRecord>* records) {
  if (!IsFast()) return;
  const uint8_t* at = base_ + position_ / 8;
  const uint8_t* end = base_ + content_bits_ / 8;
  uint64_t clock = clock_;
  int64_t last_ns = limits->last_ns;
  while (records->size() < records_max) {
    const uint8_t* bytes = at;
    uint64_t cycles = clock;
    uint32_t id = 0;
    if (!ReadEventHeader(stream_->fast_header, bytes, end, cycles, id)) break;
    const uint8_t* body = bytes;
    bytes = SkipFastEvent(*stream_, id, body, end);
    if (bytes == nullptr) break;
    const auto time_ns = static_cast<int64_t>(cycles);
    // Beyond int64_t is damage: negative here.
    if (time_ns < 0 || time_ns < last_ns || time_ns > limits->latest_ns) break;
    if (time_ns > limits->enough_ns) {
      limits->next_ns = time_ns;
      break;
    }
    if (time_ns >= limits->begin_ns && time_ns < limits->end_ns) {
      records->push_back({time_ns, &stream_->fast_events[id].layout->event_class, body,
                          static_cast<uint64_t>(at - base_) * 8});
    }
    last_ns = time_ns;
    clock = cycles;
    at = bytes;
  }
  limits->last_ns = last_ns;
  clock_ = clock_before_ = clock;
  position_ = static_cast<uint64_t>(at - base_) * 8;
}

const std::vector<FieldValue>* PacketDecoder::PacketValues(const EventLayout& layout) {
  const uint32_t index = layout.event_class.index;
  if (packet_values_.size() <= index) packet_values_.resize(index + 1);
  CachedValues& cached = packet_values_[index];
  if (cached.packet == packet_number_) return &cached.values;
  cached.values.clear();
  WalkState state{base_, content_bits_, 0, Slots(layout.nodes)};
  ValueSink sink(cached.values);
  if (!WalkNode(layout.nodes.root(Scope::kPacketHeader), state, sink) ||
      !WalkNode(layout.nodes.root(Scope::kPacketContext), state, sink)) {
    return nullptr;
  }
  cached.packet = packet_number_;
  return &cached.values;
}

bool PacketDecoder::Decode(const EventLayout& layout, const EventRecord& record,
                           std::vector<FieldValue>* values) {
  values->clear();
  const ScopeNodes& nodes = layout.nodes;
  if (layout.fast && stream_->fast_header != FastHeader::kNone) {
    if (nodes.needs_packet) {
      const std::vector<FieldValue>* packet = PacketValues(layout);
      if (packet == nullptr) return false;
      values->insert(values->end(), packet->begin(), packet->end());
    }
    return layout.fast->Decode(record.bytes, base_ + content_bits_ / 8, values);
  }
  WalkState state{base_, content_bits_, 0, Slots(nodes)};
  ValueSink sink(*values);
  if (nodes.needs_packet) {
    if (!WalkNode(nodes.root(Scope::kPacketHeader), state, sink) ||
        !WalkNode(nodes.root(Scope::kPacketContext), state, sink)) {
      return false;
    }
  }
  state.position = record.reader_word;  // where the event begins, in bits
  for (const Scope scope :
       {Scope::kEventHeader, Scope::kStreamContext, Scope::kEventContext, Scope::kPayload}) {
    if (!WalkNode(nodes.root(scope), state, sink)) return false;
  }
  return true;
}

}  // namespace syncline::ctf
