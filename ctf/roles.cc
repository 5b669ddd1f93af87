// SPDX-License-Identifier: Apache-2.0
#include "ctf/roles.h"

namespace syncline::ctf {
namespace {

struct Reserved {
  Scope scope;
  std::string_view name;
  Role role;
};
constexpr Reserved kReserved[] = {
    {Scope::kPacketHeader, "magic", Role::kMagic},
    {Scope::kPacketHeader, "uuid", Role::kUuid},
    {Scope::kPacketHeader, "stream_id", Role::kStreamId},
    {Scope::kPacketHeader, "stream_instance_id", Role::kStreamInstanceId},
    {Scope::kPacketContext, "timestamp_begin", Role::kTimestampBegin},
    {Scope::kPacketContext, "timestamp_end", Role::kTimestampEnd},
    {Scope::kPacketContext, "content_size", Role::kContentSize},
    {Scope::kPacketContext, "packet_size", Role::kPacketSize},
    {Scope::kPacketContext, "packet_seq_num", Role::kSequenceNumber},
    {Scope::kPacketContext, "events_discarded", Role::kDiscardedEvents},
    {Scope::kPacketContext, "cpu_id", Role::kCpuId},
    {Scope::kEventHeader, "id", Role::kEventId},
    {Scope::kEventHeader, "timestamp", Role::kTimestamp},
};

Role ReservedName(Scope scope, std::string_view name) {
  for (const Reserved& entry : kReserved) {
    if (entry.scope == scope && entry.name == name) return entry.role;
  }
  return Role::kNone;
}

bool IsUuid(const Type& type) {
  return type.kind == TypeKind::kArray && type.length == 16 &&
         type.element->kind == TypeKind::kInteger && type.element->size_bits == 8 &&
         type.element->alignment == 8;
}

}  // namespace

std::string_view ReservedNameOf(Role role) {
  for (const Reserved& entry : kReserved) {
    if (entry.role == role) return entry.name;
  }
  return {};
}

Role RoleByName(const Type& type, const FieldSpot& spot) {
  if (spot.scope > Scope::kEventHeader) return Role::kNone;
  if (spot.scope != Scope::kEventHeader && !spot.at_top) return Role::kNone;
  const bool integer = type.kind == TypeKind::kInteger || type.kind == TypeKind::kEnum;
  const Role role = ReservedName(spot.scope, spot.name);
  if (role == Role::kUuid) return IsUuid(type) ? role : Role::kNone;
  if (role != Role::kNone) return integer ? role : Role::kNone;
  return spot.scope == Scope::kEventHeader && integer && !type.clock.empty() ? Role::kTimestamp
                                                                             : Role::kNone;
}

bool IsBrokenUuid(const Type& type, const FieldSpot& spot, bool by_name) {
  if (!by_name) return type.role == Role::kUuid && type.length != 16;
  const bool reserved = spot.at_top && ReservedName(spot.scope, spot.name) == Role::kUuid;
  return reserved && !IsUuid(type);
}

Role RoleByType(const Type& type, const FieldSpot& spot) {
  if (spot.scope > Scope::kEventHeader) return Role::kNone;
  if (spot.scope != Scope::kPacketContext) return type.role;
  if (type.role == Role::kTimestamp) return Role::kTimestampBegin;
  const bool cpu = type.role == Role::kNone && spot.name == "cpu_id" && spot.at_top &&
                   type.kind == TypeKind::kInteger;
  return cpu ? Role::kCpuId : type.role;
}

}  // namespace syncline::ctf
