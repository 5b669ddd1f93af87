// SPDX-License-Identifier: Apache-2.0
#include "ctf/packet_header.h"

#include <algorithm>
#include <limits>

#include "ctf/walk.h"

namespace syncline::ctf {
namespace {

std::optional<uint64_t> SizeOf(const RoleSink& roles, Role role) {
  if (!roles.has(role)) return std::nullopt;
  const uint64_t value = roles.value(role);
  if (value == 0 || value == LowBits(roles.bits(role))) return std::nullopt;
  return value;
}

void ReadTimes(const RoleSink& roles, uint64_t clock, PacketHeader* header) {
  constexpr uint64_t kLatest = std::numeric_limits<int64_t>::max();
  const uint64_t raw = roles.has(Role::kTimestampEnd) ? roles.value(Role::kTimestampEnd) : 0;
  uint64_t begin = clock;
  if (roles.has(Role::kTimestampBegin)) {
    begin =
        ExtendClock(clock, roles.value(Role::kTimestampBegin), roles.bits(Role::kTimestampBegin));
    // If the end is as late, it is not damage of the one: the packet's events are that late, too.
    if (begin <= kLatest || raw >= begin) header->begin_cycles = begin;
    const bool whole = roles.bits(Role::kTimestampEnd) == 64;  // a short one is read as later
    if (whole && raw != 0 && raw < begin) header->early_end_cycles = raw;
    if (begin > kLatest) return;
  }
  if (raw == 0) return;  // a writer that died leaves it so
  const uint64_t end = ExtendClock(begin, raw, roles.bits(Role::kTimestampEnd));
  if (end >= begin && end <= kLatest) {
    header->end_cycles = end;
  } else {
    header->begin_cycles.reset();  // one of the two is damaged, and nothing tells which
  }
}

HeaderState ReadSizes(const RoleSink& roles, PacketHeader* header) {
  const bool has_content = roles.has(Role::kContentSize);
  const bool has_packet = roles.has(Role::kPacketSize);
  header->has_sizes = has_content || has_packet;
  header->content_bits = SizeOf(roles, Role::kContentSize);
  header->packet_bits = SizeOf(roles, Role::kPacketSize);
  // One of the two stands for both.
  if (has_packet && !has_content) header->content_bits = header->packet_bits;
  if (has_content && !has_packet) header->packet_bits = header->content_bits;
  if (header->packet_bits && *header->packet_bits % 8 != 0) return HeaderState::kBadSizes;
  if (header->packet_bits && *header->packet_bits < header->header_bits) {
    return HeaderState::kBadSizes;
  }
  if (header->content_bits && *header->content_bits < header->header_bits) {
    return HeaderState::kBadSizes;
  }
  if (header->content_bits && header->packet_bits && *header->content_bits > *header->packet_bits) {
    return HeaderState::kBadSizes;
  }
  return HeaderState::kOk;
}

}  // namespace

HeaderState ReadPacketHeader(const TraceLayout& layout, std::span<const uint8_t> bytes,
                             const HeaderContext& context, PacketHeader* header) {
  *header = PacketHeader{};
  // A packet's header has few references; most traces have none.
  std::vector<uint64_t> slots;
  WalkState state{bytes.data(), bytes.size() * 8, 0, nullptr};
  RoleSink roles;
  slots.assign(static_cast<size_t>(layout.packet_header.slots), 0);
  state.slots = slots.data();
  if (!WalkNode(layout.packet_header.root(Scope::kPacketHeader), state, roles)) {
    return HeaderState::kTooShort;
  }
  HeaderState identity = HeaderState::kOk;
  header->stream = roles.has(Role::kStreamId) ? layout.FindStream(roles.value(Role::kStreamId))
                                              : layout.OnlyStream();
  if (header->stream == nullptr ||
      (context.expected != nullptr && header->stream != context.expected)) {
    identity = HeaderState::kUnknownStream;
    header->names_another = true;
    header->stream = context.expected;
  }
  const auto& uuid = layout.metadata->uuid;
  if (!roles.uuid().empty() && uuid &&
      !std::equal(uuid->begin(), uuid->end(), roles.uuid().begin(), roles.uuid().end())) {
    identity = HeaderState::kBadUuid;
    header->names_another = true;
  }
  if (roles.has(Role::kMagic) && roles.value(Role::kMagic) != kStreamMagic) {
    identity = HeaderState::kBadMagic;
  }
  if (header->stream == nullptr) return identity;
  const ScopeNodes& nodes = header->stream->nodes;
  if (nodes.slots > 0) {
    // The context refers to the header: walk it again with the stream's own slots.
    slots.assign(static_cast<size_t>(nodes.slots), 0);
    state.slots = slots.data();
    state.position = 0;
    WalkNode(nodes.root(Scope::kPacketHeader), state, roles);
  }
  if (!WalkNode(nodes.root(Scope::kPacketContext), state, roles)) {
    return identity == HeaderState::kOk ? HeaderState::kTooShort : identity;
  }
  header->header_bits = state.position;
  if (roles.has(Role::kStreamInstanceId)) {
    header->stream_instance_id = roles.value(Role::kStreamInstanceId);
  }
  if (roles.has(Role::kCpuId)) header->cpu_id = roles.value(Role::kCpuId);
  if (roles.has(Role::kSequenceNumber)) {
    header->sequence = roles.value(Role::kSequenceNumber);
    header->sequence_width = roles.bits(Role::kSequenceNumber);
  }
  if (roles.has(Role::kDiscardedEvents)) {
    header->discarded = roles.value(Role::kDiscardedEvents);
    header->discarded_width = roles.bits(Role::kDiscardedEvents);
  }
  ReadTimes(roles, context.clock, header);
  const HeaderState sizes = ReadSizes(roles, header);
  return identity == HeaderState::kOk ? sizes : identity;
}

std::vector<uint8_t> PacketSignature(const TraceLayout& layout) {
  std::vector<uint8_t> signature;
  const Node* root = layout.packet_header.root(Scope::kPacketHeader);
  if (root == nullptr || root->children.empty()) return signature;
  const Node& magic = root->children[0];
  if (magic.role != Role::kMagic || magic.size_bits != 32) return signature;
  for (int i = 0; i < 4; ++i) {
    const int shift = magic.big ? 24 - 8 * i : 8 * i;
    signature.push_back(static_cast<uint8_t>(kStreamMagic >> shift));
  }
  const auto& uuid = layout.metadata->uuid;
  if (root->children.size() > 1 && root->children[1].role == Role::kUuid && uuid) {
    signature.insert(signature.end(), uuid->begin(), uuid->end());
  }
  return signature;
}

}  // namespace syncline::ctf
