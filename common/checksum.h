// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, RFC 3720 appendix B.4): guards every chunk that travels between agent and
// coordinator. Thread-safe: no state but a constant table.
#ifndef SYNCLINE_COMMON_CHECKSUM_H_
#define SYNCLINE_COMMON_CHECKSUM_H_

#include <cstdint>
#include <string_view>

namespace syncline {

// The CRC-32C of `bytes`; pass the CRC of what came before to go on: Crc32c(b, Crc32c(a)) ==
// Crc32c(ab).
uint32_t Crc32c(std::string_view bytes, uint32_t previous = 0);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_CHECKSUM_H_
