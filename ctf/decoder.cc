#include "ctf/decoder.h"

#include <algorithm>

#include "ctf/walk.h"

namespace syncline::ctf {
namespace {

// LTTng writes a full timestamp when 2^27 ns have passed since the previous event, so a shorter one
// that says so was never written by it.
constexpr uint64_t kLttngCompactSpan = uint64_t{1} << 27;

class ValueSink {
 public:
  explicit ValueSink(std::vector<FieldValue>& values) : values_(values) {}

  void Integer(const Node& node, uint64_t value) {
    if (node.field == nullptr) return;
    FieldValue& out = Add(node);
    out.u = value;
    if (node.labels != nullptr) out.text = node.labels->Find(value);
  }
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
  if (!SkipBody(*event->layout, position_, state.position, &event->end_bits)) {
    return Step::kDamaged;
  }
  if (event->end_bits == position_) return Step::kDamaged;  // it would be there for ever
  position_ = event->end_bits;
  clock_before_ = clock_;
  clock_ = event->cycles;
  return Step::kEvent;
}

bool PacketDecoder::Decode(const EventLayout& layout, uint64_t begin_bits,
                           std::vector<FieldValue>* values) {
  values->clear();
  const ScopeNodes& nodes = layout.nodes;
  WalkState state{base_, content_bits_, 0, Slots(nodes)};
  ValueSink sink(*values);
  if (nodes.needs_packet) {
    if (!WalkNode(nodes.root(Scope::kPacketHeader), state, sink) ||
        !WalkNode(nodes.root(Scope::kPacketContext), state, sink)) {
      return false;
    }
  }
  state.position = begin_bits;
  for (const Scope scope :
       {Scope::kEventHeader, Scope::kStreamContext, Scope::kEventContext, Scope::kPayload}) {
    if (!WalkNode(nodes.root(scope), state, sink)) return false;
  }
  return true;
}

}  // namespace syncline::ctf
