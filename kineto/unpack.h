// SPDX-License-Identifier: Apache-2.0
// Profiles are mostly kept packed, by gzip or zstd.
//
// Thread-safe: no state.
#ifndef SYNCLINE_KINETO_UNPACK_H_
#define SYNCLINE_KINETO_UNPACK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace syncline::kineto {

// A small file can be made that unpacks to more than a machine has.
inline constexpr uint64_t kUnpackedBytesMax = uint64_t{16} << 30;

// Whether a file that begins so is packed.
bool IsPacked(std::string_view bytes);

struct Unpacked {
  std::string text;
  std::string damage;  // why the text is not all; else empty
};

// ResourceExhausted: it has more than `bytes_max`.
absl::StatusOr<Unpacked> Unpack(std::string_view bytes, uint64_t bytes_max = kUnpackedBytesMax);

// What it begins with, as far as that can be unpacked.
inline constexpr size_t kHeadBytes = size_t{64} << 10;
std::string UnpackHead(std::string_view bytes);

}  // namespace syncline::kineto

#endif  // SYNCLINE_KINETO_UNPACK_H_
