// Event headers of the two kinds that LTTng writes (FastHeader in fast_path.h).
#ifndef SYNCLINE_CTF_EVENT_HEADER_H_
#define SYNCLINE_CTF_EVENT_HEADER_H_

#include <cstddef>
#include <cstdint>

#include "ctf/bits.h"
#include "ctf/fast_path.h"
#include "ctf/walk.h"

namespace syncline::ctf {

inline constexpr size_t kEventHeaderBytesMax = 14;

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

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_EVENT_HEADER_H_
