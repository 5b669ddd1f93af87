// SPDX-License-Identifier: Apache-2.0
#include "ctf/bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace syncline::ctf {

uint64_t LoadBits(const uint8_t* base, uint64_t position, uint32_t bits, bool big) {
  uint64_t value = 0;
  uint32_t done = 0;
  while (done < bits) {
    const uint8_t byte = base[position / 8];
    const uint32_t offset = static_cast<uint32_t>(position % 8);
    const uint32_t take = std::min(8 - offset, bits - done);
    if (big) {
      const uint64_t part = static_cast<uint64_t>(byte >> (8 - offset - take)) & LowBits(take);
      value = value << take | part;  // take <= 8: never a shift by 64
    } else {
      const uint64_t part = static_cast<uint64_t>(byte >> offset) & LowBits(take);
      value |= part << done;
    }
    done += take;
    position += take;
  }
  return value;
}

uint64_t ReverseBits(uint64_t value, uint32_t bits) {
  uint64_t reversed = 0;
  for (uint32_t i = 0; i < bits; ++i) reversed |= (value >> i & 1) << (bits - 1 - i);
  return reversed;
}

double RealFromBits(uint64_t bits, uint32_t size) {
  if (size == 64) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  if (size == 32) {
    const auto narrow = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &narrow, sizeof value);
    return value;
  }
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double mantissa = static_cast<double>(bits & 1023);
  double value = exponent == 0    ? std::ldexp(mantissa, -24)
                 : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                  : std::ldexp(mantissa + 1024, exponent - 25);
  return bits >> 15 & 1 ? -value : value;
}

}  // namespace syncline::ctf
