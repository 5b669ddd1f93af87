// SPDX-License-Identifier: Apache-2.0
#include "export/ctf/header_places.h"

#include <algorithm>
#include <vector>

#include "ctf/walk.h"

namespace syncline::ctf_export {

class HeaderPlaces::Finder : public ctf::NullSink {
 public:
  Finder(const ctf::WalkState& state, HeaderPlaces& places) : state_(state), places_(places) {}

  void Integer(const ctf::Node& node, uint64_t) {
    if (node.role == ctf::Role::kNone) return;
    places_.places_[static_cast<size_t>(node.role)] = {state_.position - node.size_bits,
                                                       node.size_bits, node.big};
  }
  void Bytes(const ctf::Node& node, std::span<const uint8_t> bytes) {
    if (node.role != ctf::Role::kUuid) return;
    places_.uuid_bits_ = state_.position - bytes.size() * 8;
    places_.has_uuid_ = true;
  }

 private:
  const ctf::WalkState& state_;
  HeaderPlaces& places_;
};

std::optional<HeaderPlaces> HeaderPlaces::Find(const ctf::ScopeNodes& nodes,
                                               std::span<const uint8_t> bytes) {
  HeaderPlaces places;
  std::vector<uint64_t> slots(static_cast<size_t>(nodes.slots));
  ctf::WalkState state{bytes.data(), bytes.size() * 8, 0, slots.data()};
  Finder finder(state, places);
  if (!WalkNode(nodes.root(ctf::Scope::kPacketHeader), state, finder) ||
      !WalkNode(nodes.root(ctf::Scope::kPacketContext), state, finder)) {
    return std::nullopt;
  }
  return places;
}

void HeaderPlaces::Put(ctf::Role role, uint64_t value, uint8_t* packet) const {
  const Place& place = At(role);
  const size_t size = place.bits / 8;
  for (size_t i = 0; i < size; ++i) {
    const size_t shift = 8 * (place.big ? size - 1 - i : i);
    packet[place.position / 8 + i] = static_cast<uint8_t>(value >> shift);
  }
}

void HeaderPlaces::PutUuid(const ctf::Uuid& uuid, uint8_t* packet) const {
  if (has_uuid_) std::copy(uuid.begin(), uuid.end(), packet + uuid_bits_ / 8);
}

}  // namespace syncline::ctf_export
