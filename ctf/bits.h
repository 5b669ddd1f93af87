// SPDX-License-Identifier: Apache-2.0
// Reading numbers of any width, at any bit, in either byte order.
//
// CTF counts bits from the start of a packet. In a little-endian field bit 0 of a byte is its least
// significant one and the field's first bit is its least significant bit; in a big-endian field the
// first bit is the most significant one of the byte and of the field.
#ifndef SYNCLINE_CTF_BITS_H_
#define SYNCLINE_CTF_BITS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace syncline::ctf {

// `size` bytes (1..8) as one number.
inline uint64_t LoadBytes(const uint8_t* bytes, size_t size, bool big) {
  uint64_t value = 0;
  if (big) {
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[i];
  } else {
    for (size_t i = size; i-- > 0;) value = value << 8 | bytes[i];
  }
  return value;
}

inline uint64_t LowBits(uint32_t bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

inline int64_t SignExtend(uint64_t value, uint32_t bits) {
  const uint32_t shift = 64 - bits;
  return static_cast<int64_t>(value << shift) >> shift;
}

// Any `bits` (1..64) from bit `position` of `base`. The caller has checked that they lie inside.
uint64_t LoadBits(const uint8_t* base, uint64_t position, uint32_t bits, bool big);

// `value` with its lowest `bits` in the opposite order.
uint64_t ReverseBits(uint64_t value, uint32_t bits);

inline uint64_t AlignUp(uint64_t position, uint64_t alignment) {
  return (position + alignment - 1) & ~(alignment - 1);
}

// A whole number of bytes at a byte boundary: the common case, one load.
template <class T>
inline T LoadNumber(const uint8_t* bytes, bool big) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  if (big != (std::endian::native == std::endian::big)) {
    if constexpr (sizeof(T) == 2) value = static_cast<T>(__builtin_bswap16(value));
    if constexpr (sizeof(T) == 4) value = static_cast<T>(__builtin_bswap32(value));
    if constexpr (sizeof(T) == 8) value = static_cast<T>(__builtin_bswap64(value));
  }
  return value;
}

// Its counterpart, little-endian.
template <class T>
void StoreNumber(T value, uint8_t* bytes) {
  if constexpr (std::endian::native == std::endian::big) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<uint8_t>(value >> (8 * i));
  } else {
    std::memcpy(bytes, &value, sizeof value);
  }
}

inline uint64_t LoadInteger(const uint8_t* base, uint64_t position, uint32_t bits, bool big) {
  if (position % 8 == 0) {
    const uint8_t* bytes = base + position / 8;
    switch (bits) {
      case 8:
        return *bytes;
      case 16:
        return LoadNumber<uint16_t>(bytes, big);
      case 32:
        return LoadNumber<uint32_t>(bytes, big);
      case 64:
        return LoadNumber<uint64_t>(bytes, big);
      default:
        break;
    }
  }
  return LoadBits(base, position, bits, big);
}

// IEEE 754 numbers of 16, 32 and 64 bits.
double RealFromBits(uint64_t bits, uint32_t size);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_BITS_H_
