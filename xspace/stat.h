// SPDX-License-Identifier: Apache-2.0
// XStat and the field numbers of XEvent: what both the walk and the cursor read. Internal.
#ifndef SYNCLINE_XSPACE_STAT_H_
#define SYNCLINE_XSPACE_STAT_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "common/event_cursor.h"
#include "xspace/wire.h"

namespace syncline::xspace {

inline constexpr uint32_t kLineEvent = 4;
namespace event_field {
inline constexpr uint32_t kMetadataId = 1, kOffset = 2, kDuration = 3, kStat = 4, kOccurrences = 5;
}
namespace stat_field {
inline constexpr uint32_t kMetadataId = 1, kDouble = 2, kUint = 3, kInt = 4, kString = 5,
                          kBytes = 6, kReference = 7;
}

struct Stat {
  int64_t id = 0;
  uint32_t kind = 0;  // field number of the value; 0: none
  uint64_t bits = 0;  // of a number; a reference's id
  std::string_view text;
};

[[gnu::always_inline]] inline Stat ReadStat(std::span<const uint8_t> bytes) {
  Stat stat;
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == stat_field::kMetadataId) {
      stat.id = fields.signed_value();
    } else if (fields.number() <= stat_field::kReference) {
      stat.kind = fields.number();
      stat.bits = fields.value();
      stat.text = fields.text();
    }
  }
  return stat;
}

// A stat as it occurs in events of one class.
struct StatKey {
  int64_t id = 0;
  uint32_t kind = 0;  // as Stat::kind
  bool operator==(const StatKey&) const = default;
};

// The same without reading a value.
[[gnu::always_inline]] inline StatKey ReadStatKey(std::span<const uint8_t> bytes) {
  StatKey key;
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == stat_field::kMetadataId) {
      key.id = fields.signed_value();
    } else if (fields.number() <= stat_field::kReference) {
      key.kind = fields.number();
    }
  }
  return key;
}

inline FieldType TypeOfStat(uint32_t kind) {
  switch (kind) {
    case stat_field::kDouble:
      return FieldType::kReal;
    case stat_field::kInt:
      return FieldType::kSigned;
    case stat_field::kString:
    case stat_field::kReference:
      return FieldType::kString;
    case stat_field::kBytes:
      return FieldType::kBlob;
    default:
      return FieldType::kUnsigned;
  }
}

// Numbers of a file may be anything; a sum that does not fit sticks to the end of the range.
inline int64_t SaturatingSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? kUnknownHi : kUnknownLo;
}

}  // namespace syncline::xspace

#endif  // SYNCLINE_XSPACE_STAT_H_
