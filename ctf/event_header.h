// SPDX-License-Identifier: Apache-2.0
// Event headers of the two kinds that LTTng writes (FastHeader in fast_path.h).
#ifndef SYNCLINE_CTF_EVENT_HEADER_H_
#define SYNCLINE_CTF_EVENT_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ctf/bits.h"
#include "ctf/fast_path.h"
#include "ctf/layout.h"
#include "ctf/walk.h"

namespace syncline::ctf {

inline constexpr size_t kEventHeaderBytesMax = 14;
inline constexpr size_t kLongEventHeaderBytes = 13;  // of both kinds, or more; short ones have less

// Reads one, advances `bytes` behind it and `clock` to its time. False when it does not lie before
// `end`.
inline bool ReadEventHeader(FastHeader kind, const uint8_t*& bytes, const uint8_t* end,
                            uint64_t& clock, uint32_t& id) {
  const auto left = static_cast<size_t>(end - bytes);
  if (kind == FastHeader::kLarge) {
    if (left < 6) return false;
    id = LoadNumber<uint16_t>(bytes, false);
    if (id != 65535) {
      clock = ExtendClock(clock, LoadNumber<uint32_t>(bytes + 2, false), 32);
      bytes += 6;
      return true;
    }
    if (left < 14) return false;
    id = LoadNumber<uint32_t>(bytes + 2, false);
    clock = LoadNumber<uint64_t>(bytes + 6, false);
    bytes += 14;
    return true;
  }
  if (left < 4) return false;
  const uint32_t word = LoadNumber<uint32_t>(bytes, false);
  id = word & 31;
  if (id != 31) {
    clock = ExtendClock(clock, word >> 5, 27);
    bytes += 4;
    return true;
  }
  if (left < 13) return false;
  id = LoadNumber<uint32_t>(bytes + 1, false);
  clock = LoadNumber<uint64_t>(bytes + 5, false);
  bytes += 13;
  return true;
}

// Where the event ends whose body begins at `body`; null when it is none for the fast path, or does
// not end before `end`.
inline const uint8_t* SkipFastEvent(const StreamLayout& stream, uint32_t id, const uint8_t* body,
                                    const uint8_t* end) {
  if (id >= stream.fast_events.size()) return nullptr;
  const FastEvent& event = stream.fast_events[id];
  if (event.layout == nullptr) return nullptr;
  if (event.fixed_bytes == 0) return event.layout->fast->Skip(body, end);
  return event.fixed_bytes <= static_cast<size_t>(end - body) ? body + event.fixed_bytes : nullptr;
}

// Where the event at `at` ends, and `clock` becomes its time; null as above. `brief` is the
// stream's brief_events, which loops keep in registers.
template <FastHeader kKind>
inline const uint8_t* PassFastEvent(const StreamLayout& stream, std::span<const BriefEvent> brief,
                                    const uint8_t* at, const uint8_t* end, uint64_t& clock) {
  constexpr bool kLarge = kKind == FastHeader::kLarge;
  const auto left = static_cast<size_t>(end - at);
  if (left >= (kLarge ? 6 : 4)) {
    const uint32_t id = LoadNumber<uint16_t>(at, false) & (kLarge ? 65535 : 31);
    const uint32_t bytes = id < brief.size() ? brief[id].bytes : 0;
    if (bytes != 0) {
      clock = kLarge ? ExtendClock(clock, LoadNumber<uint32_t>(at + 2, false), 32)
                     : ExtendClock(clock, LoadNumber<uint32_t>(at, false) >> 5, 27);
      return bytes <= left ? at + bytes : nullptr;
    }
  }
  uint32_t id = 0;
  if (!ReadEventHeader(kKind, at, end, clock, id)) return nullptr;
  return SkipFastEvent(stream, id, at, end);
}

// Writes one, `brief` with the clock's lowest bits alone; returns its size in bytes, at most
// kEventHeaderBytesMax. A brief one takes ids that are not the kind's largest.
inline size_t WriteEventHeader(FastHeader kind, bool brief, uint32_t id, uint64_t clock,
                               uint8_t* bytes) {
  if (kind == FastHeader::kLarge) {
    StoreNumber(static_cast<uint16_t>(brief ? id : 65535), bytes);
    if (brief) {
      StoreNumber(static_cast<uint32_t>(clock), bytes + 2);
      return 6;
    }
    StoreNumber(id, bytes + 2);
    StoreNumber(clock, bytes + 6);
    return 14;
  }
  if (brief) {
    StoreNumber(id | static_cast<uint32_t>(clock << 5), bytes);
    return 4;
  }
  bytes[0] = 31;
  StoreNumber(id, bytes + 1);
  StoreNumber(clock, bytes + 5);
  return 13;
}

inline bool IsBriefEventHeader(FastHeader kind, const uint8_t* bytes) {
  const uint32_t longs = kind == FastHeader::kLarge ? 65535 : 31;
  return (LoadNumber<uint16_t>(bytes, false) & longs) != longs;
}

// Puts another time into one. A brief one keeps the clock's lowest bits alone.
inline void RewriteEventTime(FastHeader kind, uint64_t clock, uint8_t* bytes) {
  const bool large = kind == FastHeader::kLarge;
  if (!IsBriefEventHeader(kind, bytes)) {
    StoreNumber(clock, bytes + (large ? 6 : 5));
  } else if (large) {
    StoreNumber(static_cast<uint32_t>(clock), bytes + 2);
  } else {
    StoreNumber((*bytes & 31u) | static_cast<uint32_t>(clock << 5), bytes);
  }
}

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_EVENT_HEADER_H_
