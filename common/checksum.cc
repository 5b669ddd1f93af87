// SPDX-License-Identifier: Apache-2.0
#include "common/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace syncline {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;
constexpr size_t kSlices = 8;  // eight bytes a round: one table per byte position

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kReversedPolynomial : 0);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t slice = 1; slice < kSlices; ++slice) {
      const uint32_t before = tables[slice - 1][i];
      tables[slice][i] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();
static_assert(std::endian::native == std::endian::little, "slicing reads little-endian words");

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t previous) {
  uint32_t crc = ~previous;
  while (bytes.size() >= kSlices) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < kSlices; ++i) {
      crc ^= kTables[kSlices - 1 - i][(word >> (8 * i)) & 0xff];
    }
    bytes.remove_prefix(kSlices);
  }
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(c)) & 0xff];
  }
  return ~crc;
}

}  // namespace syncline
