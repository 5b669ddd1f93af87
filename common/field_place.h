// SPDX-License-Identifier: Apache-2.0
// Reading a field from its place in an event (FieldPlace in event_cursor.h): no decoding, no
// allocation.
//
//   const FieldPlace place = ...;  // of a FieldClass, looked up once per event class
//   if (place) sum += LoadNumber(place, record.bytes);
#ifndef SYNCLINE_COMMON_FIELD_PLACE_H_
#define SYNCLINE_COMMON_FIELD_PLACE_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/event_cursor.h"

namespace syncline {

// The number's bits as FieldValue::u holds them: signed ones are sign-extended, reals are those of
// a double. For every kind but kNone and kText. `bytes` is EventRecord::bytes.
inline uint64_t LoadNumber(const FieldPlace& place, const uint8_t* bytes) {
  uint64_t raw = 0;
  if (std::endian::native == std::endian::little && !place.big) {
    switch (place.width) {
      case 1:
        raw = bytes[place.offset];
        break;
      case 2: {
        uint16_t half;
        std::memcpy(&half, bytes + place.offset, sizeof half);
        raw = half;
        break;
      }
      case 4: {
        uint32_t word;
        std::memcpy(&word, bytes + place.offset, sizeof word);
        raw = word;
        break;
      }
      default:
        std::memcpy(&raw, bytes + place.offset, sizeof raw);
        break;
    }
  } else {
    for (uint32_t i = 0; i < place.width; ++i) {
      const uint32_t at = place.big ? i : place.width - 1 - i;
      raw = raw << 8 | bytes[place.offset + at];
    }
  }
  const uint32_t unused = 64 - 8u * place.width;
  if (place.kind == FieldPlace::Kind::kSigned) {
    return static_cast<uint64_t>(static_cast<int64_t>(raw << unused) >> unused);
  }
  if (place.kind == FieldPlace::Kind::kReal && place.width == 4) {
    return std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(raw))));
  }
  return raw;
}

inline std::string_view LoadText(const FieldPlace& place, const uint8_t* bytes) {
  return reinterpret_cast<const char*>(bytes + place.offset);
}

}  // namespace syncline

#endif  // SYNCLINE_COMMON_FIELD_PLACE_H_
