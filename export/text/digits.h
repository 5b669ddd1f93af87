// SPDX-License-Identifier: Apache-2.0
// Numbers as digits, with as little work as can be: eight digits at a time in one register, no
// loop, no table, and no branch on how many there are.
//
// What is written to has kNumberMax bytes of room, whatever of them the number takes.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_TEXT_DIGITS_H_
#define SYNCLINE_EXPORT_TEXT_DIGITS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace syncline::text {

inline constexpr size_t kNumberMax = 32;

namespace digits {

static_assert(std::endian::native == std::endian::little);
inline constexpr uint64_t kEightDigits = 100'000'000;
inline constexpr uint64_t kZeros = 0x3030303030303030;  // "00000000"

// The digits of a number below kEightDigits, each 0..9 in a byte of its own, the first in the
// lowest. Halves, then quarters, then eighths of the word are divided side by side.
inline uint64_t Spread(uint32_t value) {
  const uint64_t fours = value / 10'000 | uint64_t{value % 10'000} << 32;
  const uint64_t hundreds = (fours * 10'486 >> 20) & 0x7f0000007f;  // of each four, / 100
  const uint64_t pairs = hundreds | (fours - 100 * hundreds) << 16;
  const uint64_t tens = (pairs * 103 >> 10) & 0xf000f000f000f;  // of each pair, / 10
  return tens | (pairs - 10 * tens) << 8;
}

inline char* WriteEight(uint32_t value, char* out) {
  const uint64_t text = Spread(value) + kZeros;
  std::memcpy(out, &text, sizeof text);
  return out + sizeof text;
}

// Without the leading zeros.
inline char* WriteUpToEight(uint32_t value, char* out) {
  const uint64_t spread = Spread(value);
  const int unused = std::countr_zero(spread | uint64_t{1} << 56) & 56;  // bits
  const uint64_t text = (spread + kZeros) >> unused;
  std::memcpy(out, &text, sizeof text);
  return out + 8 - unused / 8;
}

}  // namespace digits

// Each returns the end of what it wrote.
inline char* WriteNumber(uint64_t value, char* out) {
  using digits::kEightDigits;
  if (value < kEightDigits) return digits::WriteUpToEight(static_cast<uint32_t>(value), out);
  const uint64_t high = value / kEightDigits;
  if (high < kEightDigits) {
    out = digits::WriteUpToEight(static_cast<uint32_t>(high), out);
  } else {
    out = digits::WriteUpToEight(static_cast<uint32_t>(high / kEightDigits), out);
    out = digits::WriteEight(static_cast<uint32_t>(high % kEightDigits), out);
  }
  return digits::WriteEight(static_cast<uint32_t>(value % kEightDigits), out);
}

inline uint64_t Magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

inline char* WriteNumber(int64_t value, char* out) {
  *out = '-';
  return WriteNumber(Magnitude(value), out + (value < 0 ? 1 : 0));
}

// Exactly nine digits.
inline char* WriteNine(uint32_t value, char* out) {
  *out = static_cast<char>('0' + value / digits::kEightDigits);
  return digits::WriteEight(static_cast<uint32_t>(value % digits::kEightDigits), out + 1);
}

}  // namespace syncline::text

#endif  // SYNCLINE_EXPORT_TEXT_DIGITS_H_
