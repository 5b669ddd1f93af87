// SPDX-License-Identifier: Apache-2.0
// The library that sees socket calls (instrumentation/net) in LD_PRELOAD, beside what the user has
// there already.
//
// A preload that the loader cannot use prints a line for every program that starts, or keeps it
// from starting: so it is tried first, in a program that does nothing.
#ifndef SYNCLINE_COORDINATOR_CLI_PRELOAD_H_
#define SYNCLINE_COORDINATOR_CLI_PRELOAD_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace syncline::cli {

inline constexpr char kPreloadVariable[] = "LD_PRELOAD";
inline constexpr char kPreloadFile[] = "libsyncline_net.so";

// The user's value with ours behind it; the user's own when ours is in it already.
std::string AppendPreload(std::string_view current, const std::string& library);

// Starts `program` with LD_PRELOAD=`preload` and waits up to `limit_ms`: ok when it ends well and
// says nothing.
absl::Status TryPreload(const std::string& preload, int limit_ms = 5000,
                        const std::string& program = "/bin/true");

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_PRELOAD_H_
