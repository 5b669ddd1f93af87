// SPDX-License-Identifier: Apache-2.0
// Where the numbers stand that a packet's header is corrected by.
#ifndef SYNCLINE_EXPORT_CTF_HEADER_PLACES_H_
#define SYNCLINE_EXPORT_CTF_HEADER_PLACES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ctf/layout.h"
#include "ctf/metadata.h"

namespace syncline::ctf_export {

class HeaderPlaces {
 public:
  // Of the packet that `bytes` begin with; nullopt when its header does not decode.
  static std::optional<HeaderPlaces> Find(const ctf::ScopeNodes& nodes,
                                          std::span<const uint8_t> bytes);

  // Only numbers of whole bytes can be written.
  bool Writable(ctf::Role role) const {
    const Place& place = At(role);
    return place.bits % 8 == 0 && place.position % 8 == 0;
  }
  bool Holds(ctf::Role role, uint64_t value) const {
    const uint32_t bits = At(role).bits;
    return bits >= 64 || value >> bits == 0;
  }
  void Put(ctf::Role role, uint64_t value, uint8_t* packet) const;
  void PutUuid(const ctf::Uuid& uuid, uint8_t* packet) const;

 private:
  class Finder;
  struct Place {
    uint64_t position = 0;  // bits
    uint32_t bits = 0;      // 0: absent
    bool big = false;
  };
  const Place& At(ctf::Role role) const { return places_[static_cast<size_t>(role)]; }

  std::array<Place, static_cast<size_t>(ctf::Role::kTimestamp) + 1> places_;
  uint64_t uuid_bits_ = 0;
  bool has_uuid_ = false;
};

}  // namespace syncline::ctf_export

#endif  // SYNCLINE_EXPORT_CTF_HEADER_PLACES_H_
