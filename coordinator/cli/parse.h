// SPDX-License-Identifier: Apache-2.0
// Durations and sizes as people type and read them. Pure.
#ifndef SYNCLINE_COORDINATOR_CLI_PARSE_H_
#define SYNCLINE_COORDINATOR_CLI_PARSE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace syncline::cli {

// "500ms", "10s", "1.5m", "2h": ns. A bare number is refused: its unit would be a guess.
absl::StatusOr<int64_t> ParseDuration(std::string_view text);

// "512M", "1.5GiB", "4096": bytes; units are powers of 1024, with or without "iB"/"B"; "4k" is 4K.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);

// "812 B", "1.2 KiB", "3.4 GiB".
std::string FormatSize(uint64_t bytes);

// 1234567 -> "1,234,567".
std::string FormatCount(uint64_t count);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_PARSE_H_
